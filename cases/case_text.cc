#include "cases/case_text.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/topi_cases/cases.h"

namespace polynao::cases {
namespace {

using kernels::OperatorCase;

constexpr ir::Type kTypes[] = {ir::Type::kF16, ir::Type::kF32, ir::Type::kBF16, ir::Type::kF64,
                               ir::Type::kI8,  ir::Type::kI16, ir::Type::kI32,  ir::Type::kI64,
                               ir::Type::kU8,  ir::Type::kU16, ir::Type::kU32,  ir::Type::kU64,
                               ir::Type::kI1};

void AppendName(std::string* text, ir::Type type) { StrAppend(text, ir::TypeName(type)); }

}  // namespace

ir::Type FirstType(OperatorCase c, const Target& target) {
  // Whether an operator has a type is said by building it: types, attributes and the card's instructions
  // and rates together decide.
  for (const ir::Type type : kTypes) {
    c.dtype = type;
    const absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
    if (op.ok() && (*op)->build(c, target).ok()) return type;
  }
  return ir::Type::kF16;
}

absl::StatusOr<OperatorCase> ParseCase(const CaseText& text, const Target& target) {
  OperatorCase c;
  c.op = text.op;
  c.scalar = text.scalar;
  c.use_tuned = !text.untuned;
  RETURN_IF_ERROR(kernels::ParseShapes(text.shape, c));
  for (const std::string& attribute : text.attributes) {
    const size_t equals = attribute.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidInput("--attr: expected name=value, found '", attribute, "'");
    }
    c.attributes[attribute.substr(0, equals)] = attribute.substr(equals + 1);
  }
  for (const std::string& choice : text.schedule) {
    const size_t equals = choice.find('=');
    int64_t value;
    if (equals == std::string::npos || equals == 0 ||
        !absl::SimpleAtoi(ToAbsl(choice).substr(equals + 1), &value)) {
      return InvalidInput("--schedule: expected name=number, found '", choice, "'");
    }
    c.schedule[choice.substr(0, equals)] = value;
  }
  if (text.dtype.empty()) {
    c.dtype = FirstType(c, target);
    return c;
  }
  const std::optional<ir::Type> type = ir::ParseType(text.dtype);
  if (!type) {
    return InvalidInput("dtype '", text.dtype, "': expected ",
                        absl::StrJoin(kTypes, ", ", AppendName));
  }
  c.dtype = *type;
  return c;
}

absl::StatusOr<std::vector<OperatorCase>> ParseCases(const CaseText& text, const Target& target) {
  if (!text.table_case) {
    ASSIGN_OR_RETURN(OperatorCase c, ParseCase(text, target));
    return std::vector<OperatorCase>{std::move(c)};
  }
  if (!text.shape.empty() || !text.attributes.empty() || text.scalar || !text.dtype.empty() ||
      !text.schedule.empty()) {
    return InvalidInput(
        "--case=", *text.table_case,
        " says what a case is: expected no --shape, --dtype, --scalar, --attr or --schedule");
  }
  ASSIGN_OR_RETURN(const kernels::TopiCase* c, kernels::FindTopiCase(text.op, *text.table_case));
  std::vector<OperatorCase> cases = c->functions;
  for (OperatorCase& function : cases) function.use_tuned = !text.untuned;
  return cases;
}

}  // namespace polynao::cases
