#include "cases/case_text.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/te/tuned.h"
#include "kernels/topi_cases/cases.h"

namespace polynao::cases {
namespace {

using kernels::OperatorCase;

constexpr ir::Type kTypes[] = {ir::Type::kF16, ir::Type::kF32, ir::Type::kBF16, ir::Type::kF64,
                               ir::Type::kI8,  ir::Type::kI16, ir::Type::kI32,  ir::Type::kI64,
                               ir::Type::kU8,  ir::Type::kU16, ir::Type::kU32,  ir::Type::kU64,
                               ir::Type::kI1};

void AppendName(std::string* text, ir::Type type) { StrAppend(text, ir::TypeName(type)); }

// Reads --schedule, each a text with = or a file with a line for the case, which is complete but for that. A schedule
// that the case does not have is an error of the place where it stands.
absl::Status ReadSchedule(const CaseText& text, const Target& target, OperatorCase& c) {
  std::string place = "--schedule";
  for (const std::string& one : text.schedule) {
    kernels::ScheduleChoice choice;
    if (one.find('=') != std::string::npos) {
      ASSIGN_OR_RETURN(const kernels::TunedSchedule schedule,
                       kernels::ParseSchedule(one, "--schedule"));
      choice = schedule.choice;
    } else {
      const absl::StatusOr<std::string> lines = ReadFile(one);
      if (!lines.ok()) {
        return InvalidInput("--schedule: expected name=number or a file, found '", one,
                            "': ", lines.status().message());
      }
      if (target.machine == nullptr) {
        return InvalidInput("--schedule=", one, ": a file has schedules of the card");
      }
      ASSIGN_OR_RETURN(kernels::FoundSchedule found,
                       kernels::FindSchedule(*lines, one, c, *target.machine));
      choice = std::move(found.choice);
      place = std::move(found.place);
    }
    for (const auto& [name, value] : choice) {
      if (c.schedule.emplace(name, value).second) continue;
      return InvalidInput("--schedule: ", name, " has a value already");
    }
  }
  if (c.schedule.empty() || target.machine == nullptr || text.any_machine) return absl::OkStatus();
  const absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
  if (!op.ok()) return absl::OkStatus();  // That is for others to say.
  if (!(*op)->choose) {
    return InvalidInput(place, ": operator ", c.op, " has no schedule to choose");
  }
  return WithContext(place, (*op)->choose(c, target).status());
}

}  // namespace

ir::Type FirstType(OperatorCase c, const Target& target) {
  // Whether an operator has a type is said by building it: types, attributes and the card's instructions
  // and rates together decide. Where none builds, as of loops that the card takes as they are, the first that the
  // operator has is it.
  std::optional<ir::Type> of_operator;
  for (const ir::Type type : kTypes) {
    c.dtype = type;
    const absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
    if (op.ok() && (*op)->build(c, target).ok()) return type;
    const bool has_type = op.ok() || !kernels::IsWrongType(op.status());
    if (has_type && !of_operator) of_operator = type;
  }
  return of_operator.value_or(ir::Type::kF16);
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
  if (text.dtype.empty()) {
    c.dtype = FirstType(c, target);
  } else {
    const std::optional<ir::Type> type = ir::ParseType(text.dtype);
    if (!type) {
      return InvalidInput("dtype '", text.dtype, "': expected ",
                          absl::StrJoin(kTypes, ", ", AppendName));
    }
    c.dtype = *type;
  }
  RETURN_IF_ERROR(ReadSchedule(text, target, c));
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
