#include "compiler/poly/calculator/calculator.h"

#include <map>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compiler/poly/calculator/map.h"
#include "compiler/poly/calculator/syntax.h"
#include "compiler/poly/calculator/value.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {
namespace calculator {
namespace {

// Where isl's operations are spent, nothing that came of it counts: no value, no truth value, and no error.
template <typename Result, typename Work>
absl::StatusOr<Result> Checked(const Site& site, const Work& work) {
  try {
    absl::StatusOr<Result> result = work();
    if (absl::IsResourceExhausted(result.status()) || !site.isl.IsSpent()) return result;
    return site.Failed();
  } catch (const isl::exception& error) {
    return site.Failed(&error);
  }
}

class Interpreter {
 public:
  Interpreter(IslContext& isl, std::string_view name) : isl_(isl), name_(name) {}

  absl::StatusOr<std::string> Run(const std::vector<Statement>& statements,
                                  unsigned long max_operations) {
    std::string printed;
    for (const Statement& statement : statements) {
      isl_.Allow(max_operations);
      ASSIGN_OR_RETURN(Value value, Eval(statement.expression));
      if (!statement.variable.empty()) {
        variables_.insert_or_assign(statement.variable, std::move(value));
        continue;
      }
      const Site site = SiteOf(statement.expression);
      ASSIGN_OR_RETURN(const std::string text,
                       Checked<std::string>(site, [&] { return ToText(value); }));
      StrAppend(&printed, text, "\n");
    }
    return printed;
  }

  absl::StatusOr<Value> Eval(const Expression& e);
  Site SiteOf(const Expression& e) const { return Site{isl_, name_, e.place}; }

 private:
  absl::StatusOr<Value> EvalUnchecked(const Expression& e);

  IslContext& isl_;
  const std::string name_;
  std::map<std::string, Value> variables_;
};

absl::StatusOr<Value> Interpreter::Eval(const Expression& e) {
  return Checked<Value>(SiteOf(e), [&] { return EvalUnchecked(e); });
}

absl::StatusOr<Value> Interpreter::EvalUnchecked(const Expression& e) {
  using Kind = Expression::Kind;
  const Site site = SiteOf(e);
  std::vector<Value> operands;
  for (const Expression& operand : e.operands) {
    ASSIGN_OR_RETURN(Value value, Eval(operand));
    operands.push_back(std::move(value));
  }
  // What was computed from a closure that is too large is not exact, either.
  Exactness exactness = Exactness::kUsual;
  bool has_floor_division = false;
  for (const Value& operand : operands) {
    if (operand.exactness == Exactness::kOverApproximation) exactness = operand.exactness;
    has_floor_division |= operand.has_floor_division;
  }
  auto with_notes = [&](absl::StatusOr<Value> value) {
    if (!value.ok()) return value;
    if (exactness != Exactness::kUsual && e.text != "exact") value->exactness = exactness;
    value->has_floor_division |= has_floor_division;
    return value;
  };
  switch (e.kind) {
    case Kind::kLiteral:
      return BuildLiteral(site, *e.literal);
    case Kind::kNumber:
      return Value{ReadNumber(isl_, e.text)};
    case Kind::kBool:
      return Value{e.text == "true"};
    case Kind::kEmpty:
      return Value{isl::union_set::empty(isl_.ctx())};
    case Kind::kVariable: {
      const auto it = variables_.find(e.text);
      if (it == variables_.end()) {
        return site.Error("a variable that has a value, or a function", StrCat("'", e.text, "'"));
      }
      return it->second;
    }
    case Kind::kCall:
      return with_notes(Call(site, e.text, operands, e.arguments));
    case Kind::kBinary:
      return with_notes(ApplyBinary(site, e.text, operands[0], operands[1]));
    case Kind::kNegate:
      return with_notes(ApplyNegate(site, operands[0]));
    case Kind::kNot: {
      const bool* truth = operands[0].As<bool>();
      if (truth == nullptr) return site.Error("a truth value after 'not'", KindOf(operands[0]));
      return with_notes(Value{!*truth});
    }
    case Kind::kPower:
      return with_notes(ApplyPower(site, e.text, operands[0]));
    case Kind::kApply:
      return with_notes(ApplyTo(site, operands[0], operands[1]));
  }
  POLYNAO_UNREACHABLE("kind of expression");
}

}  // namespace
}  // namespace calculator

absl::StatusOr<std::string> Evaluate(std::string_view text, const CalculatorOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<calculator::Statement> statements,
                   calculator::ParseScript(text, options.name));
  IslContext isl;
  return calculator::Interpreter(isl, options.name).Run(statements, options.max_operations);
}

absl::StatusOr<isl::union_map> EvaluateMap(IslContext& isl, std::string_view text,
                                           std::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<calculator::Statement> statements,
                   calculator::ParseScript(text, name));
  if (statements.size() != 1 || !statements[0].variable.empty()) {
    return calculator::ErrorAt(
        name, statements.empty() ? calculator::Place{} : statements.back().place, "one map",
        statements.size() == 1 ? "an assignment" : StrCat(statements.size(), " statements"));
  }
  const calculator::Expression& expression = statements[0].expression;
  calculator::Interpreter interpreter(isl, name);
  ASSIGN_OR_RETURN(const calculator::Value value, interpreter.Eval(expression));
  const auto* map = value.As<isl::union_map>();
  if (map == nullptr) return interpreter.SiteOf(expression).Error("a map", KindOf(value));
  return *map;
}

}  // namespace polynao::poly
