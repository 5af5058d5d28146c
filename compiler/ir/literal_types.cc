// The types of literals: a bare one takes the type of its place, or of the operand beside it.
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compiler/ir/expression_parser.h"

namespace polynao::ir {

namespace {

// `~x` is read as `x ^ -1`; the literal -1 then stands for all bits set, in unsigned types too.
bool IsAllOnes(Expr e, size_t operand, Expr user) {
  return user.Is(ExprKind::kBitXor) && operand == 1 && e.IsInt(-1);
}

bool LiteralFits(Expr literal, Type type) {
  if (type == Type::kI1) return false;
  if (literal.Is(ExprKind::kFloatImm)) return IsFloat(type);
  if (IsFloat(type)) return true;
  // A literal of u64 is one that no i64 holds.
  if (literal.type() == Type::kU64) return type == Type::kU64;
  return FitsInt(type, literal.int_value());
}

}  // namespace

bool ExpressionParser::CanRetype(Expr e, Type type) {
  if (e.IsConst()) return LiteralFits(e, type);
  if (IsFloat(type) && !TakesFloats(e.kind())) return false;
  for (size_t i = 0; i < e.operands().size(); ++i) {
    if (!IsAllOnes(e.operand(i), i, e) && !CanRetype(e.operand(i), type)) return false;
  }
  return true;
}

Expr ExpressionParser::Retype(Expr e, Type type) {
  if (e.Is(ExprKind::kIntImm)) {
    return IsFloat(type) ? c_.Float(type, IntToFloat(e.type(), e.int_value(), type))
                         : c_.Int(type, e.int_value());
  }
  if (e.Is(ExprKind::kFloatImm)) return c_.Float(type, e.float_value());
  return c_.Binary(e.kind(), Retype(e.operand(0), type), Retype(e.operand(1), type));
}

std::string ExpressionParser::Misfit(Expr literals, Type type, std::string_view whose) {
  if (literals.IsConst()) {
    const std::string text = literals.Is(ExprKind::kIntImm)
                                 ? IntText(literals.type(), literals.int_value())
                                 : absl::StrFormat("%.17g", literals.float_value());
    const bool wrong_kind = type == Type::kI1 || literals.Is(ExprKind::kFloatImm);
    return StrCat(text, wrong_kind ? " is no " : " does not fit ", TypeName(type), ", the type of ",
                  whose);
  }
  for (size_t i = 0; i < literals.operands().size(); ++i) {
    const Expr operand = literals.operand(i);
    if (!IsAllOnes(operand, i, literals) && !CanRetype(operand, type)) {
      return Misfit(operand, type, whose);
    }
  }
  return StrCat("an operator of integers where ", TypeName(type), " is the type of ", whose);
}

absl::Status ExpressionParser::Unify(const Token& op_place, std::string_view op, Argument& a,
                                     Argument& b) {
  Parsed& x = a.value;
  Parsed& y = b.value;
  if (x.e.type() == y.e.type()) return absl::OkStatus();
  if (x.flexible && CanRetype(x.e, y.e.type())) {
    x.e = Retype(x.e, y.e.type());
    return absl::OkStatus();
  }
  if (y.flexible && CanRetype(y.e, x.e.type())) {
    y.e = Retype(y.e, x.e.type());
    return absl::OkStatus();
  }
  if (x.flexible != y.flexible) {
    const Argument& literals = x.flexible ? a : b;
    return ErrorAt(*literals.place, Misfit(literals.value.e, (x.flexible ? y : x).e.type(),
                                           StrCat("the other operand of '", op, "'")));
  }
  return ErrorAt(op_place,
                 StrCat("'", op, "' of ", TypeName(x.e.type()), " and ", TypeName(y.e.type())));
}

Parsed ExpressionParser::Settle(Parsed e) {
  if (!e.flexible) return e;
  if (e.e.type() == Type::kF64) return {Retype(e.e, Type::kF32)};
  return {e.e};
}

absl::StatusOr<Expr> ExpressionParser::Typed(Type type, std::string_view what) {
  const Token& place = Peek();
  ASSIGN_OR_RETURN(Parsed parsed, ParseExpr());
  if (parsed.e.type() == type) return parsed.e;
  if (parsed.flexible) {
    if (!CanRetype(parsed.e, type)) return ErrorAt(place, Misfit(parsed.e, type, what));
    return Retype(parsed.e, type);
  }
  return ErrorAt(place, StrCat("expected ", what, " of ", TypeName(type), ", found ",
                               TypeName(parsed.e.type())));
}

}  // namespace polynao::ir
