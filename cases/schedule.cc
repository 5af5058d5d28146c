#include "cases/schedule.h"

#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "compiler/ir/float_rules.h"
#include "compiler/poly/poly.h"

namespace polynao::cases {
namespace {

const std::set<std::string>& Strategies() {
  static const auto& strategies =
      *new std::set<std::string>{"auto", "original", "min", "smart", "max"};
  return strategies;
}

}  // namespace

absl::StatusOr<Scheduled> ScheduleFunction(const ir::Function& function,
                                           const std::string& schedule) {
  Scheduled result{.function = function, .notes = {}};
  if (schedule == "none") return result;
  const auto start = std::chrono::steady_clock::now();
  poly::ScheduleOptions options;
  options.reassociate = ir::FloatRulesOf(function).reassociate;
  if (Strategies().contains(schedule)) {
    options.strategy = schedule;
  } else if (std::filesystem::is_regular_file(schedule)) {
    options.strategy = "text";
    ASSIGN_OR_RETURN(options.text, ReadFile(schedule));
  } else {
    return InvalidInput(
        "--schedule: expected none, auto, original, min, smart, max, or a file with the text of a "
        "schedule, found '",
        schedule, "'");
  }
  absl::StatusOr<poly::ScheduleReport> report = poly::Schedule(result.function, options);
  if (!report.ok()) return WithContext(StrCat("--schedule=", schedule), report.status());
  for (absl::string_view line : absl::StrSplit(report->ToString(), '\n', absl::SkipEmpty())) {
    result.notes.emplace_back(line);
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace polynao::cases
