#include "compiler/poly/card/nest_stages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/logic.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/axis_values.h"
#include "compiler/poly/card/expanded_allocations.h"
#include "compiler/poly/card/iteration_box.h"
#include "compiler/poly/card/merged_axes.h"
#include "compiler/poly/card/part_stores.h"
#include "compiler/poly/card/place_tables.h"
#include "compiler/poly/card/select_stores.h"
#include "compiler/poly/card/stage_forms.h"
#include "compiler/poly/card/statement_order.h"
#include "compiler/poly/card/sum_windows.h"
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

// What a reduction takes in of each element of its box, if only those count for which `condition` holds. Of a product
// one factor is 0 elsewhere: of floats the other one is taken for finite there.
//
//   if (1 <= x + i) { s[x] = s[x] + A[x + i - 1] * B[i] }   -->   select(1 <= x + i, A[x + i - 1], 0) * B[i]
Expr Guarded(const NestStage& stage, Expr condition) {
  const Expr e = stage.element;
  ir::Context& c = e.context();
  if (*stage.reduction != ExprKind::kAdd) {
    return c.Select(condition, e, NeutralOf(*stage.reduction, e.type(), c));
  }
  if (e.Is(ExprKind::kMul)) {
    for (int i = 0; i < 2; ++i) {
      if (!IsDefined(e.operand(1 - i), stage)) continue;
      Expr load = e.operand(i);
      while (load.Is(ExprKind::kCast)) load = load.operand(0);
      if (!load.Is(ExprKind::kLoad)) continue;
      bool has_all = true;
      ir::ForEachExpr(condition, [&](Expr part) {
        if (part.Is(ExprKind::kVar) && !ir::UsesVar(load, part)) has_all = false;
      });
      const Expr zero = c.Const(load.type(), 0);
      if (has_all) return ir::Replace(e, {{load, c.Select(condition, load, zero)}});
    }
  }
  return c.Select(condition, e, c.Const(e.type(), 0));
}

// A body with what it computes of loops alone where it stands: let y1 = min(y + 1, 31) { Y[y] = X[y1] }.
class LetInliner : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    while (s.Is(StmtKind::kLet)) {
      bool has_loads = false;
      ir::ForEachExpr(s.value(), [&](Expr e) { has_loads = has_loads || e.Is(ExprKind::kLoad); });
      if (has_loads) break;
      s = ir::Substitute(s.body(), {{s.var(), s.value()}});
    }
    return MutateChildren(s);
  }
};

class StageFinder {
 public:
  StageFinder(const ir::Function& function, const Scop& scop, const Dependences& dependences,
              Parts parts)
      : function_(function), scop_(scop), dependences_(dependences), parts_(parts) {}

  // Statements in this order.
  absl::StatusOr<NestStages> Run(const std::vector<size_t>& order) {
    NestStages stages;
    stages.locals = scop_.locals;
    for (const size_t i : order) {
      position_[scop_.statements[i].name] = stages.list.size();
      ASSIGN_OR_RETURN(NestStage stage, StageOf(scop_.statements[i], stages));
      stages.list.push_back(std::move(stage));
    }
    for (size_t i = 0; i < stages.list.size(); ++i) FindStart(stages.list, i);
    std::erase_if(stages.list, [](const NestStage& stage) { return !stage.target; });
    const auto is_part = [](const NestStage& stage) { return bool{stage.condition}; };
    stages.has_parts = std::any_of(stages.list.begin(), stages.list.end(), is_part) ||
                       !std::is_sorted(order.begin(), order.end());
    return stages;
  }

 private:
  // The loops of which an index is a number in mixed radix, the outermost first: y * 2 + r for r in [0, 2). None if it
  // is nothing of the kind, or does not reach all of an extent.
  static std::vector<size_t> DigitsOf(const Statement& s, const std::vector<Bound>& box, Expr index,
                                      Expr extent) {
    const arith::LinearForm form = arith::Decompose(index);
    std::vector<arith::LinearForm::Term> terms(form.terms().begin(), form.terms().end());
    std::sort(terms.begin(), terms.end(),
              [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
    std::vector<size_t> digits;
    int64_t radix = 1;
    for (const arith::LinearForm::Term& term : terms) {
      const auto it = std::find(s.iterators.begin(), s.iterators.end(), term.atom);
      if (it == s.iterators.end() || term.coefficient != radix) return {};
      digits.insert(digits.begin(), it - s.iterators.begin());
      if (box[digits[0]].min != 0) return {};
      radix *= box[digits[0]].extent;
    }
    if (form.constant() != 0 || !extent.IsInt(radix)) return {};
    return digits;
  }

  // An index that is one place of each step, 2 * i + 1, as the step's number, the step and the place: i, 2, 1. None if
  // steps do not divide the extent.
  struct PlaceOfSteps {
    Expr number;
    int64_t step, place;
  };
  static std::optional<PlaceOfSteps> PlaceOfStepsOf(const Statement& s, Expr index, Expr extent) {
    const arith::LinearForm form = arith::Decompose(index);
    if (form.terms().size() != 1 || !extent.Is(ExprKind::kIntImm)) return std::nullopt;
    const auto& [atom, step] = form.terms()[0];
    const bool is_loop =
        std::find(s.iterators.begin(), s.iterators.end(), atom) != s.iterators.end();
    if (!is_loop || step < 2 || extent.int_value() % step != 0) return std::nullopt;
    const int64_t more = ir::FloorDiv(form.constant(), step);
    return PlaceOfSteps{.number = more == 0 ? atom : atom + more,
                        .step = step,
                        .place = ir::FloorMod(form.constant(), step)};
  }

  // A store at indices each of which is a loop, several, or a place of steps: then the stage stores another shape of
  // its target.
  Stmt WithLoopsAsIndices(Stmt store, const Statement& s, const std::vector<Bound>& box,
                          NestStages& stages) const {
    const ir::Buffer target = store.buffer();
    ir::Context& c = *function_.context;
    std::vector<Expr> indices, extents;
    for (size_t d = 0; d < store.indices().size(); ++d) {
      const Expr index = store.indices()[d];
      int64_t constant;
      const std::vector<size_t> digits = IteratorOf(s, index, constant) == -2
                                             ? DigitsOf(s, box, index, target->extents[d])
                                             : std::vector<size_t>();
      if (const auto at =
              digits.empty() ? PlaceOfStepsOf(s, index, target->extents[d]) : std::nullopt) {
        indices.push_back(at->number);
        indices.push_back(c.Int(index.type(), at->place));
        extents.push_back(c.Int(index.type(), target->extents[d].int_value() / at->step));
        extents.push_back(c.Int(index.type(), at->step));
        continue;
      }
      if (digits.empty()) {
        indices.push_back(index), extents.push_back(target->extents[d]);
        continue;
      }
      for (const size_t digit : digits) {
        indices.push_back(s.iterators[digit]);
        extents.push_back(c.Int(index.type(), box[digit].extent));
      }
    }
    if (indices.size() == store.indices().size()) return store;
    const auto is_it = [&](const auto& view) {
      return view.second == target && view.first->extents == extents;
    };
    auto view = std::find_if(stages.views.begin(), stages.views.end(), is_it);
    if (view == stages.views.end()) {
      stages.views.emplace_back(c.NewBuffer(target->name, target->type, extents), target);
      view = stages.views.end() - 1;
    }
    // What it updates is read in that shape, too.
    const Expr own = c.Load(target, store.indices());
    const Expr value = ir::Replace(store.value(), {{own, c.Load(view->first, indices)}});
    return c.Store(view->first, indices, value);
  }

  // An axis of all values of an index.
  static void AddBoundAxis(const Statement& s, const std::vector<Bound>& box, Expr index,
                           NestStage& stage) {
    arith::VarRanges ranges;
    for (size_t d = 0; d < s.iterators.size(); ++d) {
      ranges[s.iterators[d]] = {box[d].min, box[d].min + box[d].extent - 1};
    }
    const arith::ConstRange range = arith::RangeOf(index, ranges);
    stage.axes.push_back(index.context().NewVar("one", index.type()));
    stage.low.push_back(range.min);
    stage.extents.push_back(range.max - range.min + 1);
  }

  // That an axis is an index of others, as two comparisons; none if it is no sum of axes.
  std::optional<std::pair<Expr, Expr>> IsThere(Expr index, const NestStage& stage,
                                               size_t axis) const {
    ir::Context& c = *function_.context;
    arith::LinearForm form = arith::Decompose(index);
    for (const arith::LinearForm::Term& term : form.terms()) {
      const auto it = std::find(stage.axes.begin(), stage.axes.end(), term.atom);
      if (it == stage.axes.end()) return std::nullopt;
    }
    const ir::Expr extent = stage.target->extents[axis];
    const int64_t end = stage.low[axis] + stage.extents[axis];
    const bool exists =
        stage.low[axis] >= 0 && extent.Is(ExprKind::kIntImm) && end <= extent.int_value();
    if (!exists || !form.AddTerm(stage.axes[axis], -1) || !form.AddConstant(-stage.low[axis])) {
      return std::nullopt;
    }
    const ir::Type type = stage.axes[axis].type();
    return std::pair(IsNotNegative(form, type, c), IsNotNegative(form * -1, type, c));
  }

  // Where a part of a box is stored, that of whole rows of the target, if that is not much larger: stores and loads of
  // rows have no gaps.
  absl::StatusOr<NestStage> StageOf(const Statement& s, NestStages& stages) const {
    ir::Context& c = *function_.context;
    ASSIGN_OR_RETURN(NestStage stage, StageOf(s, IterationsOf(s, c), stages));
    const std::optional<Stmt> store = StoreOf(s.code);
    if (!stage.condition || IsWhole(stage) || stage.target != store->buffer()) return stage;
    ASSIGN_OR_RETURN(const IterationBox box, IterationsOf(s, c));
    std::vector<Bound> rows = box.bounds;
    double more = 1;
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      int64_t constant;
      const int at = IteratorOf(s, store->indices()[d], constant);
      const Expr extent = stage.target->extents[d];
      if (at < 0 || !extent.Is(ExprKind::kIntImm)) continue;
      rows[at] = {-constant, extent.int_value()};
      more *= static_cast<double>(extent.int_value()) / static_cast<double>(stage.extents[d]);
    }
    const double much = stage.reduction ? 1.25 : 4;
    if (more > much) return stage;
    absl::StatusOr<NestStage> whole = StageOf(s, IterationsOf(s, c, rows), stages);
    return whole.ok() ? std::move(whole) : stage;
  }

  absl::StatusOr<NestStage> StageOf(const Statement& s,
                                    const absl::StatusOr<IterationBox>& iterations_of,
                                    NestStages& stages) const {
    std::optional<Stmt> store = StoreOf(s.code);
    if (s.is_opaque || !store || s.code.Is(StmtKind::kIf)) {
      return NoStage(s, "expected one store, under affine conditions");
    }
    ir::Context& c = *function_.context;
    ASSIGN_OR_RETURN(const IterationBox iterations, iterations_of);
    const std::vector<Bound>& box = iterations.bounds;
    store = WithLoopsAsIndices(*store, s, box, stages);
    NestStage stage = {.name = s.name,
                       .place = FirstLine(ir::Print(s.code)),
                       .target = store->buffer(),
                       .axes = {},
                       .low = {},
                       .extents = {},
                       .value = {}};
    std::vector<bool> is_result(s.iterators.size());
    ir::VarMap by;  // iterators as axes and what they begin with
    std::vector<std::pair<Expr, size_t>>
        bound;  // indices that others decide, as that of a diagonal
    for (Expr index : store->indices()) {
      int64_t constant;
      const int d = IteratorOf(s, index, constant);
      if (d == -2 || (d >= 0 && is_result[d])) {
        bound.emplace_back(index, stage.axes.size());
        AddBoundAxis(s, box, index, stage);
        continue;
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
    // Which elements there are, and what a reduction takes in of them.
    Expr condition;
    const auto require = [](Expr& all, Expr e) { all = all ? ir::And(all, e) : e; };
    for (const auto& [index, axis] : bound) {
      const std::optional<std::pair<Expr, Expr>> is_there =
          IsThere(ir::Substitute(index, by), stage, axis);
      if (parts_ == Parts::kOneByOne || !is_there) {
        return NoStage(s, "expected indices of one loop each, found ", ir::Print(index));
      }
      require(stage.condition, is_there->first);
      require(stage.condition, is_there->second);
    }
    if (iterations.condition) {
      for (const Expr e : arith::Conjuncts(ir::Substitute(iterations.condition, by))) {
        const bool is_reduced =
            std::any_of(stage.ranges.begin(), stage.ranges.end(),
                        [&](const NestStage::ReduceRange& r) { return ir::UsesVar(e, r.var); });
        const bool stays = parts_ == Parts::kOneByOne && !stage.ranges.empty();
        require(is_reduced || stays ? condition : stage.condition, e);
      }
    }
    const bool is_part = bool{stage.condition};
    if (is_part && (parts_ == Parts::kOneByOne || !IsDefined(value, stage))) {
      return NoStage(s, "expected a box of iterations, found bounds that depend on other loops");
    }
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
      if (condition) stage.element = Guarded(stage, condition);
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
    stage.reduction = value.kind();
    if (condition) stage.element = Guarded(stage, condition);
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
                            before.extents == stage.extents && StoreTheSame(before, stage) &&
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

  // Of boxes that are the same.
  static bool StoreTheSame(const NestStage& a, const NestStage& b) {
    if (!a.condition || !b.condition) return !a.condition && !b.condition;
    ir::VarMap by;
    for (size_t d = 0; d < a.axes.size(); ++d) by[a.axes[d]] = b.axes[d];
    return ir::Substitute(a.condition, by) == b.condition;
  }

  // The stages that read or overwrite what a stage has stored.
  std::set<size_t> ReadersOf(size_t k) const {
    std::set<size_t> readers;
    for (const isl::map& pairs : MapsOf(dependences_.All())) {
      if (position_.at(DomainName(pairs)) == k) readers.insert(position_.at(RangeName(pairs)));
    }
    return readers;
  }

  const ir::Function& function_;
  const Scop& scop_;
  const Dependences& dependences_;
  const Parts parts_;
  std::map<std::string, size_t> position_;  // of each statement's stage
};

// A copy of a whole buffer, before the stages of statement `name`.
NestStage CopyOf(ir::Buffer buffer, ir::Buffer copy, const std::string& name) {
  ir::Context& c = *buffer->context;
  NestStage stage = {.name = StrCat(name, ".old"),
                     .place = StrCat(copy->name, " = ", buffer->name),
                     .target = copy,
                     .axes = {},
                     .low = {},
                     .extents = {},
                     .value = {}};
  std::vector<Expr> at;
  for (const Expr extent : buffer->extents) {
    at.push_back(c.NewVar("one", extent.type()));
    stage.axes.emplace_back(at.back());
    stage.low.push_back(0);
    stage.extents.push_back(extent.int_value());
  }
  stage.value = c.Load(buffer, at);
  return stage;
}

// The stages of one static control part.
absl::StatusOr<NestStages> StagesOf(const ir::Function& function, const Scop& scop, Parts parts) {
  constexpr DependenceOptions kOptions = {.reassociate_floats = true};
  const Dependences dependences = ComputeDependences(scop, kOptions);
  const absl::StatusOr<std::vector<size_t>> order = OrderOfStatements(scop, dependences);
  if (order.ok() && (parts == Parts::kAsBoxes || std::is_sorted(order->begin(), order->end()))) {
    return StageFinder(function, scop, dependences, parts).Run(*order);
  }
  if (order.ok()) return InvalidInput("function '", function.name, "': statements out of order");
  if (parts == Parts::kOneByOne) return order.status();
  Scop other = scop;
  const std::vector<std::pair<ir::Buffer, ir::Buffer>> copies =
      ReadOldValues(other, *function.context);
  for (const auto& [buffer, copy] : copies) {
    for (const Expr extent : buffer->extents) {
      if (!extent.Is(ExprKind::kIntImm)) return order.status();
    }
  }
  if (copies.empty()) return order.status();
  const Dependences fewer = ComputeDependences(other, kOptions);
  const absl::StatusOr<std::vector<size_t>> free = OrderOfStatements(other, fewer);
  if (!free.ok()) return order.status();
  ASSIGN_OR_RETURN(NestStages stages, StageFinder(function, other, fewer, parts).Run(*free));
  for (const auto& [buffer, copy] : copies) {
    stages.locals.push_back(copy);
    stages.read_first.push_back(buffer);
    stages.list.insert(stages.list.begin(), CopyOf(buffer, copy, scop.statements[0].name));
  }
  stages.has_parts = true;
  return stages;
}

// The stages of a function that is one static control part.
absl::StatusOr<NestStages> StagesOfPart(const ir::Function& function, Parts parts) {
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
    ASSIGN_OR_RETURN(NestStages stages, StagesOf(function, scop, parts));
    stages.locals.insert(stages.locals.begin(), locals.begin(), locals.end());
    return stages;
  });
}

class Unroller {
 public:
  Unroller(const ir::Function& function, Parts parts) : function_(function), parts_(parts) {}

  // Adds the stages of `body`, in the iterations that `where` says.
  absl::Status Add(Stmt body, const std::string& where) {
    if (body.Is(StmtKind::kAllocate)) {
      stages_.locals.push_back(body.buffer());
      return Add(body.body(), where);
    }
    if (body.Is(StmtKind::kLet) && !HasLoads(body.value())) {
      return Add(ir::Substitute(body.body(), {{body.var(), body.value()}}), where);
    }
    if (body.IsEmpty()) return absl::OkStatus();
    if (body.Is(StmtKind::kStore)) return AddStore(body, where);
    ir::Function part = function_;
    part.body = body;
    absl::StatusOr<NestStages> stages = StagesOfPart(part, parts_);
    if (stages.ok()) return Append(*stages, where);
    if (const std::optional<Stmt> expanded = WithExpandedAllocations(body)) {
      part.body = *expanded;
      absl::StatusOr<NestStages> other = StagesOfPart(part, parts_);
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
    int last = 0;
    for (NestStage& stage : stages.list) {
      const size_t end = stage.name.find_first_not_of("0123456789", 1);
      int number = 0;
      if (!absl::SimpleAtoi(stage.name.substr(1, end - 1), &number)) number = 0;
      last = std::max(last, number);
      const std::string suffix = end == std::string::npos ? "" : stage.name.substr(end);
      stage.name = StrCat("S", number + statements_, suffix, where);
      stages_.list.push_back(std::move(stage));
    }
    statements_ += last + 1;
    stages_.has_parts = stages_.has_parts || stages.has_parts;
    stages_.read_first.insert(stages_.read_first.end(), stages.read_first.begin(),
                              stages.read_first.end());
    stages_.locals.insert(stages_.locals.end(), stages.locals.begin(), stages.locals.end());
    stages_.views.insert(stages_.views.end(), stages.views.begin(), stages.views.end());
    return absl::OkStatus();
  }

  static constexpr size_t kMostStages = 2000;
  // Parts that are looked at take some milliseconds each.
  static constexpr int kMostTries = 300;

  const ir::Function& function_;
  const Parts parts_;
  int tries_ = 0, statements_ = 0;
};

}  // namespace

static void MergeLoops(ir::Context& c, NestStages& stages) {
  for (const auto& view : SplitDigits(c, stages.list)) stages.views.push_back(view);
  for (const auto& [merged, buffer] : MergeAxes(c, stages.list)) {
    const auto local = std::find(stages.locals.begin(), stages.locals.end(), buffer);
    const bool has_shapes = std::any_of(stages.views.begin(), stages.views.end(),
                                        [&](const auto& view) { return view.second == buffer; });
    if (local != stages.locals.end() && !has_shapes) {
      *local = merged;
    } else {
      stages.views.emplace_back(merged, buffer);
    }
  }
}

absl::StatusOr<NestStages> FindStages(const ir::Function& function, Parts parts) {
  Unroller unroller(function, parts);
  RETURN_IF_ERROR(unroller.Add(WithSelectedStores(LetInliner().Mutate(function.body)), ""));
  ir::Context& c = *function.context;
  NestStages stages = std::move(unroller.stages_);
  StoreParts(c, stages);
  NameVersions(c, stages);
  DropUnits(c, stages);
  ShrinkLocals(c, stages);
  TabulatePlaces(function, stages);
  TakeAxisValuesOut(c, stages);
  MergeLoops(c, stages);
  TakeWindowsOut(c, stages);
  SplitAxes(c, stages);
  TakeMarginsOff(c, stages);
  UnrollPlaces(c, stages);
  return stages;
}

}  // namespace polynao::poly
