#include "compiler/poly/card/place_tables.h"

#include <algorithm>
#include <limits>
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
        MakePlans();
        for (Expr* e : {&stage.value, &stage.element}) {
          if (*e) *e = Tabulated(*e);
        }
        if (split_) InSteps(stage);
        for (NestStage& made : before_) list.push_back(std::move(made));
        before_.clear();
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
      const auto it = e.Is(ExprKind::kLoad) ? forms_.find(operand) : forms_.end();
      if (it != forms_.end()) {
        const ir::Buffer buffer = padded ? padded : ir::Buffer(e.buffer());
        if (it->second.margins) padded = Padded(buffer, i, *it->second.margins);
        operands.push_back(At(it->second));
        continue;
      }
      const bool is_left = stays || e.Is(ExprKind::kLoad);
      operands.push_back(is_left ? operand : Tabulated(operand));
    }
    if (padded) return c_.Load(padded, operands);
    return operands.empty() ? e : c_.Rebuild(e, operands);
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
      table = NewTable({extent}, e.type(), var.type(), [&](const std::vector<ir::Var>& axes) {
        return ir::Substitute(e, {{var, axes[0]}});
      });
      if (length > 1) {
        const ir::Buffer numbers = table;
        table =
            NewTable({extent, length}, e.type(), var.type(),
                     [&](const std::vector<ir::Var>& axes) { return c_.Load(numbers, {axes[0]}); });
      }
    }
    if (extents.size() == table->extents.size()) return c_.Load(table, at);
    const auto view = std::find_if(stages_.views.begin(), stages_.views.end(), [&](const auto& v) {
      return v.second == table && v.first->extents == extents;
    });
    return c_.Load(view == stages_.views.end() ? NewView(table, extents) : view->first, at);
  }

  // A buffer that a stage before this one stores, by a group of its own.
  template <typename Value>
  ir::Buffer NewTable(const std::vector<int64_t>& extents, ir::Type type, ir::Type index_type,
                      const Value& value) {
    const ir::Buffer table = NewLocal("table", type, index_type, extents);
    NestStage stage = {.name = NewName("table"),
                       .place = stage_->place,
                       .target = NewView(table, table->extents),
                       .axes = {},
                       .low = std::vector<int64_t>(extents.size()),
                       .extents = extents,
                       .value = {}};
    for (size_t d = 0; d < extents.size(); ++d) stage.axes.push_back(c_.NewVar("i", index_type));
    stage.value = value(stage.axes);
    before_.push_back(std::move(stage));
    return table;
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

  // ---- places

  using Tables = absl::flat_hash_map<Expr, std::vector<int64_t>>;
  // Which place of a buffer stands at each index.
  using Margins = std::map<int64_t, int64_t>;
  // An index: step * q + stride * s + shift of the place s in step q of an axis that is split, or a quotient; of the
  // buffer, or of its copy with margins, in which it holds for the first and the last places, too.
  //
  //   Y[i] = X[max((i - 1) / 2, 0)]    -->   X.padded[i] = X[max(i - 1, 0)]    Y[q, s] = X.padded[q + s]
  struct Form {
    size_t axis;
    Quotient quotient;
    int64_t step = 0, stride = 0, shift = 0;
    std::optional<size_t> margins = std::nullopt;
    int64_t InSteps(int64_t i, int64_t by) const {
      return step * (i / by) + stride * (i % by) + shift;
    }
  };
  struct Split {
    size_t axis;
    int64_t by;
    ir::Var steps, place;
  };

  // Finds what stands for each index of the stage: forms_, margins_, split_.
  void MakePlans() {
    forms_.clear(), margins_.clear(), padded_.clear();
    split_.reset();
    // Of long rows each is copied by itself; short ones repeat.
    constexpr int64_t kLongRow = 4096, kMostBy = 4;
    int64_t row = ir::ByteSize(stage_->target->type);
    for (size_t axis = stage_->axes.size(); axis-- > 0;) {
      const Tables tables = TablesOf(axis);
      const int64_t extent = stage_->extents[axis];
      const bool may_split = !split_ && !stage_->reduction && IsWhole(*stage_) && row < kLongRow;
      bool is_split = false;
      for (int64_t by = 2; by <= kMostBy && may_split && !is_split && !tables.empty(); ++by) {
        is_split = extent % by == 0 && Repeats(tables, axis, by);
        if (!is_split) continue;
        const ir::Var& var = stage_->axes[axis];
        split_ = {axis, by, c_.NewVar(var.name(), var.type()), c_.NewVar(var.name(), var.type())};
      }
      if (!is_split && !tables.empty()) FindQuotients(tables, axis);
      row *= extent;
    }
  }

  // The indices of an axis that are more than sums, if one of them is computed. Empty if they are in several dimensions
  // of one buffer.
  Tables TablesOf(size_t axis) {
    Tables tables;
    absl::flat_hash_map<ir::Buffer, size_t> dimensions;
    bool is_plain = true, has_computed = false;
    for (const Expr value : {stage_->value, stage_->element}) {
      if (!value) continue;
      ir::ForEachExpr(value, [&](Expr e) {
        if (!e.Is(ExprKind::kLoad)) return;
        for (size_t d = 0; d < e.operands().size(); ++d) {
          const Expr index = e.operands()[d];
          if (!IsComputed(index) && !index.Is(ExprKind::kDiv)) continue;
          if (OnlyAxisOf(index) != axis) continue;
          has_computed = has_computed || IsComputed(index);
          const ir::Buffer buffer(e.buffer());
          const auto values = ValuesOf(index, axis);
          is_plain = is_plain && values && dimensions.try_emplace(buffer, d).first->second == d;
          for (const Expr extent : buffer->extents) {
            is_plain = is_plain && extent.Is(ExprKind::kIntImm);
          }
          if (values) tables[index] = IntegersOf(*values);
        }
      });
    }
    return is_plain && has_computed ? tables : Tables();
  }

  // Adds what stands at each index, if no index stands for two places.
  static bool Join(const Margins& more, Margins& margins) {
    for (const auto& [index, place] : more) {
      const auto it = margins.find(index);
      if (it != margins.end() && it->second != place) return false;
    }
    margins.insert(more.begin(), more.end());
    return true;
  }
  // All places from the first index to the last one; what nobody reads is what stands before it.
  static std::vector<int64_t> TableOf(const Margins& margins) {
    std::vector<int64_t> table;
    for (int64_t i = margins.begin()->first; i <= margins.rbegin()->first; ++i) {
      const auto it = margins.find(i);
      table.push_back(it == margins.end() ? table.back() : it->second);
    }
    return table;
  }
  // Takes the forms of all tables of an axis, `at` giving the index for each place. False, and nothing is changed, if
  // margins are no quotients, or there are more than `most` copies.
  template <typename At>
  bool TakeForms(const Tables& tables, absl::flat_hash_map<Expr, Form> forms, size_t most,
                 const At& at) {
    std::vector<Margins> margins;
    absl::flat_hash_map<Expr, size_t> number;
    for (const auto& [index, table] : tables) {
      Margins own;
      for (size_t i = 0; i < table.size(); ++i) {
        const int64_t from = at(forms.at(index), static_cast<int64_t>(i));
        if (own.try_emplace(from, table[i]).first->second != table[i]) return false;
      }
      size_t k = 0;
      while (k < margins.size() && !Join(own, margins[k])) ++k;
      if (k == margins.size()) margins.push_back(own);
      number[index] = k;
    }
    if (margins.size() > most) return false;
    std::vector<bool> is_same;
    for (const Margins& of : margins) {
      is_same.push_back(
          std::all_of(of.begin(), of.end(), [](const auto& p) { return p.first == p.second; }));
      if (!is_same.back() && !QuotientOf(TableOf(of))) return false;
    }
    for (auto& [index, form] : forms) {
      const size_t k = number.at(index);
      if (!is_same[k]) form.margins = margins_.size() + k;
      forms_.emplace(index, form);
    }
    margins_.insert(margins_.end(), margins.begin(), margins.end());
    return true;
  }

  // Whether the tables are steps of so many places, but for the ends.
  bool Repeats(const Tables& tables, size_t axis, int64_t by) {
    absl::flat_hash_map<Expr, Form> forms;
    for (const auto& [index, table] : tables) {
      const int64_t count = static_cast<int64_t>(table.size());
      if (count < 4 * by) return false;
      // What a place in the middle says holds for most others.
      const int64_t middle = count / by / 2;
      const auto at = [&, &values = table](int64_t q, int64_t s) { return values[q * by + s]; };
      Form form = {.axis = axis, .quotient = {}};
      form.step = at(middle + 1, 0) - at(middle, 0);
      form.stride = at(middle, 1) - at(middle, 0);
      form.shift = at(middle, 0) - form.step * middle;
      for (int64_t i = by; i < count - by; ++i) {
        if (form.InSteps(i, by) != table[i]) return false;
      }
      if (form.step < 1) return false;
      forms.emplace(index, form);
    }
    return TakeForms(tables, forms, tables.size(),
                     [&](const Form& f, int64_t i) { return f.InSteps(i, by); });
  }

  // Quotients that differ in their shifts alone: so those who place rows know how far apart they are.
  void FindQuotients(const Tables& tables, size_t axis) {
    const int64_t extent = stage_->extents[axis];
    const std::vector<int64_t>& any = tables.begin()->second;
    const int64_t steps = std::max<int64_t>(1, extent - 1), rise = any.back() - any.front();
    for (const Ends ends : {Ends{}, Ends{.last = true}, Ends{.first = true, .last = true}}) {
      // All read one copy, or several.
      for (const size_t most : {size_t{1}, tables.size()}) {
        for (int64_t divisor = 1; divisor <= 4 * extent; ++divisor) {
          const int64_t least = ir::FloorDiv(rise * divisor, steps) - 1;
          for (int64_t factor = least; factor <= least + 3; ++factor) {
            absl::flat_hash_map<Expr, Form> forms;
            for (const auto& [index, table] : tables) {
              const std::optional<int64_t> shift = ShiftOf(table, factor, divisor, ends);
              if (!shift) break;
              forms.emplace(index, Form{.axis = axis, .quotient = {factor, *shift, divisor}});
            }
            const auto at = [](const Form& f, int64_t i) { return f.quotient.At(i); };
            if (forms.size() == tables.size() && TakeForms(tables, forms, most, at)) return;
          }
        }
      }
    }
  }

  Expr At(const Form& form) const {
    const int64_t first = form.margins ? margins_[*form.margins].begin()->first : 0;
    if (!split_ || split_->axis != form.axis) {
      Quotient q = form.quotient;
      q.shift -= first * q.divisor;
      // SplitAxes makes two axes of i / 2: that is a copy more where steps do not divide the axis.
      const bool divides = q.shift == 0 && stage_->extents[form.axis] % q.divisor == 0;
      if (q.factor == 1 && q.divisor > 1 && (!divides || forms_.size() > 1)) {
        q = {2, 2 * q.shift, 2 * q.divisor};
      }
      return QuotientAt(q, stage_->axes[form.axis]);
    }
    Expr at = form.step == 1 ? Expr(split_->steps) : split_->steps * form.step;
    if (form.stride == 1) at = at + split_->place;
    if (form.stride != 0 && form.stride != 1) at = at + split_->place * form.stride;
    return form.shift == first ? at : at + (form.shift - first);
  }

  // A copy of a buffer with margins along a dimension.
  ir::Buffer Padded(ir::Buffer buffer, size_t dimension, size_t margins) {
    ir::Buffer& padded = padded_[{buffer, margins}];
    if (padded) return padded;
    const std::vector<int64_t> table = TableOf(margins_[margins]);
    const ir::Type type = stage_->axes[0].type();
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
  void InSteps(NestStage& stage) {
    const Split& split = *split_;
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
  std::optional<Split> split_;
  absl::flat_hash_map<Expr, Form> forms_;  // of indices
  std::vector<Margins> margins_;
  std::vector<NestStage> before_;  // stages that the stage needs
  absl::flat_hash_map<std::pair<ir::Buffer, size_t>, ir::Buffer> padded_;  // of the stage
  int number_ = 0;                                                         // of stages
  // By type, length, that of rows, and values.
  std::map<std::tuple<ir::Type, int64_t, int64_t, std::vector<uint8_t>>, ir::Buffer> made_;
};

}  // namespace

std::optional<int64_t> ShiftOf(const std::vector<int64_t>& table, int64_t factor, int64_t divisor,
                               const Ends& ends) {
  size_t first = 0, last = table.size();
  while (ends.first && first + 1 < last && table[first] == table[0]) ++first;
  while (ends.last && first + 1 < last && table[last - 1] == table.back()) --last;
  // divisor * t <= factor * i + shift < divisor * (t + 1)
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  for (size_t i = first; i < last; ++i) {
    const int64_t shift = divisor * table[i] - factor * static_cast<int64_t>(i);
    low = std::max(low, shift), high = std::min(high, shift + divisor);
    if (low >= high) return std::nullopt;
  }
  return low;
}

std::optional<Quotient> QuotientOf(const std::vector<int64_t>& table) {
  const int64_t steps = static_cast<int64_t>(table.size()) - 1;
  if (steps < 1) return Quotient{.factor = 0, .shift = table[0], .divisor = 1};
  // A table that is clamped at its ends has divisors of about its length.
  for (int64_t divisor = 1; divisor <= 2 * steps; ++divisor) {
    const int64_t least = ir::FloorDiv((table.back() - table.front()) * divisor, steps) - 1;
    for (int64_t factor = least; factor <= least + 3; ++factor) {
      const std::optional<int64_t> shift = ShiftOf(table, factor, divisor, {});
      if (shift) return Quotient{.factor = factor, .shift = *shift, .divisor = divisor};
    }
  }
  return std::nullopt;
}

void TabulatePlaces(const ir::Function& function, NestStages& stages) {
  Tabulator(function, stages).Run();
}

}  // namespace polynao::poly
