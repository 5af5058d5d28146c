#include "compiler/poly/calculator.h"

#include <isl/ctx.h>
#include <isl/options.h>

#include <map>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compiler/poly/calculator_literal.h"
#include "compiler/poly/calculator_syntax.h"
#include "compiler/poly/calculator_value.h"

namespace polynao::poly {
namespace calculator {
namespace {

class Interpreter {
 public:
  explicit Interpreter(const CalculatorOptions& options) : options_(options) {
    context_.reset(isl_ctx_alloc());
    POLYNAO_CHECK(context_ != nullptr) << "no memory";
    // Errors show in results and in isl_ctx_last_error: no message on stderr, no abort.
    isl_options_set_on_error(context_.get(), ISL_ON_ERROR_CONTINUE);
    isl_ctx_set_max_operations(context_.get(), options.max_operations);
  }

  absl::StatusOr<std::string> Run(const std::vector<Statement>& statements) {
    std::string printed;
    for (const Statement& statement : statements) {
      isl_ctx_reset_operations(context_.get());
      isl_ctx_reset_error(context_.get());
      ASSIGN_OR_RETURN(Value value, Eval(statement.expression));
      if (!statement.variable.empty()) {
        variables_.insert_or_assign(statement.variable, std::move(value));
      } else {
        StrAppend(&printed, ToText(value), "\n");
      }
    }
    return printed;
  }

 private:
  absl::StatusOr<Value> Eval(const Expression& e);

  struct FreeContext {
    void operator()(isl_ctx* context) const { isl_ctx_free(context); }
  };
  const CalculatorOptions options_;
  std::unique_ptr<isl_ctx, FreeContext> context_;  // first: isl's objects go before it
  std::map<std::string, Value> variables_;
};

absl::StatusOr<Value> Interpreter::Eval(const Expression& e) {
  using Kind = Expression::Kind;
  const Site site{context_.get(), options_.name, e.place};
  std::vector<Value> operands;
  for (const Expression& operand : e.operands) {
    ASSIGN_OR_RETURN(Value value, Eval(operand));
    operands.push_back(std::move(value));
  }
  // What was computed from a closure that is too large is not exact, either.
  Exactness exactness = Exactness::kUsual;
  for (const Value& operand : operands) {
    if (operand.exactness == Exactness::kOverApproximation) exactness = operand.exactness;
  }
  auto with_exactness = [&](absl::StatusOr<Value> value) {
    if (value.ok() && exactness != Exactness::kUsual && e.text != "exact") {
      value->exactness = exactness;
    }
    return value;
  };
  switch (e.kind) {
    case Kind::kLiteral: {
      ASSIGN_OR_RETURN(LiteralValue literal,
                       BuildLiteral(context_.get(), *e.literal, options_.name));
      if (literal.map) return Value{std::move(literal.map)};
      return Value{std::move(literal.set)};
    }
    case Kind::kNumber:
      return Checked(site, Value{IslVal(isl_val_read_from_str(context_.get(), e.text.c_str()))});
    case Kind::kBool:
      return Value{e.text == "true"};
    case Kind::kEmpty:
      return Checked(
          site, Value{IslUnionSet(isl_union_set_empty(isl_space_params_alloc(context_.get(), 0)))});
    case Kind::kVariable: {
      const auto it = variables_.find(e.text);
      if (it == variables_.end()) {
        return site.Error("a variable that has a value, or a function", StrCat("'", e.text, "'"));
      }
      return it->second;
    }
    case Kind::kCall:
      return with_exactness(Call(site, e.text, operands, e.arguments));
    case Kind::kBinary:
      return with_exactness(ApplyBinary(site, e.text, operands[0], operands[1]));
    case Kind::kNegate:
      return with_exactness(ApplyNegate(site, operands[0]));
    case Kind::kNot: {
      const bool* truth = operands[0].As<bool>();
      if (truth == nullptr) return site.Error("a truth value after 'not'", KindOf(operands[0]));
      return with_exactness(Value{!*truth});
    }
    case Kind::kPower:
      return with_exactness(ApplyPower(site, e.text, operands[0]));
    case Kind::kApply:
      return with_exactness(ApplyTo(site, operands[0], operands[1]));
  }
  POLYNAO_UNREACHABLE("kind of expression");
}

}  // namespace
}  // namespace calculator

absl::StatusOr<std::string> Evaluate(std::string_view text, const CalculatorOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<calculator::Statement> statements,
                   calculator::ParseScript(text, options.name));
  return calculator::Interpreter(options).Run(statements);
}

}  // namespace polynao::poly
