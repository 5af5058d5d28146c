#include "compiler/ir/shapes.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::ir {
namespace {

absl::StatusOr<int64_t> EvaluateBinary(Expr e, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (e.operand(0).type() == Type::kU64) {
    // No index has this type, so its operations wrap.
    const std::optional<int64_t> value = EvaluateInt(e.kind(), Type::kU64, a, b);
    if (!value) return InvalidInput("division of ", IntText(Type::kU64, a), " by zero");
    return *value;
  }
  switch (e.kind()) {
    case ExprKind::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case ExprKind::kSub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case ExprKind::kMul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case ExprKind::kDiv:
      if (b == 0) return InvalidInput("division of ", a, " by zero");
      result = FloorDiv(a, b);
      overflow = b == -1 && a < 0 && result < 0;
      break;
    case ExprKind::kMod:
      if (b == 0) return InvalidInput("division of ", a, " by zero");
      result = FloorMod(a, b);
      break;
    default:
      return *EvaluateInt(e.kind(), e.operand(0).type(), a, b);
  }
  if (overflow || !FitsInt(e.type(), result)) {
    return InvalidInput(ExprKindName(e.kind()), " of ", a, " and ", b, " overflows ",
                        TypeName(e.type()));
  }
  return result;
}

}  // namespace

absl::StatusOr<int64_t> EvaluateInt(Expr e, const IntValues& values) {
  auto evaluate = [&](size_t i) { return EvaluateInt(e.operand(i), values); };
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return e.int_value();
    case ExprKind::kVar: {
      auto it = values.find(e);
      if (it == values.end()) return InvalidInput("the value of '", e.name(), "' is not known");
      return it->second;
    }
    case ExprKind::kCast: {
      if (IsFloat(e.type()) || IsFloat(e.operand(0).type())) break;
      ASSIGN_OR_RETURN(const int64_t value, evaluate(0));
      return WrapInt(e.type(), value);
    }
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(const int64_t value, evaluate(0));
      return value == 0;
    }
    case ExprKind::kSelect: {
      ASSIGN_OR_RETURN(const int64_t condition, evaluate(0));
      return evaluate(condition != 0 ? 1 : 2);
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      ASSIGN_OR_RETURN(const int64_t a, evaluate(0));
      if ((a != 0) == e.Is(ExprKind::kOr)) return a;
      return evaluate(1);
    }
    default:
      if (!IsBinary(e.kind()) || IsFloat(e.operand(0).type())) break;
      ASSIGN_OR_RETURN(const int64_t a, evaluate(0));
      ASSIGN_OR_RETURN(const int64_t b, evaluate(1));
      return EvaluateBinary(e, a, b);
  }
  return InvalidInput("expected integer arithmetic over scalar parameters, found ",
                      ExprKindName(e.kind()), " of type ", TypeName(e.type()));
}

absl::StatusOr<std::vector<std::vector<int64_t>>> ParameterShapes(const Function& function,
                                                                  const IntValues& values) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Param& param : function.params) {
    if (!param.buffer) continue;
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (Expr extent : param.buffer->extents) {
      absl::StatusOr<int64_t> value = EvaluateInt(extent, values);
      if (!value.ok()) {
        return WithContext(
            StrCat(function.name, ": extent ", shape.size(), " of '", param.name(), "'"),
            value.status());
      }
      shape.push_back(std::max<int64_t>(*value, 0));
    }
  }
  return shapes;
}

std::optional<size_t> RowDimension(Buffer buffer) {
  for (size_t d = buffer->extents.size(); d-- > 0;) {
    if (!buffer->extents[d].IsInt(1)) return d;
  }
  return std::nullopt;
}

}  // namespace polynao::ir
