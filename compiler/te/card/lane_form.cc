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
    case ExprKind::kCast:
      return Mask(ir::Ne(condition.operand(0), context.Const(condition.operand(0).type(), 0)),
                  type);
    default:
      break;
  }
  if (condition.IsConst()) return context.Const(type, condition.int_value());
  const Type compared = condition.operands().empty() ? type : condition.operand(0).type();
  const Expr mask =
      context.Select(condition, context.Const(compared, 1), context.Const(compared, 0));
  return compared == type ? mask : context.Cast(type, mask);
}

constexpr int kMostBits = 22;  // f32 has 24

// The quotient of `v` of i32, rounded down.
Expr Quotient(Expr v, int64_t by) {
  ir::Context& c = v.context();
  const auto f32 = [&](Expr e) { return c.Cast(Type::kF32, e); };
  const auto i32 = [&](Expr e) { return c.Cast(Type::kI32, e); };
  const Expr inverse = c.Float(Type::kF32, 1.0 / static_cast<double>(by));
  const Expr q = i32(f32(v) * inverse);
  const Expr rest = f32(v - q * c.Int(Type::kI32, by));
  const bool is_power = (by & (by - 1)) == 0;
  const Expr part = is_power ? rest * inverse : rest / c.Float(Type::kF32, static_cast<double>(by));
  return q + i32(c.Call(Type::kF32, "floor", {part}));
}

}  // namespace

Expr IntegerForm(Expr e) {
  ir::Context& c = e.context();
  const bool is_it = e.operands().size() == 2 && e.operand(1).Is(ExprKind::kIntImm);
  if (!is_it || !ir::IsInt(e.type()) || ir::LeastInt(e.type()) >= 0) return Expr();
  const Expr v = e.operand(0);
  const int64_t number = e.operand(1).int_value();
  const bool is_shift = e.Is(ExprKind::kShiftLeft) || e.Is(ExprKind::kShiftRight);
  if (is_shift && (number < 0 || number >= 8 * ir::ByteSize(e.type()))) return Expr();
  if (e.type() != Type::kI32) {
    // A narrow value has the quotients and shifts of a wide one.
    if (ir::ByteSize(e.type()) > 4 || e.type() == Type::kI1) return Expr();
    const Expr wide =
        IntegerForm(c.Binary(e.kind(), c.Cast(Type::kI32, v), c.Int(Type::kI32, number)));
    return wide ? c.Cast(e.type(), wide) : wide;
  }
  const auto power = [](int64_t bits) { return int64_t{1} << bits; };
  switch (e.kind()) {
    case ExprKind::kDiv:
      return number >= 1 && number <= power(kMostBits) ? Quotient(v, number) : Expr();
    case ExprKind::kMod:
      if (number < 1 || number > power(kMostBits)) return Expr();
      return v - Quotient(v, number) * c.Int(Type::kI32, number);
    case ExprKind::kShiftRight:
      if (number <= kMostBits) return Quotient(v, power(number));
      return Quotient(Quotient(v, power(16)), power(number - 16));
    case ExprKind::kShiftLeft:
      return v * c.Int(Type::kI32, power(number));
    case ExprKind::kBitAnd:
      if (number < 0 || (number & (number + 1)) != 0 || number >= power(kMostBits)) return Expr();
      return v - Quotient(v, number + 1) * c.Int(Type::kI32, number + 1);
    default:
      return Expr();
  }
}

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
  const Expr mask = Mask(condition, e.type());
  // A condition that is no comparison is none of numbers.
  return mask == e ? e : context.Select(ir::Ne(mask, zero), e.operand(1), e.operand(2));
}

}  // namespace polynao::te
