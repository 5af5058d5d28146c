#include "compiler/codegen/c/independent_iterations.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

namespace {

// Whether the index `e` has a different value for each value of `var`.
bool IsInjective(Expr e, Var var, const absl::flat_hash_set<const void*>& inner) {
  if (e == var) return true;
  const auto is_fixed = [&](Expr x) {
    bool fixed = true;
    ForEachExpr(x, [&](Expr y) {
      fixed &= y != var && !inner.contains(y.node()) && !y.Is(ExprKind::kLoad);
    });
    return fixed;
  };
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
      return (IsInjective(e.operand(0), var, inner) && is_fixed(e.operand(1))) ||
             (is_fixed(e.operand(0)) && IsInjective(e.operand(1), var, inner));
    case ExprKind::kMul:
      return IsInjective(e.operand(0), var, inner) && e.operand(1).Is(ExprKind::kIntImm) &&
             !e.operand(1).IsInt(0);
    case ExprKind::kCast:
      return e.type() == Type::kI64 &&
             (e.operand(0).type() == Type::kI32 || e.operand(0).type() == Type::kI64) &&
             IsInjective(e.operand(0), var, inner);
    default:
      return false;
  }
}

}  // namespace

bool IterationsAreIndependent(Stmt loop, const ir::Aliases& aliases) {
  absl::flat_hash_set<const void*> inner;  // bound inside
  ForEachStmt(loop.body(), [&](Stmt s) {
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) inner.insert(s.var().node());
    if (s.Is(StmtKind::kAllocate)) inner.insert(s.buffer().node());
    return true;
  });
  absl::flat_hash_map<Buffer, std::vector<absl::Span<const Expr>>> accesses;
  absl::flat_hash_set<Buffer> stored;
  ForEachStmt(loop.body(), [&](Stmt s) {
    if (s.Is(StmtKind::kStore)) {
      stored.insert(s.buffer());
      accesses[s.buffer()].push_back(s.indices());
    }
    return true;
  });
  bool calls = false;
  ForEachExprIn(loop.body(), [&](Expr e) {
    calls |= e.callee() != nullptr;
    if (e.Is(ExprKind::kLet)) inner.insert(e.var().node());
    if (e.Is(ExprKind::kLoad)) accesses[Buffer(e.buffer())].push_back(e.operands());
  });
  if (calls) return false;
  for (const Buffer buffer : stored) {
    if (inner.contains(buffer.node())) continue;
    for (const auto& [other, indices] : accesses) {
      const auto group = aliases.Group(buffer);
      if (other != buffer && group && group == aliases.Group(other)) return false;
    }
    const std::vector<absl::Span<const Expr>>& indices = accesses.at(buffer);
    bool independent = false;
    for (size_t d = 0; d < indices[0].size(); ++d) {
      bool same = IsInjective(indices[0][d], loop.var(), inner);
      for (absl::Span<const Expr> other : indices) same &= other[d] == indices[0][d];
      independent |= same;
    }
    if (!independent) return false;
  }
  return true;
}

}  // namespace polynao::codegen
