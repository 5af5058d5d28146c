#include "compiler/poly/parts.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace polynao::poly {

absl::StatusOr<ScheduleReport> ScheduleParts(ir::Function& function, const std::string& strategy,
                                             int64_t max_operations, const MakePart& make) {
  ScheduleReport report;
  absl::StatusOr<Extraction> extraction =
      Extract(function, {.max_operations = static_cast<unsigned long>(max_operations)});
  if (!extraction.ok()) {
    const std::string message(extraction.status().message());
    report.remarks.push_back(message);
    if (absl::IsInternal(extraction.status())) report.internal_errors.push_back(message);
    return report;
  }
  for (const Remark& remark : extraction->remarks) report.remarks.push_back(remark.ToString());
  if (strategy == "text" && extraction->scops.size() != 1) {
    return InvalidInput(
        "expected a function with one static control part for a schedule's text, found ",
        extraction->scops.size());
  }
  std::vector<ir::Stmt> replacements;
  for (const Scop& scop : extraction->scops) {
    PartReport part{.name = scop.name};
    part.statements = static_cast<int>(scop.statements.size());
    absl::StatusOr<ir::Stmt> code = Guarded(
        *scop.isl, [&]() -> absl::StatusOr<ir::Stmt> { return make(*extraction, scop, &part); });
    if (code.ok()) {
      part.changed = report.changed = true;
      replacements.push_back(*code);
    } else if (!absl::IsInvalidArgument(code.status())) {
      part.why_not = std::string(code.status().message());
      if (absl::IsInternal(code.status())) report.internal_errors.push_back(part.why_not);
      part.lines.clear();
      replacements.push_back(ir::Stmt());
    } else {
      return WithContext(StrCat("part '", scop.name, "'"), code.status());
    }
    report.parts.push_back(std::move(part));
  }
  if (report.changed) function.body = Replace(*extraction, replacements);
  return report;
}

}  // namespace polynao::poly
