#include "compiler/poly/generate/register_tile.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/model/ast_value.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

Stmt LoopLike(Stmt loop, Stmt body) {
  return loop.context().For(loop.var(), loop.min(), loop.extent(), body, loop.for_kind());
}

// What is known of an expression as a function of the loops' variables, over the real numbers.
struct Curvature {
  bool concave = false, convex = false;
};

Curvature CurvatureIn(Expr e, const std::vector<Stmt>& loops) {
  const auto uses = [&](Stmt loop) { return ir::UsesVar(e, loop.var()); };
  if (std::none_of(loops.begin(), loops.end(), uses) || e.Is(ExprKind::kVar))
    return {.concave = true, .convex = true};
  if (e.operands().size() != 2) return {};
  const Curvature a = CurvatureIn(e.operand(0), loops), b = CurvatureIn(e.operand(1), loops);
  switch (e.kind()) {
    case ExprKind::kAdd:
      return {.concave = a.concave && b.concave, .convex = a.convex && b.convex};
    case ExprKind::kSub:
      return {.concave = a.concave && b.convex, .convex = a.convex && b.concave};
    case ExprKind::kMin:
      return {.concave = a.concave && b.concave, .convex = false};
    case ExprKind::kMax:
      return {.concave = false, .convex = a.convex && b.convex};
    case ExprKind::kMul: {
      const bool is_first = IsConstant(e.operand(0));
      if (!is_first && !IsConstant(e.operand(1))) return {};
      const Curvature f = is_first ? b : a;
      const bool is_negative = e.operand(is_first ? 0 : 1).int_value() < 0;
      return is_negative ? Curvature{.concave = f.convex, .convex = f.concave} : f;
    }
    default:
      return {};
  }
}

// The loops inside of `loop`, one for each size, if the bounds of each depend on those around only so that a tile is
// whole if it is at its corners.
std::optional<std::vector<Stmt>> TileLoops(Stmt loop, const std::vector<int64_t>& sizes) {
  if (!loop.Is(StmtKind::kFor)) return std::nullopt;
  std::vector<Stmt> loops;
  std::vector<Stmt> around = {loop};
  Stmt body = loop.body();
  for (const int64_t size : sizes) {
    if (!body.Is(StmtKind::kFor) || !CurvatureIn(body.extent(), around).concave)
      return std::nullopt;
    if (IsConstant(body.extent()) && !body.extent().IsInt(size)) return std::nullopt;
    loops.push_back(body);
    around.push_back(body);
    body = body.body();
  }
  return loops;
}

// The extents of a tile's loops at the corners of those around, each with the size that it has where the tile is whole.
// (Extents are concave in the variables around, so they are nowhere less than at the corners; and a tile has no room
// for more.)
std::vector<std::pair<Expr, int64_t>> CornerExtents(const std::vector<Stmt>& loops,
                                                    const std::vector<int64_t>& sizes) {
  std::vector<std::pair<Expr, int64_t>> extents;
  std::vector<ir::VarMap> corners(1);
  for (size_t i = 0; i < loops.size(); ++i) {
    std::vector<ir::VarMap> next;
    for (const ir::VarMap& corner : corners) {
      const Expr first = ir::Substitute(loops[i].min(), corner);
      for (Expr at : {first, Plus(first, sizes[i] - 1)}) {
        next.push_back(corner);
        next.back()[loops[i].var()] = at;
      }
      const std::pair extent(ir::Substitute(loops[i].extent(), corner), sizes[i]);
      if (!IsConstant(extent.first) &&
          std::find(extents.begin(), extents.end(), extent) == extents.end()) {
        extents.push_back(extent);
      }
    }
    corners = std::move(next);
  }
  return extents;
}

// What `e` is the least of, or the greatest, as far as it depends on `var`.
std::vector<Expr> Terms(Expr e, Var var, ExprKind kind) {
  if (!ir::UsesVar(e, var) || e.operands().size() != 2) return {e};
  const auto of = [&](size_t i, ExprKind k) { return Terms(e.operand(i), var, k); };
  std::vector<Expr> terms;
  if (e.Is(kind)) {
    terms = of(0, kind);
    for (Expr term : of(1, kind)) terms.push_back(term);
    return terms;
  }
  const bool is_difference = e.Is(ExprKind::kSub);
  if (!is_difference && !e.Is(ExprKind::kAdd)) return {e};
  const ExprKind other = kind == ExprKind::kMin ? ExprKind::kMax : ExprKind::kMin;
  for (Expr a : of(0, kind)) {
    for (Expr b : of(1, is_difference ? other : kind))
      terms.push_back(is_difference ? Minus(a, b) : Plus(a, b));
  }
  return terms;
}

// By how much a term grows with `var`, if it is a sum.
std::optional<int64_t> SlopeOf(Expr e, Var var) {
  if (!ir::UsesVar(e, var)) return 0;
  if (e == var) return 1;
  if (!e.Is(ExprKind::kAdd) && !e.Is(ExprKind::kSub)) return std::nullopt;
  const std::optional<int64_t> a = SlopeOf(e.operand(0), var), b = SlopeOf(e.operand(1), var);
  if (!a || !b) return std::nullopt;
  return e.Is(ExprKind::kAdd) ? *a + *b : *a - *b;
}

// Where a tile is whole: if `condition` holds (null: always), at first <= var < end of the loop around it (null: from
// its start, to its end).
struct WholeRange {
  Expr condition, first, end;
};

std::optional<WholeRange> FindWholeRange(Stmt loop, const std::vector<Stmt>& loops,
                                         const std::vector<int64_t>& sizes) {
  ir::Context& c = loop.context();
  WholeRange range;
  const auto require = [&](Expr condition) {
    range.condition =
        range.condition ? c.Binary(ExprKind::kAnd, range.condition, condition) : condition;
  };
  for (const auto& [extent, size] : CornerExtents(loops, sizes)) {
    if (!ir::UsesVar(extent, loop.var())) {
      require(ir::Eq(extent, c.I64(size)));
      continue;
    }
    for (Expr term : Terms(extent, loop.var(), ExprKind::kMin)) {
      const std::optional<int64_t> slope = SlopeOf(term, loop.var());
      if (!slope || *slope < -1 || *slope > 1) return std::nullopt;
      const Expr rest = ir::Substitute(term, {{loop.var(), c.I64(0)}});
      if (*slope == 0) {
        if (IsConstant(rest) && rest.int_value() < size) return std::nullopt;
        if (!IsConstant(rest)) require(c.I64(size) <= rest);
      } else if (*slope == 1) {
        const Expr first = Minus(c.I64(size), rest);
        range.first = range.first ? ir::Max(range.first, first) : first;
      } else {
        const Expr end = Plus(rest, 1 - size);
        range.end = range.end ? ir::Min(range.end, end) : end;
      }
    }
  }
  return range;
}

Stmt Whole(Stmt loop, const std::vector<Stmt>& loops, const std::vector<int64_t>& sizes) {
  ir::Context& c = loop.context();
  Stmt body = loops.back().body();
  // Where a tile is whole, all its rows start at the same place.
  ir::VarMap starts = {{loop.var(), loop.min()}};
  std::vector<Expr> first;
  for (Stmt inner : loops) {
    first.push_back(ir::Substitute(inner.min(), starts));
    starts[inner.var()] = first.back();
  }
  for (size_t i = loops.size(); i-- > 0;) {
    const Var var = c.NewVar(loops[i].var().name(), ir::Type::kI64);
    const auto kind = i + 1 == loops.size() ? ForKind::kVectorize : ForKind::kUnroll;
    body = ir::Substitute(body, {{loops[i].var(), Plus(first[i], var)}});
    body = c.For(var, c.I64(0), c.I64(sizes[i]), body, kind);
  }
  return ir::CloneWithFreshBindings(LoopLike(loop, body));
}

// The loads in `e` that `var` does not change and that every evaluation of `e` makes, outermost ones.
void CollectFixedLoads(Expr e, Var var, std::vector<Expr>& loads) {
  if (e.Is(ExprKind::kLoad) && !ir::UsesVar(e, var)) {
    if (std::find(loads.begin(), loads.end(), e) == loads.end()) loads.push_back(e);
    return;
  }
  const bool is_lazy = e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
  const auto operands = e.operands();
  for (size_t i = 0; i < (is_lazy ? std::min<size_t>(1, operands.size()) : operands.size()); ++i) {
    CollectFixedLoads(operands[i], var, loads);
  }
}

// Whether `s` stores one element, whatever `loop` is at.
bool StoresOneElement(Stmt s, Stmt loop) {
  return s.Is(StmtKind::kStore) &&
         std::none_of(s.indices().begin(), s.indices().end(),
                      [&](Expr index) { return ir::UsesVar(index, loop.var()); });
}

bool ReadsNoOtherElement(Stmt store) {
  bool only_that = true;
  const Expr element = store.context().Load(store.buffer(), store.indices());
  ir::ForEachExprIn(store, [&](Expr e) {
    only_that &=
        !(e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == store.buffer()) || e == element;
    only_that &= !e.Is(ExprKind::kLet) && !e.Is(ExprKind::kAddress);
  });
  return only_that;
}

Stmt Rows(Stmt loop, const std::vector<Stmt>& loops, int64_t size) {
  ir::Context& c = loop.context();
  for (Stmt inner : loops) {
    if (ir::UsesVar(inner.min(), loop.var()) || ir::UsesVar(inner.extent(), loop.var()))
      return loop;
  }
  const Stmt vector = loops.back();
  const Stmt store = vector.body();
  if (!StoresOneElement(store, loop) || !ReadsNoOtherElement(store)) return loop;
  const ir::Type type = store.buffer()->type;
  const ir::Buffer row =
      c.NewBuffer(StrCat(store.buffer()->name, ".row"), type, {c.I64(size)}, store.buffer()->scope);
  const auto lane = [&] { return c.NewVar(vector.var().name(), ir::Type::kI64); };
  const auto indices_at = [&](Var j) {
    std::vector<Expr> indices;
    for (Expr index : store.indices())
      indices.push_back(ir::Substitute(index, {{vector.var(), Plus(vector.min(), j)}}));
    return indices;
  };
  const auto over = [&](Var j, Stmt body) {
    return c.For(j, c.I64(0), c.I64(size), body, ForKind::kVectorize);
  };
  const Var in = lane(), at = lane(), out = lane();
  const Expr nothing = ir::IsFloat(type) ? c.Float(type, 0) : c.Int(type, 0);
  const Stmt first = c.Store(
      row, {in}, c.Select(in < vector.extent(), c.Load(store.buffer(), indices_at(in)), nothing));
  // Loads that all lanes share are made for each of them where a lane may be idle; so they stand outside.
  std::vector<Expr> loads;
  CollectFixedLoads(store.value(), vector.var(), loads);
  absl::flat_hash_map<Expr, Expr> by;
  std::vector<std::pair<Var, Expr>> lets;
  for (Expr load : loads) {
    lets.emplace_back(c.NewVar(ir::Buffer(load.buffer())->name, load.type()), load);
    by[load] = lets.back().first;
  }
  const Expr element = c.Load(store.buffer(), store.indices());
  const Expr held = c.Load(row, {at});
  by[element] = held;
  Expr value = ir::Replace(store.value(), by);
  value = ir::Substitute(value, {{vector.var(), Plus(vector.min(), at)}});
  Stmt step = over(at, c.Store(row, {at}, c.Select(at < vector.extent(), value, held)));
  for (size_t i = lets.size(); i-- > 0;) step = c.LetStmt(lets[i].first, lets[i].second, step);
  const Stmt last =
      c.If(out < vector.extent(), c.Store(store.buffer(), indices_at(out), c.Load(row, {out})));
  Stmt body = c.Seq({over(in, first), LoopLike(loop, step), over(out, last)});
  body = c.If(c.I64(0) < vector.extent(), c.Allocate(row, body));
  for (size_t i = loops.size() - 1; i-- > 0;)
    body = c.For(loops[i].var(), loops[i].min(), loops[i].extent(), body, ForKind::kSerial);
  return ir::CloneWithFreshBindings(body);
}

}  // namespace

Stmt WithRegisterTile(Stmt loop, const std::vector<int64_t>& sizes) {
  const std::optional<std::vector<Stmt>> loops = TileLoops(loop, sizes);
  if (!loops) return loop;
  const std::optional<WholeRange> range = FindWholeRange(loop, *loops, sizes);
  if (!range) return loop;
  ir::Context& c = loop.context();
  const Expr end = Plus(loop.min(), loop.extent());
  const Var q = c.NewVar("end", ir::Type::kI64);
  // Behind the end where no tile is whole. No variable of a let: the pass promote sees that rows from here on are
  // others than those stored.
  const Expr first_whole = range->first ? ir::Max(range->first, loop.min()) : loop.min();
  const Expr end_whole = range->end ? Expr(q) : end;
  const auto between = [&](Expr a, Expr b) {
    return c.For(loop.var(), a, Minus(b, a), loop.body(), loop.for_kind());
  };
  std::vector<Stmt> steps;
  if (range->first) {
    const Expr last_part = ir::Min(first_whole, end);
    steps.push_back(ir::CloneWithFreshBindings(between(loop.min(), last_part)));
  }
  steps.push_back(Whole(between(first_whole, end_whole), *loops, sizes));
  if (range->end) steps.push_back(ir::CloneWithFreshBindings(between(q, end)));
  Stmt whole = c.Seq(steps);
  if (range->end) whole = c.LetStmt(q, ir::Max(first_whole, ir::Min(range->end, end)), whole);
  if (!range->condition) return whole;
  return c.If(range->condition, whole, Rows(loop, *loops, sizes.back()));
}

Stmt WithSum(Stmt loop) {
  const Stmt store = loop.body();
  if (!StoresOneElement(store, loop)) return loop;
  ir::Context& c = loop.context();
  const ir::Buffer sum =
      c.NewBuffer(StrCat(store.buffer()->name, ".sum"), store.buffer()->type, {});
  const Expr element = c.Load(store.buffer(), store.indices());
  const absl::flat_hash_map<Expr, Expr> by = {{element, c.Load(sum, {})}};
  const Stmt body = c.Store(sum, {}, ir::Replace(store.value(), by));
  const Stmt steps = c.Seq({c.Store(sum, {}, element), LoopLike(loop, body),
                            c.Store(store.buffer(), store.indices(), c.Load(sum, {}))});
  return c.If(c.I64(0) < loop.extent(), c.Allocate(sum, steps));
}

}  // namespace polynao::poly
