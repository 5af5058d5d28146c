#include "compiler/te/card/turned_copy.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/schedule.h"

namespace polynao::te {
namespace {

int Rounds(const Turn& turn) {
  int rounds = 0;
  for (int64_t w = 1; w < turn.digits; w *= 2) ++rounds;
  return rounds;
}

// Masks of a round: where j has the round's bit, and for products where it lacks it.
int Masks(const TurnInstructions& by) { return by.select != nullptr ? 1 : 2; }

class Maker {
 public:
  Maker(const std::string& name, const Turn& turn, ir::Context& c, ir::Type index_type,
        ir::Type type, const TurnInstructions& by, const MakeCompute& compute)
      : name_(name),
        turn_(turn),
        c_(c),
        index_type_(index_type),
        type_(type),
        by_(by),
        compute_(compute) {
    // [.., box of b, .., row of a set, b in its box]
    for (size_t d = 0; d + 1 < turn.shape.size(); ++d) {
      shape_.push_back(d == turn.columns ? turn.shape[d] / turn.box[d] : turn.shape[d]);
    }
    shape_.push_back(turn.shape.back() / turn.digits);
    shape_.push_back(turn.box[turn.columns]);
  }

  TurnedCopy Run(const std::function<Expr(const Axes&)>& element) {
    Shape all = {turn_.digits};
    all.insert(all.end(), shape_.begin(), shape_.end());
    const Tensor rows = compute_(StrCat(name_, ".sets"), all, [&](const Axes& own) {
      Axes at(own.begin() + 1, own.end() - 1);
      at[turn_.columns] = at[turn_.columns] * Int(turn_.box[turn_.columns]) + own.back();
      at.back() = at.back() * Int(turn_.digits) + own[0];
      return element(at);
    });
    made_.parts.push_back({.kind = TurnPart::Kind::kRows, .tensor = rows});
    std::vector<Set> sets;
    for (int64_t r = 0; r < turn_.digits; ++r) {
      sets.push_back([this, rows, r](const Axes& own) {
        Axes at = {Int(r)};
        at.insert(at.end(), own.begin(), own.end());
        return rows(at);
      });
    }
    for (const int bit : {0, 1}) {
      bits_.push_back(compute_(StrCat(name_, ".", bit), {shape_.back()},
                               [&](const Axes&) { return Number(bit); }));
      made_.parts.push_back(
          {.kind = TurnPart::Kind::kMask, .tensor = bits_[bit], .instruction = by_.fill->family});
    }
    for (int64_t w = 1; w < turn_.digits; w *= 2) {
      const Tensor mask = Mask(w, 1);
      const Tensor other = by_.select != nullptr ? Tensor() : Mask(w, 0);
      for (int64_t r = 0; r < turn_.digits; ++r) {
        if ((r / w) % 2 != 0) continue;
        const Set upper = sets[r], lower = sets[r + w];
        const std::string suffix = StrCat(w, ".", r);
        const Tensor down = Shifted(StrCat("down", suffix), lower, -w);
        const Tensor up = Shifted(StrCat("up", suffix), upper, w);
        sets[r] = Of(Chosen(StrCat("a", suffix), mask, other, down, upper, /*moves_one=*/true));
        sets[r + w] = Of(Chosen(StrCat("b", suffix), mask, other, up, lower, /*moves_one=*/false));
      }
    }
    made_.result = compute_(StrCat(name_, ".turned"), turn_.shape, [&](const Axes& at) {
      const Expr b = at[turn_.columns], a = at.back();
      const Expr k = Int(turn_.digits);
      const Expr in_box = b % Int(turn_.box[turn_.columns]);
      Axes place = at;
      place[turn_.columns] = b / Int(turn_.box[turn_.columns]);
      place.back() = a / k;
      place.push_back(in_box / k * k + a % k);
      Expr value = sets.back()(place);
      for (int64_t r = turn_.digits - 1; r-- > 0;) {
        value = c_.Select(ir::Eq(b % k, Int(r)), sets[r](place), value);
      }
      return value;
    });
    return std::move(made_);
  }

 private:
  // The elements of a set of rows.
  using Set = std::function<Expr(const Axes&)>;
  static Set Of(const Tensor& tensor) {
    return [tensor](const Axes& at) { return tensor(at); };
  }

  Expr Int(int64_t value) const { return c_.Int(index_type_, value); }
  Expr Number(int value) const {
    return ir::IsFloat(type_) ? c_.Float(type_, value) : c_.Int(type_, value);
  }

  // 1 for all rows of a set where the columns have the bit w, or where they lack it.
  Tensor Mask(int64_t w, int bit) {
    const Tensor row =
        compute_(StrCat(name_, ".bits", w, ".", bit), {shape_.back()}, [&](const Axes& at) {
          return Select(ir::Eq(at[0] / Int(w) % Int(2), Int(bit)), bits_[1](at), bits_[0](at));
        });
    made_.parts.push_back(
        {.kind = TurnPart::Kind::kMask, .tensor = row, .splits = {2 * w, w}, .first = 1});
    const Tensor mask =
        compute_(StrCat(name_, ".mask", w, ".", bit), {turn_.set() / shape_.back(), shape_.back()},
                 [&](const Axes& at) { return row(at.back()); });
    made_.parts.push_back({.kind = TurnPart::Kind::kMask, .tensor = mask});
    return mask;
  }

  // Element j of each row is j + `by` of `set`'s, where that is in the row.
  Tensor Shifted(const std::string& name, const Set& set, int64_t by) {
    const Tensor shifted = compute_(StrCat(name_, ".", name), shape_, [&](const Axes& at) {
      Axes from = at;
      from.back() = at.back() + Int(by);
      const Expr inside = by < 0 ? at.back() >= Int(-by) : at.back() < Int(shape_.back() - by);
      return Select(inside, set(from), set(at));
    });
    made_.parts.push_back({.kind = TurnPart::Kind::kBox, .tensor = shifted, .first = 0});
    return shifted;
  }

  // `moved`, in its own memory, where the mask is 1 (`moves_one`) or 0, and what stays elsewhere. `other` is the
  // mask's opposite.
  Tensor Chosen(const std::string& name, const Tensor& mask, const Tensor& other,
                const Tensor& moved, const Set& stays, bool moves_one) {
    // Rows of the mask are those of a box.
    const auto bit = [&](const Tensor& of, const Axes& at) {
      Expr row = Int(0);
      for (size_t d = 0; d + 1 < at.size(); ++d) {
        if (d == turn_.columns) continue;
        const int64_t extent = d + 2 == at.size() ? turn_.rows() : turn_.box[d];
        row = row * Int(extent) + at[d] % Int(extent);
      }
      return of(Axes{row, at.back()});
    };
    const auto add = [&](const std::string& of, const isa::Instruction* by, const Tensor& in,
                         const std::function<Expr(const Axes&)>& element) {
      const Tensor made = compute_(StrCat(name_, ".", of), shape_, element);
      made_.parts.push_back(
          {.kind = TurnPart::Kind::kBox, .tensor = made, .instruction = by->family, .place = in});
      return made;
    };
    if (by_.select != nullptr) {
      return add(name, by_.select, moved, [&](const Axes& at) {
        const Expr is_one = ir::Ne(bit(mask, at), Number(0));
        return moves_one ? c_.Select(is_one, moved(at), stays(at))
                         : c_.Select(is_one, stays(at), moved(at));
      });
    }
    const Tensor a = add(StrCat(name, ".moved"), by_.mul, moved, [&](const Axes& at) {
      return moved(at) * bit(moves_one ? mask : other, at);
    });
    const Tensor b = add(StrCat(name, ".stays"), by_.mul, Tensor(), [&](const Axes& at) {
      return stays(at) * bit(moves_one ? other : mask, at);
    });
    return add(name, by_.add, a, [&](const Axes& at) { return a(at) + b(at); });
  }

  const std::string& name_;
  const Turn& turn_;
  ir::Context& c_;
  const ir::Type index_type_, type_;
  const TurnInstructions& by_;
  const MakeCompute& compute_;
  Shape shape_;               // of a set of rows
  std::vector<Tensor> bits_;  // a row of zeros, a row of ones
  TurnedCopy made_;
};

}  // namespace

std::optional<TurnInstructions> FindTurnInstructions(ir::Context& c, ir::Type type,
                                                     const LaneInstructions& instructions) {
  const auto element = [&](const char* name) { return c.Load(c.NewBuffer(name, type, {}), {}); };
  const Expr a = element("a"), b = element("b"), mask = element("mask");
  const auto find = [&](Expr e, size_t operands) -> const isa::Instruction* {
    for (const LaneMatch& match : instructions.Find(e)) {
      if (!match.row && match.operands.size() == operands) return match.instruction;
    }
    return nullptr;
  };
  TurnInstructions by = {.fill = instructions.Fill(type)};
  const Expr zero = ir::IsFloat(type) ? c.Float(type, 0.0) : c.Int(type, 0);
  by.select = find(c.Select(ir::Ne(mask, zero), a, b), 3);
  if (by.select == nullptr && !ir::IsFloat(type)) {
    by.mul = find(a * b, 2);
    by.add = find(a + b, 2);
  }
  const bool chooses = by.select != nullptr || (by.mul != nullptr && by.add != nullptr);
  return by.fill != nullptr && chooses ? std::optional(by) : std::nullopt;
}

TurnCycles CyclesOf(const Turn& turn, ir::Type type, bool copies, const TurnInstructions& by,
                    const LaneInstructions& instructions) {
  const int64_t columns = turn.box[turn.columns], set = turn.set(), rows = set / columns;
  const auto digits = static_cast<double>(turn.digits);
  const auto copy = [&](int64_t segments, int64_t count) {
    return instructions.CopyCycles(type, segments, count);
  };
  TurnCycles cycles;
  if (copies) cycles.box += digits * copy(rows, columns);
  const double choose = by.select != nullptr ? instructions.Cycles(*by.select, 1, set)
                                             : 2 * instructions.Cycles(*by.mul, 1, set) +
                                                   instructions.Cycles(*by.add, 1, set);
  for (int64_t w = 1; w < turn.digits; w *= 2) {
    cycles.box += digits * (choose + copy(rows, columns - w) + copy(rows, w));
    cycles.once += Masks(by) * (2 * copy(columns / (2 * w), w) + copy(rows, columns));
  }
  cycles.once += 2 * instructions.Cycles(*by.fill, 1, columns);
  // One instruction for each set of rows and each place along the dimensions but the last and the columns.
  const int64_t planes = rows / turn.rows();
  cycles.box +=
      digits * static_cast<double>(planes) * copy(turn.rows() * columns / turn.digits, turn.digits);
  return cycles;
}

int64_t BytesOf(const Turn& turn, ir::Type type, int copies, const TurnInstructions& by) {
  const int64_t set = OnChipBytes(turn.set(), type);
  const int64_t row = OnChipBytes(turn.box[turn.columns], type);
  const int rounds = Rounds(turn);
  const int made = by.select != nullptr ? rounds : 2 * rounds;
  return turn.digits * set * (copies + made) + rounds * Masks(by) * (set + row) + 2 * row;
}

TurnedCopy MakeTurn(const std::string& name, const Turn& turn, ir::Context& c, ir::Type index_type,
                    ir::Type type, const TurnInstructions& by, const MakeCompute& compute,
                    const std::function<Expr(const Axes&)>& element) {
  return Maker(name, turn, c, index_type, type, by, compute).Run(element);
}

void SplitRuns(Schedule& s, const Turn& turn, const Tensor& result) {
  Stage& stage = s[result];
  const auto [run, digit] = stage.Split(stage.axis(turn.columns), turn.digits);
  const auto [row, element] = stage.Split(stage.axis(turn.shape.size() - 1), turn.digits);
  std::vector<Axis> order = {digit};
  for (size_t d = 0; d + 1 < turn.shape.size(); ++d) {
    if (d != turn.columns) order.push_back(stage.axis(d));
  }
  order.insert(order.end(), {run, row, element});
  stage.Reorder(order);
}

}  // namespace polynao::te
