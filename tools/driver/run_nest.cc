#include "cases/run_nest.h"

#include <iostream>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "tools/driver/run.h"

namespace polynao::driver {

absl::StatusOr<bool> RunFile(RunFlags& flags) {
  if (!flags.of_pipelines.empty()) {
    return InvalidInput("run ", flags.text.op, ": ", flags.of_pipelines[0], " is for a pipeline");
  }
  const std::string& file = flags.text.op;
  if (!flags.of_operators.empty()) {
    return InvalidInput("run ", file, ": ", flags.of_operators[0],
                        " is for an operator: expected a function's options");
  }
  if (flags.text.schedule.size() > 1) {
    return InvalidInput("run ", file, ": expected one --schedule, found ",
                        absl::StrJoin(flags.text.schedule, ", "));
  }
  if (!flags.text.schedule.empty()) flags.nest.schedule = flags.text.schedule[0];
  flags.nest.check_values = !flags.no_check;
  flags.nest.seed = flags.settings.seed;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(text, file));
  ASSIGN_OR_RETURN(const ir::Function function, cases::FindFunction(module, flags.function, file));
  absl::StatusOr<cases::NestReport> report = cases::RunNest(function, flags.nest);
  if (!report.ok()) return WithContext(file, report.status());
  if (flags.json) {
    std::cout << report->ToJson().dump(2) << std::endl;
  } else {
    std::cout << report->ToText() << std::flush;
  }
  return report->ok();
}

}  // namespace polynao::driver
