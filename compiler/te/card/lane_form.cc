#include "compiler/te/card/lane_form.h"

#include "compiler/ir/visit.h"

namespace polynao::te {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

// 1 of `type` where `condition` holds, else 0, in terms that instructions have.
Expr Mask(Expr condition, Type type) {
  ir::Context& context = condition.context();
  const Expr one = context.Const(type, 1);
  switch (condition.kind()) {
    case ExprKind::kAnd:
      return Mask(condition.operand(0), type) * Mask(condition.operand(1), type);
    case ExprKind::kOr:
      return ir::Max(Mask(condition.operand(0), type), Mask(condition.operand(1), type));
    case ExprKind::kNot:
      return one - Mask(condition.operand(0), type);
    default:
      break;
  }
  if (condition.IsConst()) return context.Const(type, condition.int_value());
  const Type compared = condition.operands().empty() ? type : condition.operand(0).type();
  const Expr mask =
      context.Select(condition, context.Const(compared, 1), context.Const(compared, 0));
  return compared == type ? mask : context.Cast(type, mask);
}

}  // namespace

Expr LaneForm(Expr e) {
  ir::Context& context = e.context();
  const bool is_commutative = e.Is(ExprKind::kAdd) || e.Is(ExprKind::kMul);
  if (is_commutative && e.operand(0).IsConst()) {
    return LaneForm(context.Binary(e.kind(), e.operand(1), e.operand(0)));
  }
  if (e.Is(ExprKind::kAdd) && e.operand(1).Is(ExprKind::kIntImm)) {
    const int64_t value = e.operand(1).int_value();
    if (value < 0 && value != ir::LeastInt(e.type())) {
      return e.operand(0) - context.Int(e.type(), -value);
    }
  }
  if (e.Is(ExprKind::kCast) && e.operand(0).type() == Type::kI1)
    return Mask(e.operand(0), e.type());
  if (!e.Is(ExprKind::kSelect)) return e;
  const Expr zero = context.Const(e.type(), 0);
  const Expr condition = e.operand(0);
  // A comparison that gives 1 or 0 is an instruction, and so is a choice by a number that is 0 or not.
  const bool is_mask = ir::IsComparison(condition.kind()) &&
                       e.operand(1) == context.Const(e.type(), 1) && e.operand(2) == zero &&
                       condition.operand(0).type() == e.type();
  const bool is_choice = condition.Is(ExprKind::kNe) && condition.operand(1) == zero;
  if (is_mask || is_choice) return e;
  return context.Select(ir::Ne(Mask(condition, e.type()), zero), e.operand(1), e.operand(2));
}

}  // namespace polynao::te
