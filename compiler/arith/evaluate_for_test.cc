#include "compiler/arith/evaluate_for_test.h"

#include "base/check.h"
#include "compiler/arith/const_range.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::kValue:
      return out << outcome.value;
    case Outcome::kTrap:
      return out << "trap";
    case Outcome::kOverflow:
      return out << "overflow";
  }
  return out;
}

Outcome Evaluate(Expr e, const Values& values, Mode mode) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return {Outcome::kValue, e.int_value()};
    case ExprKind::kVar:
      return {Outcome::kValue, values.at(e.id())};
    case ExprKind::kLoad: {
      uint64_t hash = e.buffer()->id + 1;
      for (size_t i = 0; i < e.operands().size(); ++i) {
        const Outcome index = Evaluate(e.operand(i), values, Mode::kIndex);
        if (index.kind != Outcome::kValue) return index;
        if (index.value < 0 || index.value >= e.buffer()->extents[i].int_value()) {
          return {Outcome::kTrap};
        }
        hash = (hash * 31 + static_cast<uint64_t>(index.value)) * 0x9e3779b97f4a7c15;
      }
      return {Outcome::kValue, ir::WrapInt(e.type(), static_cast<int64_t>(hash >> 20))};
    }
    case ExprKind::kLet: {
      const Outcome value = Evaluate(e.operand(0), values, mode);
      if (value.kind != Outcome::kValue) return value;
      Values inner = values;
      inner[e.var().id()] = value.value;
      return Evaluate(e.operand(1), inner, mode);
    }
    default:
      break;
  }
  const Mode first_mode = e.Is(ExprKind::kSelect) ? Mode::kIndex : mode;
  const Outcome first = Evaluate(e.operand(0), values, first_mode);
  if (first.kind != Outcome::kValue) return first;
  switch (e.kind()) {
    case ExprKind::kCast:
      return {Outcome::kValue, ir::WrapInt(e.type(), first.value)};
    case ExprKind::kNot:
      return {Outcome::kValue, 1 - first.value};
    case ExprKind::kAnd:
      return first.value ? Evaluate(e.operand(1), values, mode) : first;
    case ExprKind::kOr:
      return first.value ? first : Evaluate(e.operand(1), values, mode);
    case ExprKind::kSelect:
      return Evaluate(e.operand(first.value ? 1 : 2), values, mode);
    default:
      break;
  }
  const Outcome second = Evaluate(e.operand(1), values, mode);
  if (second.kind != Outcome::kValue) return second;
  const int64_t a = first.value, b = second.value;
  __int128 result = 0;
  switch (e.kind()) {
    case ExprKind::kAdd:
      result = static_cast<__int128>(a) + b;
      break;
    case ExprKind::kSub:
      result = static_cast<__int128>(a) - b;
      break;
    case ExprKind::kMul:
      result = static_cast<__int128>(a) * b;
      break;
    case ExprKind::kDiv:
      if (b == 0) return {Outcome::kTrap};
      result = b == -1 ? -static_cast<__int128>(a) : FloorDiv(a, b);
      break;
    case ExprKind::kMod:
      if (b == 0) return {Outcome::kTrap};
      return {Outcome::kValue, FloorMod(a, b)};
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
      return {Outcome::kValue, *ir::EvaluateInt(e.kind(), e.type(), a, b)};
    case ExprKind::kMin:
      return {Outcome::kValue, b < a ? b : a};
    case ExprKind::kMax:
      return {Outcome::kValue, a < b ? b : a};
    case ExprKind::kEq:
      return {Outcome::kValue, a == b};
    case ExprKind::kNe:
      return {Outcome::kValue, a != b};
    case ExprKind::kLt:
      return {Outcome::kValue, a < b};
    case ExprKind::kLe:
      return {Outcome::kValue, a <= b};
    default:
      POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
  }
  const int64_t wrapped = ir::WrapInt(e.type(), static_cast<int64_t>(result));
  const bool exact = mode == Mode::kIndex && (e.type() == Type::kI32 || e.type() == Type::kI64);
  if (exact && wrapped != result) return {Outcome::kOverflow};
  return {Outcome::kValue, wrapped};
}

}  // namespace polynao::arith
