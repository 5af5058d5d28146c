#include "compiler/arith/logic.h"

#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;

void AppendConjuncts(Expr e, std::vector<Expr>& parts) {
  if (e.Is(ExprKind::kAnd)) {
    AppendConjuncts(e.operand(0), parts);
    AppendConjuncts(e.operand(1), parts);
  } else if (!e.IsInt(1)) {
    parts.push_back(e);
  }
}

std::vector<Expr> Conjuncts(Expr e) {
  std::vector<Expr> parts;
  AppendConjuncts(e, parts);
  return parts;
}

Expr Conjunction(absl::Span<const Expr> list) {
  Expr all;
  for (Expr e : list) all = all ? ir::And(all, e) : e;
  return all;
}

Expr Negation(Expr e) {
  const auto operand = [&](size_t i) { return e.operand(i); };
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return e.context().Bool(e.int_value() == 0);
    case ExprKind::kNot:
      return operand(0);
    case ExprKind::kOr:
      return ir::And(Negation(operand(0)), Negation(operand(1)));
    case ExprKind::kAnd:
      return ir::Or(Negation(operand(0)), Negation(operand(1)));
    case ExprKind::kEq:
      return ir::Ne(operand(0), operand(1));
    case ExprKind::kNe:
      return ir::Eq(operand(0), operand(1));
    case ExprKind::kLt:
      return ir::IsInt(operand(0).type()) ? operand(1) <= operand(0) : ir::Not(e);
    case ExprKind::kLe:
      return ir::IsInt(operand(0).type()) ? operand(1) < operand(0) : ir::Not(e);
    default:
      return ir::Not(e);
  }
}

bool IsTrap(Expr e) {
  switch (e.kind()) {
    case ExprKind::kLoad:
      return true;
    case ExprKind::kCall:
      return !ir::SurelyReturns(e);
    case ExprKind::kDiv:
    case ExprKind::kMod:
      return ir::IsInt(e.type()) && !(e.operand(1).Is(ExprKind::kIntImm) && !e.operand(1).IsInt(0));
    default:
      return false;
  }
}

bool CanTrap(Expr e) {
  bool found = false;
  ir::ForEachExpr(e, [&](Expr x) { found = found || IsTrap(x); });
  return found;
}

bool ReadsMemory(Expr e) {
  bool reads = false;
  ir::ForEachExpr(e, [&](Expr x) {
    reads = reads || x.Is(ExprKind::kLoad) || (x.Is(ExprKind::kCall) && !ir::IsPureCall(x));
  });
  return reads;
}

}  // namespace polynao::arith
