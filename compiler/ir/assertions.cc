#include "compiler/ir/assertions.h"

#include <variant>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

enum class Failure : uint8_t { kUnknown, kDivisionByZero };

// An integer, also of a condition, or a float, by the expression's type.
struct Value {
  int64_t integer = 0;
  double number = 0;
};

class Evaluator {
 public:
  explicit Evaluator(const ScalarValues& scalars) : scalars_(scalars) {}

  std::optional<Value> Of(Expr e) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return Value{.integer = e.int_value()};
      case ExprKind::kFloatImm:
        return Value{.number = e.float_value()};
      case ExprKind::kVar: {
        const auto it = scalars_.find(e);
        if (it == scalars_.end()) return std::nullopt;
        if (IsFloat(e.type())) return Value{.number = RoundFloat(e.type(), it->second.float_value)};
        return Value{.integer = WrapInt(e.type(), it->second.int_value)};
      }
      case ExprKind::kCast:
        return Cast(e);
      case ExprKind::kNot: {
        const std::optional<Value> value = Of(e.operand(0));
        if (!value) return value;
        return Value{.integer = value->integer == 0};
      }
      case ExprKind::kSelect: {
        const std::optional<Value> condition = Of(e.operand(0));
        return condition ? Of(e.operand(condition->integer != 0 ? 1 : 2)) : condition;
      }
      case ExprKind::kAnd:
      case ExprKind::kOr: {
        const std::optional<Value> a = Of(e.operand(0));
        if (!a || (a->integer != 0) == e.Is(ExprKind::kOr)) return a;
        return Of(e.operand(1));
      }
      default:
        return IsBinary(e.kind()) ? Binary(e) : std::nullopt;
    }
  }

  Failure failure() const { return failure_; }

 private:
  std::optional<Value> Cast(Expr e) {
    const Type from = e.operand(0).type();
    const std::optional<Value> value = Of(e.operand(0));
    if (!value) return value;
    if (IsFloat(e.type())) {
      return Value{.number = IsFloat(from) ? RoundFloat(e.type(), value->number)
                                           : IntToFloat(from, value->integer, e.type())};
    }
    return Value{.integer = IsFloat(from) ? FloatToInt(e.type(), value->number)
                                          : WrapInt(e.type(), value->integer)};
  }

  std::optional<Value> Binary(Expr e) {
    const std::optional<Value> a = Of(e.operand(0));
    const std::optional<Value> b = a ? Of(e.operand(1)) : a;
    if (!b) return b;
    const Type type = e.operand(0).type();
    if (IsFloat(type)) return Floats(e, a->number, b->number);
    const std::optional<int64_t> value = EvaluateInt(e.kind(), type, a->integer, b->integer);
    if (!value) failure_ = Failure::kDivisionByZero;
    return value ? std::optional(Value{.integer = *value}) : std::nullopt;
  }

  static std::optional<Value> Floats(Expr e, double a, double b) {
    switch (e.kind()) {
      case ExprKind::kLt:
        return Value{.integer = a < b};
      case ExprKind::kLe:
        return Value{.integer = a <= b};
      case ExprKind::kEq:
        return Value{.integer = a == b};
      case ExprKind::kNe:
        return Value{.integer = a != b};
      // Rounding twice is rounding once, as double has more than twice the digits of the others.
      case ExprKind::kAdd:
        return Value{.number = RoundFloat(e.type(), a + b)};
      case ExprKind::kSub:
        return Value{.number = RoundFloat(e.type(), a - b)};
      case ExprKind::kMul:
        return Value{.number = RoundFloat(e.type(), a * b)};
      case ExprKind::kDiv:
        return Value{.number = RoundFloat(e.type(), a / b)};
      default:
        return std::nullopt;
    }
  }

  const ScalarValues& scalars_;
  Failure failure_ = Failure::kUnknown;
};

// "n = 5, m = 7": what the condition speaks of.
std::string ScalarsText(const Function& function, Expr condition, const ScalarValues& scalars) {
  std::string text;
  for (const Param& param : function.params) {
    if (!param.var || !UsesVar(condition, param.var)) continue;
    StrAppend(&text, text.empty() ? "" : ", ", param.name(), " = ",
              ScalarText(param.var.type(), scalars.at(param.var)));
  }
  return text;
}

}  // namespace

std::vector<Expr> Assertions(const Function& function) {
  std::vector<Expr> conditions;
  for (const Attribute& attribute : function.attributes) {
    if (attribute.key != "assert") continue;
    for (const AttributeValue& value : attribute.values) {
      const Expr* condition = std::get_if<Expr>(&value);
      if (condition != nullptr && condition->type() == Type::kI1) conditions.push_back(*condition);
    }
  }
  return conditions;
}

ScalarValues ScalarsOf(const Function& function, absl::Span<const Argument> arguments) {
  ScalarValues scalars;
  for (size_t i = 0; i < function.params.size() && i < arguments.size(); ++i) {
    if (function.params[i].var) scalars[function.params[i].var] = arguments[i];
  }
  return scalars;
}

std::optional<int64_t> IntValue(Expr e, const ScalarValues& scalars) {
  const std::optional<Value> value = Evaluator(scalars).Of(e);
  return value && IsInt(e.type()) ? std::optional(value->integer) : std::nullopt;
}

std::optional<bool> Holds(Expr condition, const ScalarValues& scalars) {
  Evaluator evaluator(scalars);
  const std::optional<Value> value = evaluator.Of(condition);
  if (value) return value->integer != 0;
  return evaluator.failure() == Failure::kDivisionByZero ? std::optional(false) : std::nullopt;
}

absl::Status CheckAssertions(const Function& function, absl::Span<const Argument> arguments) {
  const std::vector<Expr> conditions = Assertions(function);
  if (conditions.empty()) return absl::OkStatus();
  const ScalarValues scalars = ScalarsOf(function, arguments);
  for (const Expr condition : conditions) {
    if (Holds(condition, scalars).value_or(true)) continue;
    return InvalidInput("function '", function.name, "': '@assert(", Print(condition),
                        ")' does not hold: ", ScalarsText(function, condition, scalars));
  }
  return absl::OkStatus();
}

}  // namespace polynao::ir
