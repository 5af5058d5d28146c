#include "compiler/poly/card/nest_stages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

template <typename... Words>
absl::Status NoStage(const Statement& s, const Words&... words) {
  return InvalidInput("statement '", FirstLine(ir::Print(s.code)), "': ", words...);
}

// The domain's bounds, if it holds all points between them.
struct Bound {
  int64_t min, extent;
};
absl::StatusOr<std::vector<Bound>> BoxOf(const Statement& s) {
  std::vector<Bound> box;
  isl::set whole = isl::set::universe(s.domain.space());
  for (size_t d = 0; d < s.iterators.size(); ++d) {
    const int position = static_cast<int>(d);
    const isl::val least = isl::manage(isl_set_dim_min_val(s.domain.copy(), position));
    const isl::val most = isl::manage(isl_set_dim_max_val(s.domain.copy(), position));
    if (!least.is_int() || !most.is_int()) {
      return NoStage(s, "expected loops with constant bounds");
    }
    box.push_back({isl_val_get_num_si(least.get()),
                   isl_val_get_num_si(most.get()) - isl_val_get_num_si(least.get()) + 1});
    whole = isl::manage(isl_set_lower_bound_val(whole.release(), isl_dim_set,
                                                static_cast<unsigned>(d), least.copy()));
    whole = isl::manage(isl_set_upper_bound_val(whole.release(), isl_dim_set,
                                                static_cast<unsigned>(d), most.copy()));
  }
  if (!whole.is_equal(s.domain)) {
    return NoStage(s, "expected a box of iterations, found bounds that depend on other loops");
  }
  return box;
}

// Iterator + constant as the iterator's number; -1: a constant alone; -2: something else.
int IteratorOf(const Statement& s, Expr index, int64_t& constant) {
  constant = 0;
  if (index.Is(ExprKind::kIntImm)) {
    constant = index.int_value();
    return -1;
  }
  const bool adds = index.Is(ExprKind::kAdd) || index.Is(ExprKind::kSub);
  if (adds && index.operand(1).Is(ExprKind::kIntImm)) {
    constant = index.operand(1).int_value() * (index.Is(ExprKind::kAdd) ? 1 : -1);
    index = index.operand(0);
  } else if (index.Is(ExprKind::kAdd) && index.operand(0).Is(ExprKind::kIntImm)) {
    constant = index.operand(0).int_value();
    index = index.operand(1);
  }
  const auto it = std::find(s.iterators.begin(), s.iterators.end(), index);
  return it == s.iterators.end() ? -2 : static_cast<int>(it - s.iterators.begin());
}

// A sum without the summand that the statement updates: of (x + a) - b it is a - b. None if there is no such summand.
template <typename F>
std::optional<Expr> WithoutTarget(Expr e, const F& is_target) {
  if (!e.Is(ExprKind::kAdd) && !e.Is(ExprKind::kSub)) return std::nullopt;
  const Expr a = e.operand(0), b = e.operand(1);
  if (is_target(a)) return e.Is(ExprKind::kAdd) ? b : e.context().Const(e.type(), 0) - b;
  if (is_target(b) && e.Is(ExprKind::kAdd)) return a;
  if (const std::optional<Expr> rest = WithoutTarget(a, is_target)) {
    return e.context().Binary(e.kind(), *rest, b);
  }
  if (!e.Is(ExprKind::kAdd)) return std::nullopt;
  const std::optional<Expr> rest = WithoutTarget(b, is_target);
  return rest ? std::optional(a + *rest) : std::nullopt;
}

// The store that the statement is.
std::optional<Stmt> StoreOf(Stmt code) {
  while (code.Is(StmtKind::kIf) && code.else_case().IsEmpty()) code = code.then_case();
  return code.Is(StmtKind::kStore) ? std::optional(code) : std::nullopt;
}

// The values of `axes` within `extents` for which `condition` holds, if these are a box: comparisons of one axis and a
// number each, joined by `&&`. No condition holds for all.
std::optional<std::vector<Bound>> InsideOf(Expr condition, const std::vector<ir::Var>& axes,
                                           const std::vector<int64_t>& extents) {
  std::vector<Bound> box;
  for (int64_t extent : extents) box.push_back({0, extent});
  std::vector<Expr> stack;
  if (condition) stack.push_back(condition);
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (e.Is(ExprKind::kAnd)) {
      stack.insert(stack.end(), {e.operand(0), e.operand(1)});
      continue;
    }
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

// A stage with margins, select(inside, e, number), as a stage of the inner elements alone, for a tensor of their own,
// and one that copies them.
//
//   T[x] = select(1 <= x && x < 9, A[x - 1] + A[x], 0)   -->   T.inside[x] = A[x] + A[x + 1]   x in [0, 8)
//                                                              T[x] = select(1 <= x && x < 9, T.inside[x - 1], 0)
void TakeMarginsOff(ir::Context& c, NestStages& stages) {
  std::vector<NestStage> list;
  for (NestStage& stage : stages.list) {
    const Expr value = stage.value;
    const bool has_margins = !stage.reduction && value && value.Is(ExprKind::kSelect) &&
                             !value.operand(1).Is(ExprKind::kLoad) && !value.operand(1).IsConst() &&
                             value.operand(2).IsConst();
    const auto inside =
        has_margins ? InsideOf(value.operand(0), stage.axes, stage.extents) : std::nullopt;
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
        by[stage.axes[d]] = axis + (*inside)[d].min;
        at.push_back(stage.axes[d] - (*inside)[d].min);
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

// Locals of which one stage stores a part have that part alone: tiles may load more than they need, but nothing that is
// not stored.
void ShrinkLocals(ir::Context& c, NestStages& stages) {
  for (ir::Buffer& local : stages.locals) {
    const auto is_writer = [&](const NestStage& stage) { return stage.target == local; };
    const auto writer = std::find_if(stages.list.begin(), stages.list.end(), is_writer);
    if (writer == stages.list.end() ||
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

// Axes of which a stage's expressions use quotients and remainders, made two: y = 3 * q + a - before. So indices become
// sums of axes again. The stage stores another shape of its target where that holds the same elements, else another
// buffer, which readers of a local read in its place, and from which a stage copies to other targets.
//
//   T[x] = select((x + 1) % 3 == 0 && 1 <= x, A[(x + 1) / 3], 0)      x in [0, 7)
//     -->  T.split[q, a] = select(a < 1 && 1 <= q && q < 3, A[q], 0)  q, a in [0, 3); T[x] is T.split[x + 1]
class AxisSplitter {
 public:
  AxisSplitter(ir::Context& c, NestStages& stages) : c_(c), stages_(stages) {}

  void Run() {
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
        axis_ = place->first, by_ = by, before_ = ir::FloorMod(place->second, by);
        found = true;
      });
      if (found) return true;
    }
    return false;
  }

  static bool IsWhole(const NestStage& stage) {
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      if (stage.low[d] != 0 || !stage.target->extents[d].IsInt(stage.extents[d])) return false;
    }
    return true;
  }

  bool IsLocalOfOneStage(ir::Buffer buffer) const {
    const auto is = [&](const NestStage& s) { return s.target == buffer; };
    return std::count(stages_.locals.begin(), stages_.locals.end(), buffer) > 0 &&
           std::count_if(stages_.list.begin(), stages_.list.end(), is) == 1;
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
    const bool is_same = IsWhole(old_) && steps * by_ == extent;
    const ir::Buffer target = old_.target;
    const ir::Buffer base = is_same ? target : c_.NewBuffer(target->name, target->type, whole);
    stage.name += ".split";
    stage.target = c_.NewBuffer(StrCat(target->name, ".split"), target->type, view);
    stages_.views.emplace_back(stage.target, base);
    if (stage.value) stage.value = Value(Flattened(stage.value), steps);
    if (stage.element) stage.element = InSplit(stage.element, place_);
    if (is_same) return;
    stages_.locals.push_back(base);
    if (IsWhole(old_) && IsLocalOfOneStage(target)) {
      std::erase(stages_.locals, target);
      std::vector<int64_t> more(old_.axes.size());
      more[axis_] = before_;
      for (NestStage& reader : stages_.list) {
        for (Expr* e : {&reader.value, &reader.element}) {
          if (*e) *e = Reading(*e, target, base, more);
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
      std::vector<Expr> stack = {value.operand(0)};
      while (!stack.empty()) {
        const Expr e = stack.back();
        stack.pop_back();
        if (e.Is(ExprKind::kAnd)) {
          stack.insert(stack.end(), {e.operand(0), e.operand(1)});
          continue;
        }
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

// A stage that computes one or the other expression by a condition on one axis becomes a stage for each run of places.
//
//   T[e, i] = select(e == 0, A[i] + B[i], A[i])   e in [0, 9)   -->   T[0, i] = A[i] + B[i]   T[e, i] = A[i]  e in [1, 9)
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

// Allocations in loops, moved out of them: each iteration has its own part. None if there are none to move.
//
//   for (i, 0, n) { allocate t: f32[m]  .. t[j] .. }   -->   allocate t: f32[n, m]  for (i, 0, n) { .. t[i, j] .. }
class Expander : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  std::optional<Stmt> Run(Stmt s) {
    Stmt body = Mutate(s);
    if (expanded_.empty()) return std::nullopt;
    for (ir::Buffer buffer : expanded_) body = body.context().Allocate(buffer, body);
    return body;
  }

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kFor)) {
      loops_.push_back(s);
      const Stmt loop = MutateChildren(s);
      loops_.pop_back();
      return loop;
    }
    if (s.Is(StmtKind::kAllocate) && !loops_.empty() && Expand(s.buffer())) return Mutate(s.body());
    s = MutateChildren(s);
    if (!s.Is(StmtKind::kStore)) return s;
    const auto it = by_.find(s.buffer());
    if (it == by_.end()) return s;
    return s.context().Store(it->second.first, At(it->second.second, s.indices()), s.value());
  }
  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    if (!e.Is(ExprKind::kLoad)) return e;
    const auto it = by_.find(ir::Buffer(e.buffer()));
    if (it == by_.end()) return e;
    return e.context().Load(it->second.first, At(it->second.second, e.operands()));
  }

 private:
  static constexpr double kMostElements = 1 << 26;

  // Whether the buffer got a part for each iteration of the loops around it.
  bool Expand(ir::Buffer buffer) {
    ir::Context& c = *buffer->context;
    std::vector<Expr> extents, at;
    double elements = 1;
    for (const Stmt& loop : loops_) {
      const absl::StatusOr<int64_t> min = ir::EvaluateInt(loop.min(), {});
      const absl::StatusOr<int64_t> extent = ir::EvaluateInt(loop.extent(), {});
      if (!min.ok() || !extent.ok() || *extent < 1 || loop.for_kind() == ir::ForKind::kThread) {
        return false;
      }
      elements *= static_cast<double>(*extent);
      extents.push_back(c.Int(loop.var().type(), *extent));
      at.push_back(*min == 0 ? Expr(loop.var()) : loop.var() - *min);
    }
    for (Expr extent : buffer->extents) {
      const absl::StatusOr<int64_t> number = ir::EvaluateInt(extent, {});
      if (!number.ok()) return false;
      elements *= static_cast<double>(*number);
      extents.push_back(extent);
    }
    if (elements > kMostElements) return false;
    expanded_.push_back(c.NewBuffer(buffer->name, buffer->type, extents));
    by_[buffer] = {expanded_.back(), at};
    return true;
  }

  static std::vector<Expr> At(std::vector<Expr> at, absl::Span<const Expr> indices) {
    at.insert(at.end(), indices.begin(), indices.end());
    return at;
  }

  std::vector<Stmt> loops_;
  std::vector<ir::Buffer> expanded_;
  absl::flat_hash_map<ir::Buffer, std::pair<ir::Buffer, std::vector<Expr>>> by_;
};

class StageFinder {
 public:
  StageFinder(const ir::Function& function, const Scop& scop, const Dependences& dependences)
      : function_(function), scop_(scop), dependences_(dependences) {}

  absl::StatusOr<NestStages> Run() {
    RETURN_IF_ERROR(CheckOrder());
    NestStages stages;
    stages.locals = scop_.locals;
    for (size_t i = 0; i < scop_.statements.size(); ++i) {
      ASSIGN_OR_RETURN(NestStage stage, StageOf(scop_.statements[i]));
      stages.list.push_back(std::move(stage));
    }
    for (size_t i = 0; i < stages.list.size(); ++i) FindStart(stages.list, i);
    std::erase_if(stages.list, [](const NestStage& stage) { return !stage.target; });
    return stages;
  }

 private:
  // Each statement runs as a whole, one after the other.
  absl::Status CheckOrder() const {
    std::map<std::string, size_t> numbers;
    for (size_t i = 0; i < scop_.statements.size(); ++i) numbers[scop_.statements[i].name] = i;
    for (const isl::map& pairs : MapsOf(dependences_.All())) {
      const size_t from = numbers.at(DomainName(pairs)), to = numbers.at(RangeName(pairs));
      if (from < to) continue;
      const Statement& s = scop_.statements[to];
      if (from == to) {
        return NoStage(s, "expected that no iteration needs what another one stores");
      }
      return NoStage(s, "expected that no iteration needs what '",
                     FirstLine(ir::Print(scop_.statements[from].code)),
                     "' stores in an earlier one");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NestStage> StageOf(const Statement& s) const {
    const std::optional<Stmt> store = StoreOf(s.code);
    if (s.is_opaque || !store || s.code.Is(StmtKind::kIf)) {
      return NoStage(s, "expected one store, under affine conditions");
    }
    ASSIGN_OR_RETURN(const std::vector<Bound> box, BoxOf(s));
    NestStage stage = {.name = s.name,
                       .place = FirstLine(ir::Print(s.code)),
                       .target = store->buffer(),
                       .axes = {},
                       .low = {},
                       .extents = {},
                       .value = {}};
    std::vector<bool> is_result(s.iterators.size());
    ir::VarMap by;  // iterators as axes and what they begin with
    ir::Context& c = *function_.context;
    for (Expr index : store->indices()) {
      int64_t constant;
      const int d = IteratorOf(s, index, constant);
      if (d == -2 || (d >= 0 && is_result[d])) {
        return NoStage(s, "expected indices of one loop each, found ", ir::Print(index));
      }
      const ir::Var axis = c.NewVar(d < 0 ? "one" : s.iterators[d].name(), index.type());
      stage.axes.push_back(axis);
      stage.extents.push_back(d < 0 ? 1 : box[d].extent);
      stage.low.push_back(constant + (d < 0 ? 0 : box[d].min));
      if (d < 0) continue;
      is_result[d] = true;
      by[s.iterators[d]] = box[d].min == 0 ? Expr(axis) : axis + c.Int(index.type(), box[d].min);
    }
    for (size_t d = 0; d < s.iterators.size(); ++d) {
      if (is_result[d]) continue;
      const ir::Var var = c.NewVar(s.iterators[d].name(), s.iterators[d].type());
      by[s.iterators[d]] = var;
      stage.ranges.push_back({var, box[d].min, box[d].extent});
    }
    const Expr value = ir::Substitute(store->value(), by);
    if (stage.ranges.empty()) {
      stage.value = value;
      return stage;
    }
    if (!s.reduction) {
      return NoStage(s, "expected an index for each of its loops, or a reduction");
    }
    // x[f] = x[f] op e
    stage.reduction = s.reduction->op;
    const auto is_target = [&](Expr e) {
      return e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == stage.target;
    };
    if (const std::optional<Expr> others = WithoutTarget(value, is_target)) {
      stage.reduction = ExprKind::kAdd;
      stage.element = *others;
      stage.value = c.Load(stage.target, ir::Substitute(*store, by).indices());
      return stage;
    }
    if (!value.Is(ExprKind::kMin) && !value.Is(ExprKind::kMax)) {
      return NoStage(s, "expected a sum, a minimum or a maximum");
    }
    // max(x, e) ignores a NaN in e, max(e, x) takes it.
    const bool is_first = is_target(value.operand(0));
    if (!is_first && (!is_target(value.operand(1)) || ir::IsFloat(value.type()))) {
      return NoStage(s, "expected an update of one element");
    }
    stage.value = value.operand(is_first ? 0 : 1);
    stage.element = value.operand(is_first ? 1 : 0);
    return stage;
  }

  // A store of the same elements before a reduction, which nothing else reads, is what the reduction begins with.
  void FindStart(std::vector<NestStage>& list, size_t i) const {
    NestStage& stage = list[i];
    if (!stage.reduction) return;
    for (size_t k = i; k-- > 0;) {
      NestStage& before = list[k];
      if (!before.target || !(before.target == stage.target)) continue;
      // The reduction stores all of them again, so later readers do not count.
      const std::set<size_t> readers = ReadersOf(k);
      const bool is_start = !before.reduction && before.low == stage.low &&
                            before.extents == stage.extents &&
                            readers.upper_bound(k) == readers.find(i);
      if (!is_start) return;
      ir::VarMap by;
      for (size_t d = 0; d < stage.axes.size(); ++d) by[before.axes[d]] = stage.axes[d];
      stage.value = ir::Substitute(before.value, by);
      const bool is_float = ir::IsFloat(stage.value.type());
      const bool is_zero = is_float ? stage.value.Is(ExprKind::kFloatImm) &&
                                          stage.value.float_value() == 0 &&
                                          !std::signbit(stage.value.float_value())
                                    : stage.value.IsInt(0);
      if (*stage.reduction == ExprKind::kAdd && is_zero) stage.value = Expr();
      before.target = {};
      return;
    }
  }

  // The statements that read or overwrite what a statement has stored.
  std::set<size_t> ReadersOf(size_t k) const {
    std::map<std::string, size_t> numbers;
    for (size_t i = 0; i < scop_.statements.size(); ++i) numbers[scop_.statements[i].name] = i;
    std::set<size_t> readers;
    for (const isl::map& pairs : MapsOf(dependences_.All())) {
      if (numbers.at(DomainName(pairs)) == k) readers.insert(numbers.at(RangeName(pairs)));
    }
    return readers;
  }

  const ir::Function& function_;
  const Scop& scop_;
  const Dependences& dependences_;
};

// The stages of a function that is one static control part.
absl::StatusOr<NestStages> StagesOfPart(const ir::Function& function) {
  ASSIGN_OR_RETURN(const Extraction extraction, Extract(function));
  Stmt body = extraction.skeleton;
  std::vector<ir::Buffer> locals;
  while (body.Is(StmtKind::kAllocate)) {
    locals.push_back(body.buffer());
    body = body.body();
  }
  if (extraction.scops.size() != 1 || body != extraction.scops[0].place) {
    std::string reason;
    for (const Remark& remark : extraction.remarks) StrAppend(&reason, "; ", remark.ToString());
    return InvalidInput("function '", function.name,
                        "': expected loops, stores and conditions that are affine", reason);
  }
  const Scop& scop = extraction.scops[0];
  return Guarded(*scop.isl, [&]() -> absl::StatusOr<NestStages> {
    if (!scop.context.is_subset(scop.assumed)) {
      return InvalidInput("function '", function.name,
                          "': expected indices and bounds that do not wrap around");
    }
    const Dependences dependences = ComputeDependences(scop, {.reassociate_floats = true});
    ASSIGN_OR_RETURN(NestStages stages, StageFinder(function, scop, dependences).Run());
    stages.locals.insert(stages.locals.begin(), locals.begin(), locals.end());
    return stages;
  });
}

class Unroller {
 public:
  explicit Unroller(const ir::Function& function) : function_(function) {}

  // Adds the stages of `body`, in the iterations that `where` says.
  absl::Status Add(Stmt body, const std::string& where) {
    if (body.Is(StmtKind::kAllocate)) {
      stages_.locals.push_back(body.buffer());
      return Add(body.body(), where);
    }
    if (body.IsEmpty()) return absl::OkStatus();
    if (body.Is(StmtKind::kStore)) return AddStore(body, where);
    ir::Function part = function_;
    part.body = body;
    absl::StatusOr<NestStages> stages = StagesOfPart(part);
    if (stages.ok()) return Append(*stages, where);
    if (const std::optional<Stmt> expanded = Expander().Run(body)) {
      part.body = *expanded;
      absl::StatusOr<NestStages> other = StagesOfPart(part);
      if (other.ok()) return Append(*other, where);
    }
    if (body.Is(StmtKind::kSeq)) {
      for (Stmt child : body.children()) RETURN_IF_ERROR(Add(child, where));
      return absl::OkStatus();
    }
    const bool is_loop = body.Is(StmtKind::kFor) && body.for_kind() != ir::ForKind::kThread;
    const absl::StatusOr<int64_t> min =
        is_loop ? ir::EvaluateInt(body.min(), {}) : absl::StatusOr<int64_t>(stages.status());
    const absl::StatusOr<int64_t> extent =
        is_loop ? ir::EvaluateInt(body.extent(), {}) : absl::StatusOr<int64_t>(stages.status());
    if (!min.ok() || !extent.ok()) return stages.status();
    return AddIterations(body, *min, *extent, where, stages.status());
  }

  NestStages stages_;

 private:
  // One store outside of all loops.
  absl::Status AddStore(Stmt store, const std::string& where) {
    NestStage stage = {.name = "S0",
                       .place = FirstLine(ir::Print(store)),
                       .target = store.buffer(),
                       .axes = {},
                       .low = {},
                       .extents = {},
                       .value = store.value()};
    for (Expr index : store.indices()) {
      const absl::StatusOr<int64_t> number = ir::EvaluateInt(index, {});
      if (!number.ok()) {
        return InvalidInput("statement '", stage.place, "': expected indices that are numbers");
      }
      stage.axes.push_back(store.context().NewVar("one", index.type()));
      stage.low.push_back(*number);
      stage.extents.push_back(1);
    }
    NestStages stages;
    stages.list.push_back(std::move(stage));
    return Append(stages, where);
  }

  absl::Status AddIterations(Stmt loop, int64_t min, int64_t extent, const std::string& where,
                             const absl::Status& reason) {
    const ir::Var var = loop.var();
    if (!ir::UsesVar(loop.body(), var) && extent > 0) {
      // All iterations are alike.
      const size_t first = stages_.list.size();
      RETURN_IF_ERROR(Add(loop.body(), where));
      const std::vector<NestStage> once(stages_.list.begin() + static_cast<ptrdiff_t>(first),
                                        stages_.list.end());
      for (int64_t i = 1; i < extent; ++i) {
        if (stages_.list.size() + once.size() > kMostStages) return reason;
        stages_.list.insert(stages_.list.end(), once.begin(), once.end());
      }
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < extent; ++i) {
      if (++tries_ > kMostTries) return reason;
      const Expr value = loop.context().Int(var.type(), min + i);
      const Stmt body = ir::CloneWithFreshBindings(ir::Substitute(loop.body(), {{var, value}}));
      RETURN_IF_ERROR(Add(body, StrCat(where, " ", var.name(), "=", min + i)));
    }
    return absl::OkStatus();
  }

  absl::Status Append(NestStages& stages, const std::string& where) {
    if (stages_.list.size() + stages.list.size() > kMostStages) {
      return InvalidInput("function '", function_.name, "': more than ", kMostStages, " stages");
    }
    // Numbers go on from part to part; only iterations that are alike have stages of one name.
    int number = 0;
    for (NestStage& stage : stages.list) {
      const size_t end = stage.name.find_first_not_of("0123456789", 1);
      if (!absl::SimpleAtoi(stage.name.substr(1, end - 1), &number)) number = 0;
      const std::string suffix = end == std::string::npos ? "" : stage.name.substr(end);
      stage.name = StrCat("S", number + statements_, suffix, where);
      stages_.list.push_back(std::move(stage));
    }
    statements_ += number + 1;
    stages_.locals.insert(stages_.locals.end(), stages.locals.begin(), stages.locals.end());
    stages_.views.insert(stages_.views.end(), stages.views.begin(), stages.views.end());
    return absl::OkStatus();
  }

  static constexpr size_t kMostStages = 2000;
  // Parts that are looked at take some milliseconds each.
  static constexpr int kMostTries = 300;

  const ir::Function& function_;
  int tries_ = 0, statements_ = 0;
};

}  // namespace

absl::StatusOr<NestStages> FindStages(const ir::Function& function) {
  Unroller unroller(function);
  RETURN_IF_ERROR(unroller.Add(function.body, ""));
  ir::Context& c = *function.context;
  NestStages stages = std::move(unroller.stages_);
  ShrinkLocals(c, stages);
  AxisSplitter(c, stages).Run();
  TakeMarginsOff(c, stages);
  PlaceUnroller(c, stages).Run();
  return stages;
}

}  // namespace polynao::poly
