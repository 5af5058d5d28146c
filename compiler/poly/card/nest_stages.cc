#include "compiler/poly/card/nest_stages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
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
// number each, joined by `&&`.
std::optional<std::vector<Bound>> InsideOf(Expr condition, const std::vector<ir::Var>& axes,
                                           const std::vector<int64_t>& extents) {
  std::vector<Bound> box;
  for (int64_t extent : extents) box.push_back({0, extent});
  std::vector<Expr> stack = {condition};
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
    TakeMarginsOff(*function.context, stages);
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
  return std::move(unroller.stages_);
}

}  // namespace polynao::poly
