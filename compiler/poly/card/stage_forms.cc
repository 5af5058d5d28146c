#include "compiler/poly/card/stage_forms.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/math.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/logic.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/iteration_box.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;

// The values of `axes` within `extents` for which `condition` holds, if these are a box: comparisons of one axis and a
// number each, joined by `&&`. No condition holds for all.
std::optional<std::vector<Bound>> InsideOf(Expr condition, const std::vector<ir::Var>& axes,
                                           const std::vector<int64_t>& extents) {
  std::vector<Bound> box;
  for (int64_t extent : extents) box.push_back({0, extent});
  for (const Expr e : condition ? arith::Conjuncts(condition) : std::vector<Expr>()) {
    if (!e.Is(ExprKind::kLe) && !e.Is(ExprKind::kLt)) return std::nullopt;
    // number <= axis + constant, axis + constant <= number; < alike
    const bool is_below = e.operand(1).Is(ExprKind::kIntImm);
    const Expr number = e.operand(is_below ? 1 : 0);
    arith::LinearForm form = arith::Decompose(e.operand(is_below ? 0 : 1));
    if (!number.Is(ExprKind::kIntImm) || form.terms().size() != 1 ||
        form.terms()[0].coefficient != 1) {
      return std::nullopt;
    }
    const auto it = std::find(axes.begin(), axes.end(), form.terms()[0].atom);
    if (it == axes.end()) return std::nullopt;
    Bound& bound = box[it - axes.begin()];
    const int64_t end = bound.min + bound.extent, strict = e.Is(ExprKind::kLt);
    const int64_t value = number.int_value() - form.constant();
    const int64_t least = is_below ? bound.min : std::max(bound.min, value + strict);
    const int64_t most = is_below ? std::min(end, value + 1 - strict) : end;
    bound = {least, most - least};
  }
  return box;
}

// `e` with loads of `from` as loads of `to`, at indices that are so much larger.
Expr Reading(Expr e, ir::Buffer from, ir::Buffer to, const std::vector<int64_t>& more) {
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) operands.push_back(Reading(operand, from, to, more));
  if (!e.Is(ExprKind::kLoad) || !(ir::Buffer(e.buffer()) == from)) {
    return operands.empty() ? e : e.context().Rebuild(e, operands);
  }
  for (size_t d = 0; d < operands.size(); ++d) {
    if (more[d] != 0) operands[d] = operands[d] + more[d];
  }
  return e.context().Load(to, operands);
}

// Whether stages store the buffer in another shape, or it is one of another buffer.
bool HasShapes(const NestStages& stages, ir::Buffer buffer) {
  return std::any_of(stages.views.begin(), stages.views.end(), [&](const auto& view) {
    return view.first == buffer || view.second == buffer;
  });
}

class UnitDropper {
 public:
  UnitDropper(ir::Context& c, NestStages& stages) : c_(c), stages_(stages) {}

  void Run() {
    for (NestStage& stage : stages_.list) {
      DropRanges(stage);
      const ir::Buffer target = stage.target, without = Without(target);
      stage.value = InExpression(stage.value);
      stage.element = InExpression(stage.element);
      if (without == target) continue;
      ir::VarMap by;
      for (size_t d = target->extents.size(); d-- > 0;) {
        if (!kept_.at(target)[d]) {
          const auto at = static_cast<ptrdiff_t>(d);
          by[stage.axes[d]] = c_.Int(stage.axes[d].type(), 0);
          stage.axes.erase(stage.axes.begin() + at);
          stage.low.erase(stage.low.begin() + at);
          stage.extents.erase(stage.extents.begin() + at);
        }
      }
      for (Expr* e : {&stage.value, &stage.element}) {
        if (*e) *e = ir::Substitute(*e, by);
      }
      stage.target = without;
    }
    for (auto& [view, whole] : stages_.views) {
      const auto it = without_.find(whole);
      if (it == without_.end()) continue;
      const bool is_local =
          std::count(stages_.locals.begin(), stages_.locals.end(), it->second) > 0;
      if (is_local) whole = it->second;
    }
  }

 private:
  // Ranges of one element but the last one that is left.
  void DropRanges(NestStage& stage) {
    ir::VarMap by;
    for (size_t r = stage.ranges.size(); r-- > 0 && stage.ranges.size() > 1;) {
      const NestStage::ReduceRange& range = stage.ranges[r];
      if (range.extent != 1) continue;
      by[range.var] = c_.Int(range.var.type(), range.min);
      stage.ranges.erase(stage.ranges.begin() + static_cast<ptrdiff_t>(r));
    }
    if (!by.empty()) stage.element = ir::Substitute(stage.element, by);
  }
  // The buffer without its dimensions of one element, or itself if it has none, or one dimension.
  ir::Buffer Without(ir::Buffer buffer) {
    const auto [it, is_new] = without_.try_emplace(buffer, buffer);
    if (!is_new) return it->second;
    std::vector<bool> kept;
    std::vector<Expr> extents;
    for (const Expr extent : buffer->extents) {
      kept.push_back(!extent.IsInt(1));
      if (kept.back()) extents.push_back(extent);
    }
    if (extents.size() == kept.size() || kept.size() < 2) return buffer;
    if (extents.empty()) {
      kept.back() = true;
      extents.push_back(buffer->extents.back());
    }
    const ir::Buffer without = c_.NewBuffer(buffer->name, buffer->type, extents);
    const auto local = std::find(stages_.locals.begin(), stages_.locals.end(), buffer);
    if (local != stages_.locals.end()) {
      *local = without;
    } else {
      stages_.views.emplace_back(without, buffer);
    }
    kept_[buffer] = std::move(kept);
    without_[buffer] = without;
    return without;
  }

  Expr InExpression(Expr e) {
    if (!e) return e;
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(InExpression(operand));
    if (!e.Is(ExprKind::kLoad)) return operands.empty() ? e : c_.Rebuild(e, operands);
    const ir::Buffer buffer(e.buffer()), without = Without(buffer);
    if (without == buffer) return operands.empty() ? e : c_.Rebuild(e, operands);
    std::vector<Expr> indices;
    for (size_t d = 0; d < operands.size(); ++d) {
      if (kept_.at(buffer)[d]) indices.push_back(operands[d]);
    }
    return c_.Load(without, indices);
  }

  ir::Context& c_;
  NestStages& stages_;
  absl::flat_hash_map<ir::Buffer, ir::Buffer> without_;
  absl::flat_hash_map<ir::Buffer, std::vector<bool>> kept_;
};

// A sum of one of `axes` and a number: its number and the constant.
std::optional<std::pair<size_t, int64_t>> AxisPlusNumber(Expr e, const std::vector<ir::Var>& axes) {
  const arith::LinearForm form = arith::Decompose(e);
  if (form.terms().size() != 1 || form.terms()[0].coefficient != 1) return std::nullopt;
  const auto it = std::find(axes.begin(), axes.end(), form.terms()[0].atom);
  if (it == axes.end()) return std::nullopt;
  return std::pair(static_cast<size_t>(it - axes.begin()), form.constant());
}

// Selects inside one another with one number for all else, as one.
Expr Flattened(Expr e) {
  while (e.Is(ExprKind::kSelect) && e.operand(1).Is(ExprKind::kSelect) && e.operand(2).IsConst() &&
         e.operand(1).operand(2) == e.operand(2)) {
    const Expr inner = e.operand(1);
    e = e.context().Select(ir::And(e.operand(0), inner.operand(0)), inner.operand(1), e.operand(2));
  }
  return e;
}

// `e` with integers divided by one as they are: a quotient would hide an axis, and its stage would not be read as the
// convolution that it is. Groups of one block of channels are written so.
Expr WithoutDivisionsByOne(Expr e, ir::ExprMap<Expr>& done) {
  if (const Expr* known = done.Find(e)) return *known;
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) operands.push_back(WithoutDivisionsByOne(operand, done));
  Expr result = operands.empty() ? e : e.context().Rebuild(e, operands);
  if (e.Is(ExprKind::kDiv) && e.operand(1).IsInt(1)) result = operands[0];
  if (e.Is(ExprKind::kMod) && e.operand(1).IsInt(1)) result = e.context().Int(e.type(), 0);
  return done.Set(e, result);
}

class AxisSplitter {
 public:
  AxisSplitter(ir::Context& c, NestStages& stages) : c_(c), stages_(stages) {}

  void Run() {
    ir::ExprMap<Expr> undivided;
    for (NestStage& stage : stages_.list) {
      for (Expr* e : {&stage.value, &stage.element}) {
        if (*e) *e = WithoutDivisionsByOne(*e, undivided);
      }
    }
    // An axis may be split into parts that are split again: p / w % h.
    constexpr int kMostSplits = 8;
    for (size_t i = 0; i < stages_.list.size(); ++i) {
      for (int k = 0; k < kMostSplits && Find(stages_.list[i]); ++k) Split(i);
    }
  }

 private:
  // Looks for an axis to split: axis_, by_, before_.
  bool Find(const NestStage& stage) {
    for (const Expr e : {stage.value, stage.element}) {
      bool found = false;
      if (!e) continue;
      ir::ForEachExpr(e, [&](Expr part) {
        if (found || (!part.Is(ExprKind::kDiv) && !part.Is(ExprKind::kMod))) return;
        const auto place = AxisPlusNumber(part.operand(0), stage.axes);
        if (!place || !part.operand(1).Is(ExprKind::kIntImm)) return;
        const int64_t by = part.operand(1).int_value();
        if (by < 2 || by >= stage.extents[place->first] + ir::FloorMod(place->second, by)) return;
        const int64_t before = ir::FloorMod(place->second, by);
        if (!MayBeLonger(stage, place->first, by, before)) return;
        axis_ = place->first, by_ = by, before_ = before;
        found = true;
      });
      if (found) return true;
    }
    return false;
  }

  // Whether a stage that is no select may compute elements in front of its axis and behind it, to whole steps: what it
  // reads there exists.
  static bool MayBeLonger(const NestStage& stage, size_t axis, int64_t by, int64_t before) {
    const int64_t end = CeilDiv(stage.extents[axis] + before, by) * by - before;
    if (before == 0 && end == stage.extents[axis]) return true;
    arith::VarRanges ranges;
    for (size_t d = 0; d < stage.axes.size(); ++d)
      ranges[stage.axes[d]] = {0, stage.extents[d] - 1};
    ranges[stage.axes[axis]] = {-before, end - 1};
    for (const NestStage::ReduceRange& range : stage.ranges) {
      ranges[range.var] = {range.min, range.min + range.extent - 1};
    }
    bool exists = true;
    for (const Expr e : {stage.value, stage.element}) {
      if (!e || e.Is(ExprKind::kSelect)) continue;
      ir::ForEachExpr(e, [&](Expr part) {
        for (size_t d = 0; part.Is(ExprKind::kLoad) && d < part.operands().size(); ++d) {
          const arith::ConstRange range = arith::RangeOf(part.operand(d), ranges);
          const Expr extent = ir::Buffer(part.buffer())->extents[d];
          const arith::ConstRange inside = {
              0, extent.Is(ExprKind::kIntImm) ? extent.int_value() - 1 : 0};
          exists = exists && arith::Intersect(range, inside) == range;
        }
      });
    }
    return exists;
  }

  bool IsLocalOfOneStage(ir::Buffer buffer) const {
    const auto is = [&](const NestStage& s) { return s.target == buffer; };
    return std::count(stages_.locals.begin(), stages_.locals.end(), buffer) > 0 &&
           !HasShapes(stages_, buffer) &&
           std::count_if(stages_.list.begin(), stages_.list.end(), is) == 1;
  }

  // The local of which a split stage's target is a shape, if no other stage stores there, and which of its dimensions
  // dimension d of the target is.
  std::optional<std::pair<ir::Buffer, size_t>> LocalOfShape(ir::Buffer target, size_t d) const {
    const auto view = std::find_if(stages_.views.begin(), stages_.views.end(),
                                   [&](const auto& pair) { return pair.first == target; });
    if (view == stages_.views.end()) return std::nullopt;
    const ir::Buffer local = view->second;
    if (std::count(stages_.locals.begin(), stages_.locals.end(), local) == 0) return std::nullopt;
    for (const auto& [other, of] : stages_.views) {
      if (of == local && other != target) return std::nullopt;
    }
    const auto stores = [&](const NestStage& s) { return s.target == local || s.target == target; };
    if (std::count_if(stages_.list.begin(), stages_.list.end(), stores) != 1) return std::nullopt;
    const auto elements = [](ir::Buffer buffer, size_t dimensions) {
      int64_t count = 1;
      for (size_t k = 0; k < dimensions; ++k) count *= buffer->extents[k].int_value();
      return count;
    };
    for (size_t k = 0; k < local->extents.size(); ++k) {
      const bool is_it = local->extents[k].IsInt(target->extents[d].int_value()) &&
                         elements(local, k) == elements(target, d);
      if (is_it) return std::pair(local, k);
    }
    return std::nullopt;
  }

  Expr Int(int64_t i) const { return c_.Int(old_.axes[axis_].type(), i); }
  static Expr Plus(Expr e, int64_t i) { return i == 0 ? e : e + i; }

  void Split(size_t i) {
    NestStage& stage = stages_.list[i];
    old_ = stage;
    const int64_t extent = old_.extents[axis_], steps = CeilDiv(extent + before_, by_);
    steps_ = c_.NewVar(old_.axes[axis_].name(), old_.axes[axis_].type());
    place_ = c_.NewVar(old_.axes[axis_].name(), old_.axes[axis_].type());
    const auto at = static_cast<ptrdiff_t>(axis_);
    const auto make_two = [&](auto& list, auto first, auto second) {
      list[axis_] = first;
      list.insert(list.begin() + at + 1, second);
    };
    make_two(stage.axes, steps_, place_);
    make_two(stage.extents, steps, by_);
    stage.low.assign(stage.axes.size(), 0);
    std::vector<Expr> whole, view;
    for (size_t d = 0; d < old_.axes.size(); ++d) whole.push_back(Int(old_.extents[d]));
    whole[axis_] = Int(steps * by_);
    view = whole;
    make_two(view, Int(steps), Int(by_));
    const bool is_whole = IsWhole(old_), is_same = is_whole && steps * by_ == extent;
    const ir::Buffer target = old_.target;
    // Another axis was split before: readers have the local's dimensions.
    const auto local = is_whole && !is_same ? LocalOfShape(target, axis_) : std::nullopt;
    if (local) {
      whole = local->first->extents;
      whole[local->second] = Int(steps * by_);
    }
    const ir::Buffer base = is_same ? target : c_.NewBuffer(target->name, target->type, whole);
    stage.name += ".split";
    stage.target = c_.NewBuffer(StrCat(target->name, ".split"), target->type, view);
    stages_.views.emplace_back(stage.target, base);
    if (stage.value) stage.value = Value(Flattened(stage.value), steps);
    if (stage.element) stage.element = InSplit(stage.element, place_);
    if (is_same) return;
    stages_.locals.push_back(base);
    if (local || (is_whole && IsLocalOfOneStage(target))) {
      const ir::Buffer read = local ? local->first : target;
      std::erase(stages_.locals, read);
      std::erase_if(stages_.views, [&](const auto& pair) { return pair.second == read; });
      std::vector<int64_t> more(read->extents.size());
      more[local ? local->second : axis_] = before_;
      for (NestStage& reader : stages_.list) {
        for (Expr* e : {&reader.value, &reader.element}) {
          if (*e) *e = Reading(*e, read, base, more);
        }
      }
      return;
    }
    NestStage copy = old_;
    copy.name += ".whole";
    copy.reduction.reset();
    copy.ranges.clear();
    copy.element = Expr();
    std::vector<Expr> from(copy.axes.begin(), copy.axes.end());
    from[axis_] = Plus(from[axis_], before_);
    copy.value = c_.Load(base, from);
    stages_.list.insert(stages_.list.begin() + static_cast<ptrdiff_t>(i) + 1, std::move(copy));
  }

  // `e` over the axes of the split stage, the place within a step being `place`.
  Expr InSplit(Expr e, Expr place) {
    const bool is_div = e.Is(ExprKind::kDiv);
    if ((is_div || e.Is(ExprKind::kMod)) && e.operand(1).IsInt(by_)) {
      const auto found = AxisPlusNumber(e.operand(0), old_.axes);
      if (found && found->first == axis_ && ir::FloorMod(found->second - before_, by_) == 0) {
        return is_div ? Plus(steps_, (found->second - before_) / by_) : place;
      }
    }
    if (e == old_.axes[axis_]) {
      if (place.Is(ExprKind::kIntImm)) return Plus(steps_ * by_, place.int_value() - before_);
      return Plus(steps_ * by_ + place, -before_);
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(InSplit(operand, place));
    return operands.empty() ? e : c_.Rebuild(e, operands);
  }

  // What the stage stores. A condition that asks for one place within a step is a box of the new axes.
  Expr Value(Expr value, int64_t steps) {
    std::optional<int64_t> place;
    Expr others;
    if (value.Is(ExprKind::kSelect)) {
      for (const Expr e : arith::Conjuncts(value.operand(0))) {
        const bool is_place = !place && e.Is(ExprKind::kEq) && e.operand(0).Is(ExprKind::kMod) &&
                              e.operand(1).Is(ExprKind::kIntImm) &&
                              InSplit(e.operand(0), place_) == Expr(place_);
        if (is_place) {
          place = e.operand(1).int_value();
        } else {
          others = others ? ir::And(others, e) : e;
        }
      }
    }
    if (!place) return InSplit(value, place_);
    const auto inside = InsideOf(others, old_.axes, old_.extents);
    Expr condition = ir::And(Int(*place) <= place_, place_ < Int(*place + 1));
    if (*place == 0) condition = place_ < Int(1);
    const auto require = [&](Expr e) { condition = ir::And(condition, e); };
    if (!inside && others) require(InSplit(others, Int(*place)));
    for (size_t d = 0; inside && d < old_.axes.size(); ++d) {
      const bool is_split = d == axis_;
      int64_t least = (*inside)[d].min, end = least + (*inside)[d].extent;
      if (is_split) {
        least = CeilDiv(least + before_ - *place, by_), end = CeilDiv(end + before_ - *place, by_);
      }
      const Expr axis = is_split ? steps_ : old_.axes[d];
      if (least > 0) require(Int(least) <= axis);
      if (end < (is_split ? steps : old_.extents[d])) require(axis < Int(end));
    }
    return c_.Select(condition, InSplit(value.operand(1), Int(*place)),
                     InSplit(value.operand(2), place_));
  }

  ir::Context& c_;
  NestStages& stages_;
  // The axis is split into steps of by_, the first of which begins before_ elements before.
  size_t axis_ = 0;
  int64_t by_ = 1, before_ = 0;
  NestStage old_;
  ir::Var steps_, place_;
};

class PlaceUnroller {
 public:
  PlaceUnroller(ir::Context& c, NestStages& stages) : c_(c), stages_(stages) {}

  void Run() {
    std::vector<NestStage> list;
    for (NestStage& stage : stages_.list) Add(std::move(stage), list);
    stages_.list = std::move(list);
  }

 private:
  static constexpr int64_t kMostPlaces = 4096;
  static constexpr size_t kMostRuns = 16, kMostStages = 500;

  // A condition on an axis, and where it begins to hold, or not to.
  struct Split {
    size_t axis;
    Expr condition;
    std::vector<int64_t> begins;
  };

  void Add(NestStage stage, std::vector<NestStage>& list) {
    const std::optional<Split> split =
        stage.reduction || list.size() > kMostStages ? std::nullopt : SplitOf(stage);
    if (!split) {
      list.push_back(std::move(stage));
      return;
    }
    const size_t axis = split->axis;
    for (size_t k = 0; k < split->begins.size(); ++k) {
      const int64_t begin = split->begins[k];
      const int64_t end = k + 1 < split->begins.size() ? split->begins[k + 1] : stage.extents[axis];
      NestStage run = stage;
      StrAppend(&run.name, ".", begin);
      ir::VarMap by;
      for (size_t d = 0; d < stage.axes.size(); ++d) {
        run.axes[d] = c_.NewVar(stage.axes[d].name(), stage.axes[d].type());
        by[stage.axes[d]] = run.axes[d];
      }
      const ir::Var& var = stage.axes[axis];
      if (end - begin == 1) {
        by[var] = c_.Int(var.type(), begin);
      } else if (begin > 0) {
        by[var] = run.axes[axis] + begin;
      }
      run.low[axis] += begin;
      run.extents[axis] = end - begin;
      const Expr holds = c_.Bool(*Holds(split->condition, var, begin));
      run.value = Folded(ir::Substitute(ir::Replace(stage.value, {{split->condition, holds}}), by));
      Add(std::move(run), list);
    }
  }

  // Whether the condition holds at a place; none of conditions that are no integers.
  static std::optional<bool> Holds(Expr condition, const ir::Var& var, int64_t value) {
    const absl::StatusOr<int64_t> holds = ir::EvaluateInt(condition, {{var, value}});
    return holds.ok() ? std::optional(*holds != 0) : std::nullopt;
  }

  // Of a select between two computed values.
  static std::optional<Split> SplitOf(const NestStage& stage) {
    std::optional<Split> found;
    ir::ForEachExpr(stage.value, [&](Expr e) {
      if (found || !e.Is(ExprKind::kSelect)) return;
      const bool is_copy = (e.operand(1).Is(ExprKind::kLoad) && e.operand(2).IsConst()) ||
                           (e.operand(2).Is(ExprKind::kLoad) && e.operand(1).IsConst());
      std::vector<size_t> axes;
      for (size_t d = 0; d < stage.axes.size(); ++d) {
        if (ir::UsesVar(e.operand(0), stage.axes[d])) axes.push_back(d);
      }
      bool has_loads = false;
      ir::ForEachExpr(e.operand(0),
                      [&](Expr part) { has_loads = has_loads || part.Is(ExprKind::kLoad); });
      if (is_copy || has_loads || axes.size() != 1 || stage.extents[axes[0]] > kMostPlaces) return;
      Split split = {.axis = axes[0], .condition = e.operand(0), .begins = {0}};
      const ir::Var& var = stage.axes[axes[0]];
      std::optional<bool> before = Holds(e.operand(0), var, 0);
      for (int64_t i = 1; before && i < stage.extents[axes[0]]; ++i) {
        const std::optional<bool> holds = Holds(e.operand(0), var, i);
        if (holds != before) split.begins.push_back(i);
        before = holds;
      }
      if (before && split.begins.size() <= kMostRuns) found = std::move(split);
    });
    return found;
  }

  // `e` without selects whose conditions are known.
  Expr Folded(Expr e) {
    if (e.Is(ExprKind::kSelect)) {
      const absl::StatusOr<int64_t> holds = ir::EvaluateInt(e.operand(0), {});
      if (holds.ok()) return Folded(e.operand(*holds != 0 ? 1 : 2));
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(Folded(operand));
    return operands.empty() ? e : c_.Rebuild(e, operands);
  }

  ir::Context& c_;
  NestStages& stages_;
};

}  // namespace

void NameVersions(ir::Context& c, NestStages& stages) {
  // Each takes memory of its own.
  constexpr size_t kMostVersions = 8;
  absl::flat_hash_map<std::string, int> names;
  for (const NestStage& stage : stages.list) ++names[stage.name];
  std::vector<ir::Buffer> targets;  // in the order of their first stores
  absl::flat_hash_map<ir::Buffer, std::vector<size_t>> writers_of;
  absl::flat_hash_set<ir::Buffer> are_read_first;
  for (size_t i = 0; i < stages.list.size(); ++i) {
    const ir::Buffer target = stages.list[i].target;
    for (const ir::Buffer read : ReadsOf(stages.list[i])) {
      if (!writers_of.contains(read)) are_read_first.insert(read);
    }
    std::vector<size_t>& writers = writers_of[target];
    if (writers.empty()) targets.push_back(target);
    writers.push_back(i);
  }
  for (const ir::Buffer target : targets) {
    const std::vector<size_t>& writers = writers_of.at(target);
    const bool are_whole = std::all_of(writers.begin(), writers.end(), [&](size_t i) {
      return names.at(stages.list[i].name) == 1 && IsWhole(stages.list[i]);
    });
    if (!are_whole || writers.size() < 2 || writers.size() > kMostVersions) continue;
    if (HasShapes(stages, target)) continue;
    const bool is_local = std::count(stages.locals.begin(), stages.locals.end(), target) > 0;
    if (are_read_first.contains(target) && !is_local) continue;
    const std::vector<int64_t> none(target->extents.size());
    for (size_t k = 0; k + 1 < writers.size(); ++k) {
      const ir::Buffer version =
          c.NewBuffer(StrCat(target->name, ".", k), target->type, target->extents);
      stages.locals.push_back(version);
      stages.list[writers[k]].target = version;
      for (size_t i = writers[k] + 1; i <= writers[k + 1]; ++i) {
        for (Expr* e : {&stages.list[i].value, &stages.list[i].element}) {
          if (*e) *e = Reading(*e, target, version, none);
        }
      }
    }
  }
}

void DropUnits(ir::Context& c, NestStages& stages) { UnitDropper(c, stages).Run(); }

void ShrinkLocals(ir::Context& c, NestStages& stages) {
  for (ir::Buffer& local : stages.locals) {
    const auto is_writer = [&](const NestStage& stage) { return stage.target == local; };
    const auto writer = std::find_if(stages.list.begin(), stages.list.end(), is_writer);
    if (writer == stages.list.end() || HasShapes(stages, local) ||
        std::count_if(stages.list.begin(), stages.list.end(), is_writer) != 1) {
      continue;
    }
    std::vector<Expr> extents;
    std::vector<int64_t> less;
    for (size_t d = 0; d < writer->extents.size(); ++d) {
      extents.push_back(c.Int(writer->axes[d].type(), writer->extents[d]));
      less.push_back(-writer->low[d]);
    }
    const ir::Buffer part = c.NewBuffer(local->name, local->type, extents);
    writer->target = part;
    writer->low.assign(writer->low.size(), 0);
    for (NestStage& stage : stages.list) {
      for (Expr* e : {&stage.value, &stage.element}) {
        if (*e) *e = Reading(*e, local, part, less);
      }
    }
    local = part;
  }
}

void TakeMarginsOff(ir::Context& c, NestStages& stages) {
  std::vector<NestStage> list;
  for (NestStage& stage : stages.list) {
    const Expr value = stage.value;
    const bool has_margins = !stage.reduction && value && value.Is(ExprKind::kSelect) &&
                             !value.operand(1).Is(ExprKind::kLoad) && !value.operand(1).IsConst() &&
                             value.operand(2).IsConst();
    auto inside =
        has_margins ? InsideOf(value.operand(0), stage.axes, stage.extents) : std::nullopt;
    if (has_margins && !inside && IsDefined(value.operand(1), stage)) {
      inside.emplace();
      for (const int64_t extent : stage.extents) inside->push_back({0, extent});
    }
    const bool is_empty = inside && std::any_of(inside->begin(), inside->end(),
                                                [](const Bound& b) { return b.extent <= 0; });
    if (is_empty) stage.value = value.operand(2);
    if (inside && !is_empty) {
      NestStage inner = stage;
      inner.name += ".inside";
      std::vector<Expr> extents, at;
      ir::VarMap by;
      for (size_t d = 0; d < stage.axes.size(); ++d) {
        const ir::Var axis = c.NewVar(stage.axes[d].name(), stage.axes[d].type());
        inner.axes[d] = axis;
        inner.low[d] = 0;
        inner.extents[d] = (*inside)[d].extent;
        extents.push_back(c.Int(axis.type(), inner.extents[d]));
        const int64_t min = (*inside)[d].min;
        by[stage.axes[d]] = min == 0 ? Expr(axis) : axis + min;
        at.push_back(min == 0 ? Expr(stage.axes[d]) : stage.axes[d] - min);
      }
      inner.value = ir::Substitute(value.operand(1), by);
      inner.target =
          c.NewBuffer(StrCat(stage.target->name, ".inside"), stage.target->type, extents);
      stages.locals.push_back(inner.target);
      stage.value = c.Select(value.operand(0), c.Load(inner.target, at), value.operand(2));
      list.push_back(std::move(inner));
    }
    list.push_back(std::move(stage));
  }
  stages.list = std::move(list);
}

void SplitAxes(ir::Context& c, NestStages& stages) { AxisSplitter(c, stages).Run(); }

void UnrollPlaces(ir::Context& c, NestStages& stages) { PlaceUnroller(c, stages).Run(); }

}  // namespace polynao::poly
