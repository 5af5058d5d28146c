#include "compiler/poly/card/place_tables.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/text.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;

// Longer tables take long to evaluate, and divisors longer to find.
constexpr int64_t kMostPlaces = 4096;

bool HasLoads(Expr e) {
  bool has_loads = false;
  ir::ForEachExpr(e, [&](Expr part) { has_loads = has_loads || part.Is(ExprKind::kLoad); });
  return has_loads;
}

class Tabulator {
 public:
  Tabulator(const ir::Function& function, NestStages& stages)
      : function_(function), c_(*function.context), stages_(stages) {}

  void Run() {
    std::vector<NestStage> list;
    for (NestStage& stage : stages_.list) {
      // A stage that is a table has nothing that is less.
      if (stage.axes.size() > 1 || (stage.value && HasLoads(stage.value)) || stage.reduction) {
        stage_ = &stage;
        split_ = SplitOf(stage);
        for (Expr* e : {&stage.value, &stage.element}) {
          if (*e) *e = Tabulated(*e);
        }
        if (split_) Split(stage);
        for (NestStage& made : before_) list.push_back(std::move(made));
        before_.clear();
        padded_.clear();
      }
      Add(std::move(stage), list);
    }
    stages_.list = std::move(list);
  }

 private:
  // ---- tables

  // The axis of which alone `e` is computed, without elements of buffers.
  std::optional<size_t> OnlyAxisOf(Expr e) const {
    if (HasLoads(e)) return std::nullopt;
    const absl::flat_hash_set<ir::Var> vars = ir::FreeVars(e);
    if (vars.size() != 1) return std::nullopt;
    const auto it = std::find(stage_->axes.begin(), stage_->axes.end(), *vars.begin());
    if (it == stage_->axes.end()) return std::nullopt;
    const size_t axis = it - stage_->axes.begin();
    return stage_->extents[axis] <= kMostPlaces ? std::optional(axis) : std::nullopt;
  }

  // Whether an index is computed in floats, or is a quotient within limits. Other passes know sums and quotients, and
  // sums within limits.
  static bool IsComputed(Expr index) {
    bool has_floats = false, divides = false, has_limits = false;
    ir::ForEachExpr(index, [&](Expr e) {
      has_floats = has_floats || ir::IsFloat(e.type());
      divides = divides || e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod);
      has_limits = has_limits || e.Is(ExprKind::kMin) || e.Is(ExprKind::kMax);
    });
    return has_floats || (divides && has_limits);
  }

  // The values of `e`, of one axis, as the interpreter has them. None if it has none.
  std::optional<ir::Tensor> ValuesOf(Expr e, size_t axis) {
    const ir::Var& var = stage_->axes[axis];
    const int64_t extent = stage_->extents[axis];
    ir::Function table = function_;
    table.name = "table";
    table.attributes.clear();
    const ir::Buffer buffer = c_.NewBuffer("table", e.type(), {c_.Int(var.type(), extent)});
    table.params = {{.var = {}, .buffer = buffer, .access = ir::Access::kOut, .scope = ""}};
    const ir::Var place = c_.NewVar(var.name(), var.type());
    table.body = c_.For(place, c_.Int(var.type(), 0), c_.Int(var.type(), extent),
                        c_.Store(buffer, {place}, ir::Substitute(e, {{var, place}})));
    ir::Tensor values(e.type(), {extent});
    if (!ir::Interpret(table, {ir::Argument::Of(&values)}).ok()) return std::nullopt;
    return values;
  }

  // `e` with quotients and tables for what is computed of one axis each.
  Expr Tabulated(Expr e) {
    if (ir::IsFloat(e.type()) && !e.IsConst()) {
      if (const auto axis = OnlyAxisOf(e)) return Weight(e, *axis);
    }
    std::vector<Expr> operands;
    ir::Buffer padded;
    for (size_t i = 0; i < e.operands().size(); ++i) {
      const Expr operand = e.operands()[i];
      // Conditions of loops are boxes for other passes.
      const bool stays = e.Is(ExprKind::kSelect) && i == 0 && !HasLoads(operand);
      const bool is_split = split_ && e.Is(ExprKind::kLoad) && split_->places.contains(operand);
      if (is_split) {
        const Steps& steps = split_->places.at(operand);
        padded = Padded(ir::Buffer(e.buffer()), i, steps.margins);
        operands.push_back(InSteps(steps));
        continue;
      }
      operands.push_back(stays                   ? operand
                         : e.Is(ExprKind::kLoad) ? Index(operand)
                                                 : Tabulated(operand));
    }
    if (padded) return c_.Load(padded, operands);
    return operands.empty() ? e : c_.Rebuild(e, operands);
  }

  Expr Index(Expr index) {
    const auto axis = IsComputed(index) ? OnlyAxisOf(index) : std::nullopt;
    if (!axis) return index;
    const std::optional<ir::Tensor> values = ValuesOf(index, *axis);
    if (!values) return index;
    const std::optional<Quotient> q = QuotientOf(IntegersOf(*values));
    return q ? QuotientAt(*q, stage_->axes[*axis]) : index;
  }

  static std::vector<int64_t> IntegersOf(const ir::Tensor& values) {
    std::vector<int64_t> table;
    for (int64_t i = 0; i < values.element_count(); ++i) table.push_back(values.Int(i));
    return table;
  }
  Expr QuotientAt(const Quotient& q, Expr place) const {
    if (q.factor == 0) return c_.Int(place.type(), q.shift);
    if (q.factor != 1) place = place * q.factor;
    if (q.shift != 0) place = place + q.shift;
    return q.divisor == 1 ? place : place / q.divisor;
  }

  // ---- weights

  // An element of a table: equal tables are one. The table stands there for each element of the stage's last axis, so
  // that instructions take rows of it: repeating an element takes as long as computing a row.
  Expr Weight(Expr e, size_t axis) {
    // Instructions subtract from a number: 1 - w has no table of its own.
    if (e.Is(ExprKind::kSub) && e.operand(0).IsConst()) {
      return e.operand(0) - Weight(e.operand(1), axis);
    }
    const std::optional<ir::Tensor> values = ValuesOf(e, axis);
    if (!values) return e;
    const ir::Var& var = stage_->axes[axis];
    const int64_t extent = stage_->extents[axis];
    const size_t last = stage_->axes.size() - 1;
    // The indices of its elements, and their extents.
    std::vector<Expr> at, extents;
    const auto add = [&](size_t d) {
      const bool is_split = split_ && split_->axis == d;
      const int64_t by = is_split ? split_->by : 1;
      at.push_back(is_split ? Expr(split_->steps) : stage_->axes[d]);
      extents.push_back(c_.Int(var.type(), stage_->extents[d] / by));
      if (!is_split) return;
      at.push_back(split_->place);
      extents.push_back(c_.Int(var.type(), by));
    };
    add(axis);
    if (axis != last) add(last);
    const int64_t length = axis == last ? 1 : stage_->extents[last];
    ir::Buffer& table = made_[{values->type, extent, length, values->bytes}];
    if (!table) {
      NestStage stage = {.name = NewName("table"),
                         .place = stage_->place,
                         .target = NewLocal("table", e.type(), var.type(), {extent}),
                         .axes = {c_.NewVar(var.name(), var.type())},
                         .low = {0},
                         .extents = {extent},
                         .value = {}};
      stage.value = ir::Substitute(e, {{var, stage.axes[0]}});
      table = stage.target;
      before_.push_back(stage);
      if (length > 1) {
        stage.name = NewName("table");
        stage.axes = {c_.NewVar(var.name(), var.type()), c_.NewVar(var.name(), var.type())};
        stage.low = {0, 0};
        stage.extents = {extent, length};
        stage.value = c_.Load(table, {stage.axes[0]});
        table = NewLocal("table.rows", e.type(), var.type(), stage.extents);
        stage.target = NewView(table, table->extents);
        before_.push_back(std::move(stage));
      }
    }
    if (extents.size() == table->extents.size()) return c_.Load(table, at);
    const auto view = std::find_if(stages_.views.begin(), stages_.views.end(), [&](const auto& v) {
      return v.second == table && v.first->extents == extents;
    });
    return c_.Load(view == stages_.views.end() ? NewView(table, extents) : view->first, at);
  }

  // Only stages that are alike have one name.
  std::string NewName(std::string_view what) {
    return StrCat(stage_->name, ".", what, number_++ == 0 ? "" : StrCat(".", number_));
  }
  // Another shape of a buffer. A stage that stores it is a group of its own.
  ir::Buffer NewView(ir::Buffer whole, std::vector<Expr> extents) {
    const ir::Buffer view = c_.NewBuffer(whole->name, whole->type, std::move(extents));
    stages_.views.emplace_back(view, whole);
    return view;
  }
  ir::Buffer NewLocal(const std::string& name, ir::Type type, ir::Type index_type,
                      const std::vector<int64_t>& extents) {
    std::vector<Expr> all;
    for (const int64_t extent : extents) all.push_back(c_.Int(index_type, extent));
    stages_.locals.push_back(c_.NewBuffer(StrCat(stage_->target->name, ".", name), type, all));
    return stages_.locals.back();
  }

  // ---- places that repeat

  // An index step * q + stride * s + shift of the place s in step q, but for places at the ends.
  struct Steps {
    int64_t step, stride, shift;
    size_t margins;  // the buffers' copy that is read
    int64_t At(int64_t i, int64_t by) const { return step * (i / by) + stride * (i % by) + shift; }
  };
  // An axis whose indices are steps: i = q * by + s. What is read has margins in which the ends are steps, too.
  //
  //   Y[i] = X[max((i - 1) / 2, 0)]    -->   X.padded[i] = X[max(i - 1, 0)]    Y[q, s] = X.padded[q + s]
  struct AxisSplit {
    size_t axis;
    int64_t by;
    absl::flat_hash_map<Expr, Steps> places;
    // Which place of a buffer stands at each index.
    std::vector<std::map<int64_t, int64_t>> margins;
    ir::Var steps, place;
  };
  static bool IsSame(const std::map<int64_t, int64_t>& margins) {
    return std::all_of(margins.begin(), margins.end(),
                       [](const auto& pair) { return pair.first == pair.second; });
  }
  // Adds `more`, if no index stands for two places.
  static bool JoinMargins(const std::map<int64_t, int64_t>& more,
                          std::map<int64_t, int64_t>& margins) {
    for (const auto& [index, place] : more) {
      const auto it = margins.find(index);
      if (it != margins.end() && it->second != place) return false;
    }
    margins.insert(more.begin(), more.end());
    return true;
  }
  // All places from the first index to the last one; what nobody reads is what stands before it.
  static std::vector<int64_t> TableOf(const std::map<int64_t, int64_t>& margins) {
    std::vector<int64_t> table;
    for (int64_t i = margins.begin()->first; i <= margins.rbegin()->first; ++i) {
      const auto it = margins.find(i);
      table.push_back(it == margins.end() ? table.back() : it->second);
    }
    return table;
  }

  static std::optional<Steps> StepsOf(const std::vector<int64_t>& table, int64_t by) {
    const int64_t count = static_cast<int64_t>(table.size());
    if (count < 4 * by) return std::nullopt;
    // What a place in the middle says holds for most others.
    const int64_t middle = count / by / 2;
    const auto at = [&](int64_t q, int64_t s) { return table[q * by + s]; };
    Steps steps = {.step = at(middle + 1, 0) - at(middle, 0),
                   .stride = by > 1 ? at(middle, 1) - at(middle, 0) : 0,
                   .shift = 0,
                   .margins = 0};
    steps.shift = at(middle, 0) - steps.step * middle;
    for (int64_t i = by; i < count - by; ++i) {
      if (steps.At(i, by) != table[i]) return std::nullopt;
    }
    return steps;
  }

  using Tables = absl::flat_hash_map<Expr, std::vector<int64_t>>;
  // The axis of a stage to split. Rows behind it are short: of long ones each may be copied by itself.
  std::optional<AxisSplit> SplitOf(const NestStage& stage) {
    constexpr int64_t kMostBy = 4, kLongRow = 4096;
    if (stage.reduction || !IsWhole(stage)) return std::nullopt;
    int64_t row = ir::ByteSize(stage.target->type);
    for (size_t axis = stage.axes.size(); axis-- > 0 && row < kLongRow;) {
      const int64_t extent = stage.extents[axis];
      Tables tables;
      absl::flat_hash_map<ir::Buffer, size_t> dimensions;
      bool are_read = true;  // each buffer by one of its dimensions
      ir::ForEachExpr(stage.value, [&](Expr e) {
        if (!e.Is(ExprKind::kLoad)) return;
        for (size_t d = 0; d < e.operands().size(); ++d) {
          const Expr index = e.operands()[d];
          if (!IsComputed(index) || OnlyAxisOf(index) != axis) continue;
          const ir::Buffer buffer(e.buffer());
          const auto values = ValuesOf(index, axis);
          are_read = are_read && values && dimensions.try_emplace(buffer, d).first->second == d;
          for (const Expr extent : buffer->extents) {
            are_read = are_read && extent.Is(ExprKind::kIntImm);
          }
          if (values) tables[index] = IntegersOf(*values);
        }
      });
      for (int64_t by = 2; by <= kMostBy && are_read && !tables.empty(); ++by) {
        if (extent % by != 0) continue;
        std::optional<AxisSplit> split = SplitBy(tables, axis, extent, by);
        if (!split) continue;
        const ir::Var& var = stage.axes[axis];
        split->steps = c_.NewVar(var.name(), var.type());
        split->place = c_.NewVar(var.name(), var.type());
        return split;
      }
      row *= extent;
    }
    return std::nullopt;
  }

  static std::optional<AxisSplit> SplitBy(const Tables& tables, size_t axis, int64_t extent,
                                          int64_t by) {
    AxisSplit split = {
        .axis = axis, .by = by, .places = {}, .margins = {}, .steps = {}, .place = {}};
    for (const auto& [index, table] : tables) {
      std::optional<Steps> steps = StepsOf(table, by);
      if (!steps || steps->step < 1) return std::nullopt;
      std::map<int64_t, int64_t> own;
      for (int64_t i = 0; i < extent; ++i) {
        const auto it = own.try_emplace(steps->At(i, by), table[i]).first;
        if (it->second != table[i]) return std::nullopt;
      }
      size_t& k = steps->margins;
      while (k < split.margins.size() && !JoinMargins(own, split.margins[k])) ++k;
      if (k == split.margins.size()) split.margins.push_back(own);
      split.places[index] = *steps;
    }
    for (const auto& margins : split.margins) {
      if (!IsSame(margins) && !QuotientOf(TableOf(margins))) return std::nullopt;
    }
    return split;
  }

  Expr InSteps(const Steps& steps) const {
    Expr at = steps.step == 1 ? Expr(split_->steps) : split_->steps * steps.step;
    if (steps.stride == 1) at = at + split_->place;
    if (steps.stride != 0 && steps.stride != 1) at = at + split_->place * steps.stride;
    const auto& margins = split_->margins[steps.margins];
    const int64_t shift = steps.shift - (IsSame(margins) ? 0 : margins.begin()->first);
    return shift == 0 ? at : at + shift;
  }

  // A copy of a buffer with margins along a dimension; the buffer itself if it needs none.
  ir::Buffer Padded(ir::Buffer buffer, size_t dimension, size_t number) {
    const auto& margins = split_->margins[number];
    if (IsSame(margins)) return buffer;
    ir::Buffer& padded = padded_[{buffer, number}];
    if (padded) return padded;
    const std::vector<int64_t> table = TableOf(margins);
    const ir::Type type = split_->steps.type();
    NestStage copy = {.name = NewName("padded"),
                      .place = stage_->place,
                      .target = {},
                      .axes = {},
                      .low = {},
                      .extents = {},
                      .value = {}};
    std::vector<Expr> at;
    for (size_t d = 0; d < buffer->extents.size(); ++d) {
      const bool is_it = d == dimension;
      copy.axes.push_back(c_.NewVar(stage_->axes[0].name(), type));
      copy.low.push_back(0);
      copy.extents.push_back(is_it ? static_cast<int64_t>(table.size())
                                   : buffer->extents[d].int_value());
      at.push_back(copy.axes[d]);
    }
    at[dimension] = QuotientAt(*QuotientOf(table), at[dimension]);
    copy.value = c_.Load(buffer, at);
    copy.target = padded = NewLocal("padded", buffer->type, type, copy.extents);
    before_.push_back(std::move(copy));
    return padded;
  }

  // The stage itself over steps and places.
  void Split(NestStage& stage) {
    const AxisSplit& split = *split_;
    const ir::Var var = stage.axes[split.axis];
    const ir::Buffer target = stage.target;
    const auto at = static_cast<ptrdiff_t>(split.axis);
    stage.value = ir::Substitute(stage.value, {{var, split.steps * split.by + split.place}});
    stage.axes[split.axis] = split.steps;
    stage.axes.insert(stage.axes.begin() + at + 1, split.place);
    stage.extents[split.axis] /= split.by;
    stage.extents.insert(stage.extents.begin() + at + 1, split.by);
    stage.low.push_back(0);
    std::vector<Expr> extents;
    for (const int64_t extent : stage.extents) extents.push_back(c_.Int(var.type(), extent));
    stage.target = NewView(target, std::move(extents));
  }

  // ---- rows

  // The places of an axis at which an expression reads.
  struct Places {
    bool has_several = false;
    Expr index;  // empty: it does not use the axis
    size_t dimension = 0;
    int64_t extent = 0;  // of that dimension in all that is read
  };
  static void Join(const Places& more, Places& places) {
    if (!more.index && !more.has_several) return;
    if (!places.index && !places.has_several) {
      places = more;
      return;
    }
    places.has_several = places.has_several || more.has_several || places.index != more.index;
    places.extent = std::min(places.extent, more.extent);
  }
  // Adds the largest parts of `e` that read rows at one place and compute something of them.
  static Places FindRows(Expr e, const ir::Var& axis, std::vector<std::pair<Expr, Places>>& rows) {
    Places places;
    if (e == axis) places.has_several = true;
    if (e.Is(ExprKind::kLoad)) {
      for (size_t d = 0; d < e.operands().size(); ++d) {
        const Expr index = e.operands()[d];
        if (!ir::UsesVar(index, axis)) continue;
        Places place = {.index = index, .dimension = d};
        place.has_several = !index.Is(ExprKind::kDiv) || HasLoads(index) ||
                            ir::FreeVars(index).size() > 1 || places.index;
        const auto extent = ir::EvaluateInt(ir::Buffer(e.buffer())->extents[d], {});
        place.extent = extent.ok() ? *extent : 0;
        Join(place, places);
      }
      return places;
    }
    std::vector<Places> of_operands;
    std::vector<std::pair<Expr, Places>> inside;
    for (Expr operand : e.operands()) {
      of_operands.push_back(FindRows(operand, axis, inside));
      Join(of_operands.back(), places);
    }
    if (!places.has_several) return places;
    rows.insert(rows.end(), inside.begin(), inside.end());
    for (size_t i = 0; i < of_operands.size(); ++i) {
      const Expr operand = e.operands()[i];
      const bool is_row = of_operands[i].index && !of_operands[i].has_several;
      if (is_row && !operand.Is(ExprKind::kLoad)) rows.emplace_back(operand, of_operands[i]);
    }
    return places;
  }

  // Adds a stage, and before it those of rows that it reads.
  void Add(NestStage stage, std::vector<NestStage>& list) {
    for (size_t d = 0; d < stage.axes.size() && !stage.reduction; ++d) {
      const ir::Var axis = stage.axes[d];
      std::vector<std::pair<Expr, Places>> rows;
      const Places whole = FindRows(stage.value, axis, rows);
      // Most rows would be computed for nothing.
      constexpr int64_t kMostMore = 2;
      if (!whole.has_several || rows.empty()) continue;
      absl::flat_hash_map<Expr, Expr> by;
      std::map<Expr, ir::Buffer, ById> made;
      const ir::Var row = c_.NewVar(axis.name(), axis.type());
      for (const auto& [e, places] : rows) {
        if (by.contains(e)) continue;
        const int64_t count = static_cast<int64_t>(rows.size());
        if (places.extent < 1 || places.extent > kMostMore * count * stage.extents[d]) continue;
        const Expr of_row = ir::Replace(e, {{places.index, row}});
        ir::Buffer& buffer = made[of_row];
        NestStage part = stage;
        std::vector<Expr> extents, at(stage.axes.begin(), stage.axes.end());
        at[d] = places.index;
        if (!buffer) {
          part.name += StrCat(".rows", number_++);
          part.low.assign(part.low.size(), 0);
          part.extents[d] = places.extent;
          ir::VarMap fresh;
          for (size_t k = 0; k < part.axes.size(); ++k) {
            part.axes[k] = c_.NewVar(stage.axes[k].name(), stage.axes[k].type());
            fresh[k == d ? row : stage.axes[k]] = part.axes[k];
            extents.push_back(c_.Int(part.axes[k].type(), part.extents[k]));
          }
          part.value = ir::Substitute(of_row, fresh);
          buffer = c_.NewBuffer(StrCat(stage.target->name, ".rows"), e.type(), extents);
          part.target = buffer;
          stages_.locals.push_back(buffer);
          Add(std::move(part), list);
        }
        by[e] = c_.Load(buffer, at);
      }
      if (!by.empty()) stage.value = ir::Replace(stage.value, by);
    }
    list.push_back(std::move(stage));
  }

  struct ById {
    bool operator()(const Expr& a, const Expr& b) const { return a.id() < b.id(); }
  };

  const ir::Function& function_;
  ir::Context& c_;
  NestStages& stages_;
  const NestStage* stage_ = nullptr;
  std::optional<AxisSplit> split_;
  std::vector<NestStage> before_;  // stages that the stage needs
  absl::flat_hash_map<std::pair<ir::Buffer, size_t>, ir::Buffer> padded_;  // of the stage
  int number_ = 0;                                                         // of stages
  // By type, length, that of rows, and values.
  std::map<std::tuple<ir::Type, int64_t, int64_t, std::vector<uint8_t>>, ir::Buffer> made_;
};

}  // namespace

std::optional<Quotient> QuotientOf(const std::vector<int64_t>& table) {
  const int64_t count = static_cast<int64_t>(table.size());
  if (count == 0) return std::nullopt;
  if (std::all_of(table.begin(), table.end(), [&](int64_t t) { return t == table[0]; })) {
    return Quotient{.factor = 0, .shift = table[0], .divisor = 1};
  }
  // A table that is clamped at its ends has divisors of about its length.
  const int64_t rise = table.back() - table.front(), steps = count - 1;
  for (int64_t divisor = 1; divisor <= 2 * count; ++divisor) {
    const int64_t least = ir::FloorDiv(rise * divisor, steps) - 1;
    for (int64_t factor = least; factor <= least + 3; ++factor) {
      // divisor * t <= factor * i + shift < divisor * (t + 1)
      int64_t low = divisor * table[0], high = low + divisor;
      for (int64_t i = 1; i < count && low < high; ++i) {
        const int64_t shift = divisor * table[i] - factor * i;
        low = std::max(low, shift), high = std::min(high, shift + divisor);
      }
      if (low < high) return Quotient{.factor = factor, .shift = low, .divisor = divisor};
    }
  }
  return std::nullopt;
}

void TabulatePlaces(const ir::Function& function, NestStages& stages) {
  Tabulator(function, stages).Run();
}

}  // namespace polynao::poly
