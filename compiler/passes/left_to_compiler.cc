#include "compiler/passes/left_to_compiler.h"

#include "base/check.h"
#include "compiler/ir/type.h"

namespace polynao {

using ir::Expr;
using ir::ExprKind;

bool IsLeftToCompiler(Expr e) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
    case ExprKind::kCast:
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe:
    case ExprKind::kNot:
      return true;
    case ExprKind::kDiv:
    case ExprKind::kMod:
      return ir::IsFloat(e.type())
                 ? e.Is(ExprKind::kDiv)
                 : e.operand(1).Is(ExprKind::kIntImm) && e.operand(1).int_value() != 0;
    case ExprKind::kCall:  // instructions of the processor
      return e.name() == "floor" || e.name() == "ceil" || e.name() == "abs" || e.name() == "sqrt" ||
             e.name() == "fma";
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kSelect:
    case ExprKind::kLet:
    case ExprKind::kLoad:
    case ExprKind::kAddress:
      return false;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(e.kind()));
}

}  // namespace polynao
