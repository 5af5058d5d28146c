#include "compiler/poly/model/build_scop.h"

#include <isl/aff.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/schedule.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/poly/model/ast_value.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

namespace {

// A run-time test of more cases than this is not worth its code.
constexpr unsigned kMaxAssumedPieces = 4;
// An index of more cases (of nested selects, min and max) counts as not affine, and a condition that leaves
// its statements more convex pieces than this, too: the cost of all that follows grows with their products.
constexpr unsigned kMaxIndexPieces = 4;
constexpr unsigned kMaxDomainPieces = 8;
// Of an index that is not affine, so many affine bounds on a side are looked at.
constexpr size_t kMaxBounds = 4;

bool HasLoop(Stmt s) {
  return ir::AnyStmt(s, [](Stmt x) { return x.Is(StmtKind::kFor); });
}

// Values of lets beyond this many operations, counted as a tree, do not take the variable's place: a
// chain of such lets would grow exponentially.
constexpr int64_t kMaxInlined = 200;

int64_t TreeSize(Expr e) {
  absl::flat_hash_map<Expr, int64_t> sizes;
  ir::ForEachExpr(e, [&](Expr x) {
    int64_t size = 1;
    for (Expr operand : x.operands()) size += sizes[operand];
    sizes[x] = std::min(size, kMaxInlined + 1);
  });
  return sizes[e];
}

// Whether `e` computes with i32 or i64, so that it means something else in an index than in a let.
bool HasExactArithmetic(Expr e) {
  bool has = false;
  ir::ForEachExpr(e, [&](Expr x) {
    has |= (x.Is(ExprKind::kAdd) || x.Is(ExprKind::kSub) || x.Is(ExprKind::kMul)) &&
           (x.type() == Type::kI32 || x.type() == Type::kI64);
  });
  return has;
}

bool LoadsFrom(Expr e, Buffer buffer) {
  bool loads = false;
  ir::ForEachExpr(e,
                  [&](Expr x) { loads |= x.Is(ExprKind::kLoad) && Buffer(x.buffer()) == buffer; });
  return loads;
}

}  // namespace

ScopBuilder::ScopBuilder(const ir::Function& function, const absl::flat_hash_set<ir::Var>& outer,
                         const ir::Aliases& aliases, unsigned long max_operations,
                         std::vector<Remark>* remarks)
    : function_(function),
      aliases_(aliases),
      remarks_(remarks),
      max_operations_(max_operations),
      isl_(std::make_shared<IslContext>()),
      affine_(isl_, outer) {
  scop_.isl = isl_;
  domain_ = affine_.Universe();
  scop_.context = domain_.params();
  scop_.assumed = scop_.context;
}

std::optional<Scop> ScopBuilder::Build(const std::vector<Stmt>& roots,
                                       const std::vector<Expr>& asserts) {
  scop_.isl->Allow(max_operations_);
  scop_.name = StrCat(function_.name, ", ", ir::PrintFirstLine(roots[0]));
  for (Expr condition : asserts) {
    const std::optional<isl::set> holds = affine_.Truth(condition);
    if (holds) scop_.context = scop_.context.intersect(holds->params());
  }
  Tree tree;
  for (Stmt root : roots) tree = Sequence(std::move(tree), Process(root));
  if (!tree) return std::nullopt;
  scop_.schedule = *tree;
  scop_.parameters = affine_.parameters();
  for (const Parameter& p : scop_.parameters) {
    const bool is_narrow = p.value.Is(ExprKind::kCast) && p.value.operand(0).Is(ExprKind::kVar) &&
                           ir::ByteSize(p.value.operand(0).type()) <= 4;
    if (is_narrow) continue;
    isl_set* range = isl_set_universe(
        isl_space_add_param_id(isl_space_params_alloc(scop_.isl->get(), 0),
                               isl_id_alloc(scop_.isl->get(), p.name.c_str(), nullptr)));
    isl_val* largest = isl_val_2exp(isl_val_int_from_si(scop_.isl->get(), kLargestBits));
    range = isl_set_lower_bound_val(range, isl_dim_param, 0, isl_val_neg(isl_val_copy(largest)));
    range = isl_set_upper_bound_val(range, isl_dim_param, 0, largest);
    scop_.assumed = scop_.assumed.intersect(isl::manage(range));
  }
  scop_.assumed = scop_.assumed.gist(scop_.context.intersect(affine_.ParameterRanges())).coalesce();
  return std::move(scop_);
}

ScopBuilder::Tree ScopBuilder::Sequence(Tree first, Tree second) {
  if (!first) return second;
  if (!second) return first;
  return isl::manage(isl_schedule_sequence(first->copy(), second->copy()));
}

ScopBuilder::Tree ScopBuilder::Process(Stmt s) {
  switch (s.kind()) {
    case StmtKind::kSeq:
      return ProcessSeq(s);
    case StmtKind::kFor:
      return ProcessFor(s);
    case StmtKind::kIf:
      return ProcessIf(s);
    case StmtKind::kLet:
      return ProcessLet(s);
    case StmtKind::kAllocate:
      return ProcessAllocate(s);
    case StmtKind::kStore:
      return Leaf(s, false);
    case StmtKind::kPragma:
    case StmtKind::kEvaluate:
      break;
  }
  POLYNAO_UNREACHABLE(ir::StmtKindName(s.kind()));
}

ScopBuilder::Tree ScopBuilder::ProcessSeq(Stmt s) {
  Tree tree;
  for (Stmt child : s.children()) tree = Sequence(std::move(tree), Process(child));
  return tree;
}

ScopBuilder::Tree ScopBuilder::ProcessFor(Stmt s) {
  const Expr min = Resolve(s.min()), extent = Resolve(s.extent());
  const isl::set outside = domain_;
  affine_.PushLoop(s.var());
  const auto first = affine_.Value(min);
  const auto count = first ? affine_.Value(extent) : std::nullopt;
  if (!count) {
    affine_.PopLoop();
    return Opaque(s, "the loop is one opaque statement");
  }
  const isl::pw_aff var = *affine_.Value(s.var());
  domain_ = isl::manage(isl_set_add_dims(domain_.copy(), isl_dim_set, 1));
  domain_ = domain_.intersect(var.ge_set(*first)).intersect(var.lt_set(first->add(*count)));
  domain_ = domain_.coalesce();
  const int depth = static_cast<int>(affine_.loops().size()) - 1;
  Tree tree = Process(s.body());
  affine_.PopLoop();
  domain_ = outside;
  if (!tree) return tree;
  return isl::manage(isl_schedule_insert_partial_schedule(
      tree->copy(), Coordinate(tree->domain(), depth).release()));
}

ScopBuilder::Tree ScopBuilder::Branch(const isl::set& holds, Stmt s) {
  const isl::set outside = domain_;
  domain_ = domain_.intersect(holds).coalesce();
  Tree tree = Process(s);
  domain_ = outside;
  return tree;
}

ScopBuilder::Tree ScopBuilder::Guarded(Expr condition, Stmt s) {
  guards_.push_back(condition);
  Tree tree = Process(s);
  guards_.pop_back();
  return tree;
}

ScopBuilder::Tree ScopBuilder::ProcessIf(Stmt s) {
  const Expr condition = Resolve(s.cond());
  const auto holds = affine_.Truth(condition);
  const auto is_simple = [&](const isl::set& branch) {
    return domain_.intersect(branch).coalesce().n_basic_set() <= kMaxDomainPieces;
  };
  if (holds && is_simple(*holds) && (s.else_case().IsEmpty() || is_simple(holds->complement()))) {
    Tree then_tree = Branch(*holds, s.then_case());
    if (s.else_case().IsEmpty()) return then_tree;
    return Sequence(std::move(then_tree), Branch(holds->complement(), s.else_case()));
  }
  ir::Context& c = s.context();
  if (condition.Is(ExprKind::kAnd) && s.else_case().IsEmpty()) {
    return ProcessIf(c.If(condition.operand(0), c.If(condition.operand(1), s.then_case())));
  }
  if (!HasLoop(s)) return Opaque(s, "the if is one opaque statement");
  if (Stores(s, condition)) {
    return Opaque(s, "the if, which stores what its condition reads, is one opaque statement");
  }
  Say(s, "the condition goes to each statement inside");
  Tree then_tree = Guarded(condition, s.then_case());
  return Sequence(std::move(then_tree), Guarded(ir::Not(condition), s.else_case()));
}

ScopBuilder::Tree ScopBuilder::ProcessLet(Stmt s) {
  const Expr value = Resolve(s.value());
  if (ir::IsIndexable(value.type())) {
    const isl::set context = scop_.context.intersect(affine_.ParameterRanges());
    if (const auto needed = affine_.NeverWraps(value, domain_, context)) {
      const bool always = context.is_subset(*needed);
      const isl::set assumed = scop_.assumed.intersect(*needed).gist(context).coalesce();
      if (always ||
          (assumed.n_basic_set() <= kMaxAssumedPieces && !assumed.intersect(context).is_empty())) {
        if (!always) scop_.assumed = assumed;
        lets_[s.var()] = value;
        return Process(s.body());
      }
    }
  }
  const bool means_the_same = ir::IsFloat(value.type()) || !HasExactArithmetic(value);
  if (means_the_same && TreeSize(value) <= kMaxInlined && !Stores(s.body(), value)) {
    lets_[s.var()] = value;
    return Process(s.body());
  }
  if (!HasLoop(s.body())) return Leaf(ir::Substitute(s, lets_), true);
  ir::Context& c = s.context();
  const Buffer cell = c.NewBuffer(StrCat(s.var().name(), ".cell"), value.type(), {}, "local");
  scop_.locals.push_back(cell);
  Tree store = Leaf(c.Store(cell, {}, value), false);
  lets_[s.var()] = c.Load(cell, {});
  return Sequence(std::move(store), Process(s.body()));
}

std::optional<Expr> ScopBuilder::Greatest(const isl::pw_aff& value, ir::Context& context) {
  const isl::map at = isl::manage(isl_map_from_pw_aff(value.copy())).intersect_domain(domain_);
  const isl::set values = at.range();
  if (values.is_empty()) return context.I64(0);
  isl_pw_aff* greatest = isl_set_dim_max(values.copy(), 0);
  isl_pw_aff* zero =
      isl_pw_aff_zero_on_domain(isl_local_space_from_space(isl_pw_aff_get_domain_space(greatest)));
  const isl::pw_aff all = isl::manage(isl_pw_aff_coalesce(isl_pw_aff_union_max(greatest, zero)));
  if (all.n_piece() > kMaxIndexPieces) return std::nullopt;
  AstNames names;
  for (const Parameter& p : affine_.parameters()) names[p.name] = p.value;
  isl_options_set_ast_build_detect_min_max(scop_.isl->get(), 1);
  const isl::ast_build build = isl::ast_build::from_context(scop_.context);
  return AstValue(build.expr_from(all), names, context);
}

ScopBuilder::Tree ScopBuilder::ProcessAllocate(Stmt s) {
  ir::Context& c = s.context();
  std::vector<Expr> extents;
  int varying = 0;
  for (Expr extent : s.buffer()->extents) {
    // A value over outer variables has the same meaning around the part.
    const Expr resolved = Resolve(extent);
    const auto value = affine_.Value(resolved);
    if (!value) return Opaque(s, "the allocation with its scope is one opaque statement");
    bool varies = resolved != extent;
    ir::ForEachExpr(extent, [&](Expr x) {
      const std::vector<ir::Var>& loops = affine_.loops();
      varies |= std::find(loops.begin(), loops.end(), x) != loops.end();
    });
    if (!varies) {
      extents.push_back(extent);
      continue;
    }
    const std::optional<Expr> greatest = Greatest(*value, c);
    extents.push_back(greatest.value_or(extent));
    varying += greatest ? 1 : 2;
  }
  if (varying == 0) {
    scop_.locals.push_back(s.buffer());
    return Process(s.body());
  }
  // One array for all iterations is as large as the largest that the program allocates. Of two extents that vary, the
  // greatest values may belong to different iterations, and under a condition that is no part of the domain to none.
  if (varying > 1 || !guards_.empty()) {
    remarks_->push_back(
        {.place = ir::PrintFirstLine(s),
         .term = "",
         .effect = "the allocation, of a size that varies, is one opaque statement"});
    return Leaf(ir::Substitute(s, lets_), true);
  }
  const Buffer largest =
      c.NewBuffer(s.buffer()->name, s.buffer()->type, extents, s.buffer()->scope);
  scop_.locals.push_back(largest);
  return Process(ir::Substitute(s.body(), {}, {{s.buffer(), largest}}));
}

void ScopBuilder::Say(Stmt place, std::string_view effect) {
  remarks_->push_back({ir::PrintFirstLine(place), affine_.reason(), std::string(effect)});
}

ScopBuilder::Tree ScopBuilder::Opaque(Stmt s, std::string_view effect) {
  Say(s, effect);
  return Leaf(ir::Substitute(s, lets_), true);
}

ScopBuilder::Tree ScopBuilder::Leaf(Stmt code, bool is_opaque) {
  if (domain_.is_empty()) return std::nullopt;
  if (code.Is(StmtKind::kStore)) code = ir::Substitute(code, lets_);
  Statement statement;
  statement.name = StrCat("S", scop_.statements.size());
  statement.iterators = affine_.loops();
  isl_set* named = isl_set_set_tuple_name(domain_.copy(), statement.name.c_str());
  for (size_t i = 0; i < affine_.loops().size(); ++i) {
    const std::string name =
        IslName(std::string(affine_.loops()[i].name()), [](const std::string&) { return false; });
    named = isl_set_set_dim_name(named, isl_dim_set, i, name.c_str());
  }
  statement.domain = isl::manage(named);
  statement.is_opaque = is_opaque || !guards_.empty();
  for (Expr guard : guards_) AddLoads(guard, false, &statement);
  AddAccesses(code, guards_.empty(), &statement);
  if (!statement.is_opaque) statement.reduction = FindReduction(code, statement);
  for (size_t i = guards_.size(); i-- > 0;) code = code.context().If(guards_[i], code);
  statement.code = code;
  const isl::schedule tree = isl::schedule::from_domain(statement.domain.to_union_set());
  scop_.statements.push_back(std::move(statement));
  return tree;
}

void ScopBuilder::AddAccesses(Stmt s, bool certain, Statement* statement) {
  for (Expr operand : s.operands()) AddLoads(operand, certain, statement);
  if (s.Is(StmtKind::kStore)) {
    AddAccess(s.buffer(), s.indices(), true, certain, statement);
  }
  if (s.Is(StmtKind::kAllocate)) {
    for (Expr extent : s.buffer()->extents) AddLoads(extent, certain, statement);
    inside_.insert(s.buffer());
  }
  if (s.Is(StmtKind::kLet) && IsExactLet(s.value())) {
    inside_lets_[s.var()] = ir::Substitute(s.value(), inside_lets_);
  }
  // A body of a loop or branch may not run.
  const bool stays = s.Is(StmtKind::kSeq) || s.Is(StmtKind::kLet) || s.Is(StmtKind::kAllocate);
  for (Stmt child : s.children()) AddAccesses(child, certain && stays, statement);
}

void ScopBuilder::AddLoads(Expr root, bool certain, Statement* statement) {
  std::vector<std::pair<Expr, bool>> stack = {{root, certain}};
  absl::flat_hash_set<Expr> seen[2];
  while (!stack.empty()) {
    const auto [e, is_certain] = stack.back();
    stack.pop_back();
    if (!seen[is_certain].insert(e).second) continue;
    if (e.Is(ExprKind::kLoad)) {
      AddAccess(Buffer(e.buffer()), e.operands(), false, is_certain, statement);
    }
    const bool first_only = e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
    for (size_t i = e.operands().size(); i-- > 0;) {
      stack.emplace_back(e.operand(i), is_certain && (i == 0 || !first_only));
    }
  }
}

std::string ScopBuilder::ArrayName(Buffer buffer) {
  for (const auto& [known, name] : array_names_) {
    if (known == buffer) return name;
  }
  const auto taken = [&](const std::string& text) {
    return scop_.Find(text) != nullptr ||
           std::any_of(array_names_.begin(), array_names_.end(),
                       [&](const auto& known) { return known.second == text; });
  };
  return array_names_.emplace_back(buffer, IslName(buffer->name, taken)).second;
}

namespace {

// Whether every value of `from` is one of `to`.
bool Holds(Type to, Type from) {
  return ir::IsIndexable(to) && ir::IsIndexable(from) && ir::LeastInt(to) <= ir::LeastInt(from) &&
         ir::GreatestInt(from) <= ir::GreatestInt(to);
}

std::vector<isl::pw_aff> Joined(std::vector<isl::pw_aff> a, const std::vector<isl::pw_aff>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// `f` of each of `a` and each of `b`, those of few cases.
template <typename F>
std::vector<isl::pw_aff> Pairs(const std::vector<isl::pw_aff>& a, const std::vector<isl::pw_aff>& b,
                               const F& f) {
  std::vector<isl::pw_aff> result;
  for (const isl::pw_aff& x : a) {
    for (const isl::pw_aff& y : b) {
      const isl::pw_aff both = f(x, y);
      if (both.n_piece() <= kMaxIndexPieces && result.size() < kMaxBounds) result.push_back(both);
    }
  }
  return result;
}

}  // namespace

ScopBuilder::Bounds ScopBuilder::BoundsOf(Expr e) {
  if (const auto value = affine_.Value(e)) {
    if (value->n_piece() > kMaxIndexPieces) return {};
    return {.least = {*value}, .greatest = {*value}};
  }
  const auto of = [&](size_t i) { return BoundsOf(e.operand(i)); };
  const auto sum = [](const isl::pw_aff& x, const isl::pw_aff& y) { return x.add(y); };
  const auto difference = [](const isl::pw_aff& x, const isl::pw_aff& y) { return x.sub(y); };
  const bool is_exact = e.type() == Type::kI32 || e.type() == Type::kI64;
  switch (e.kind()) {
    case ExprKind::kCast:
      return Holds(e.type(), e.operand(0).type()) ? of(0) : Bounds();
    case ExprKind::kMax: {
      const Bounds a = of(0), b = of(1);
      const auto greater = [](const isl::pw_aff& x, const isl::pw_aff& y) { return x.max(y); };
      return {.least = Joined(a.least, b.least),
              .greatest = Pairs(a.greatest, b.greatest, greater)};
    }
    case ExprKind::kMin: {
      const Bounds a = of(0), b = of(1);
      const auto less = [](const isl::pw_aff& x, const isl::pw_aff& y) { return x.min(y); };
      return {.least = Pairs(a.least, b.least, less), .greatest = Joined(a.greatest, b.greatest)};
    }
    case ExprKind::kAdd: {
      if (!is_exact) return {};
      const Bounds a = of(0), b = of(1);
      return {.least = Pairs(a.least, b.least, sum),
              .greatest = Pairs(a.greatest, b.greatest, sum)};
    }
    case ExprKind::kSub: {
      if (!is_exact) return {};
      const Bounds a = of(0), b = of(1);
      return {.least = Pairs(a.least, b.greatest, difference),
              .greatest = Pairs(a.greatest, b.least, difference)};
    }
    case ExprKind::kMod: {
      const Expr by = e.operand(1);
      if (!by.Is(ExprKind::kIntImm) || by.int_value() <= 0) return {};
      ir::Context& c = e.context();
      return {.least = {*affine_.Value(c.I64(0))},
              .greatest = {*affine_.Value(c.I64(by.int_value() - 1))}};
    }
    default:
      return {};
  }
}

bool ScopBuilder::IsExactLet(Expr value) {
  const isl::set context = scop_.context.intersect(affine_.ParameterRanges());
  bool is_exact = true;
  ir::ForEachExpr(value, [&](Expr x) {
    const bool may_wrap = x.Is(ExprKind::kAdd) || x.Is(ExprKind::kSub) || x.Is(ExprKind::kMul);
    if (!is_exact || !may_wrap) return;
    const auto needed = affine_.NeverWraps(x, domain_, context);
    is_exact = needed && context.is_subset(*needed);
  });
  return is_exact;
}

// { [i, j] -> [f(i, j)] }, or to the elements of the dimension between the index's bounds.
isl::map ScopBuilder::IndexMap(Expr index, Expr extent, bool* is_exact) {
  const auto value = affine_.Value(index);
  if (value && value->n_piece() <= kMaxIndexPieces) {
    return isl::manage(isl_map_from_pw_aff(value->copy()));
  }
  *is_exact = false;
  isl::map all = isl::manage(isl_map_from_domain(affine_.Universe().release()));
  all = isl::manage(isl_map_add_dims(all.release(), isl_dim_out, 1));
  all = isl::manage(isl_map_lower_bound_si(all.release(), isl_dim_out, 0, 0));
  if (const auto size = affine_.Value(extent)) {
    isl::map end = isl::manage(isl_map_from_pw_aff(size->copy()));
    // { [i] -> [x] : x < size }
    isl::map below = isl::manage(isl_map_lex_gt(isl_space_set_alloc(scop_.isl->get(), 0, 1)));
    all = all.intersect(end.apply_range(below));
  }
  const Bounds bounds = BoundsOf(ir::Substitute(index, inside_lets_));
  const auto limit = [&](const isl::pw_aff& bound, __isl_give isl_map* (*order)(isl_space*)) {
    const isl::map at = isl::manage(isl_map_from_pw_aff(bound.copy()));
    // { [b] -> [x] : b <= x }, or b >= x
    const isl::map beyond = isl::manage(order(isl_space_set_alloc(scop_.isl->get(), 0, 1)));
    all = all.intersect(at.apply_range(beyond));
  };
  for (const isl::pw_aff& least : bounds.least) limit(least, isl_map_lex_le);
  for (const isl::pw_aff& greatest : bounds.greatest) limit(greatest, isl_map_lex_ge);
  return all;
}

void ScopBuilder::AddAccess(Buffer buffer, absl::Span<const Expr> indices, bool is_write,
                            bool certain, Statement* statement) {
  if (inside_.contains(buffer)) return;
  bool is_exact = true;
  isl::map map = isl::manage(isl_map_from_domain(affine_.Universe().release()));
  std::string name;
  if (const auto group = aliases_.Group(buffer)) {
    // Elements of buffers that may overlap are not told apart.
    name = StrCat("alias", *group);
    is_exact = false;
  } else {
    name = ArrayName(buffer);
    for (size_t i = 0; i < indices.size(); ++i) {
      map = isl::manage(isl_map_flat_range_product(
          map.release(), IndexMap(indices[i], buffer->extents[i], &is_exact).release()));
    }
  }
  map = isl::manage(isl_map_set_tuple_name(map.release(), isl_dim_out, name.c_str()));
  map = isl::manage(isl_map_set_tuple_name(map.release(), isl_dim_in, statement->name.c_str()));
  map = map.intersect_domain(statement->domain).coalesce();
  Access access{.buffer = buffer,
                .is_write = is_write,
                .is_must = certain && is_exact,
                .map = map,
                .indices = {}};
  if (is_exact) access.indices.assign(indices.begin(), indices.end());
  statement->accesses.push_back(std::move(access));
}

namespace {

bool Contains(Expr e, Expr part) {
  bool found = false;
  ir::ForEachExpr(e, [&](Expr x) { found = found || x == part; });
  return found;
}

}  // namespace

std::optional<Reduction> ScopBuilder::FindReduction(Stmt store, const Statement& statement) const {
  const Buffer buffer = store.buffer();
  if (aliases_.Group(buffer)) return std::nullopt;
  const Expr self = store.context().Load(buffer, store.indices());
  for (Expr index : store.indices()) {
    if (LoadsFrom(index, buffer)) return std::nullopt;
  }
  const Type type = buffer->type;
  const ExprKind op = store.value().kind();
  const bool is_sum = op == ExprKind::kAdd || op == ExprKind::kSub;
  switch (op) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
      break;
    default:
      return std::nullopt;
  }
  // The chain ((self + a) - b) + c, where `self` may be any summand that is added.
  Expr rest = store.value();
  while (rest != self) {
    const bool same =
        rest.kind() == op || (is_sum && (rest.Is(ExprKind::kAdd) || rest.Is(ExprKind::kSub)));
    if (!same) return std::nullopt;
    const Expr a = rest.operand(0), b = rest.operand(1);
    const bool in_a = Contains(a, self), in_b = Contains(b, self);
    if (in_a && !in_b) {
      rest = a;
    } else if (!in_a && in_b && !rest.Is(ExprKind::kSub)) {
      rest = b;
    } else {
      return std::nullopt;
    }
  }
  // What else is read of the buffer is never the element that the instance updates: x[i] -= L[i, j] * x[j], where j <
  // i.
  std::optional<isl::map> updated;
  for (const Access& access : statement.accesses) {
    if (access.is_write) updated = access.map.intersect_domain(statement.domain);
  }
  for (const Access& access : statement.accesses) {
    if (access.is_write || access.buffer != buffer) continue;
    if (access.indices.size() == store.indices().size() &&
        std::equal(access.indices.begin(), access.indices.end(), store.indices().begin())) {
      continue;
    }
    if (!access.map.intersect(*updated).is_empty()) return std::nullopt;
  }
  return Reduction{
      .buffer = buffer, .op = is_sum ? ExprKind::kAdd : op, .is_exact = ir::IsInt(type)};
}

bool ScopBuilder::Stores(Stmt s, Expr e) const {
  bool stores = false;
  ir::ForEachExpr(e, [&](Expr x) {
    if (!x.Is(ExprKind::kLoad) || stores) return;
    const Buffer loaded(x.buffer());
    const auto group = aliases_.Group(loaded);
    stores = ir::AnyStmt(s, [&](Stmt store) {
      return store.Is(StmtKind::kStore) &&
             (store.buffer() == loaded || (group && aliases_.Group(store.buffer()) == group));
    });
  });
  return stores;
}

}  // namespace polynao::poly
