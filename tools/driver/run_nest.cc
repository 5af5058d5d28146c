#include "cases/run_nest.h"

#include <iostream>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "nlohmann/json.hpp"
#include "tools/command_line/command_line.h"
#include "tools/driver/run.h"

namespace polynao::driver {

absl::Status CheckThreads(const RunFlags& flags) {
  const std::string& target = flags.nest.executable.target;
  const TargetFacts* facts = FindTarget(target);
  if (flags.nest.executable.threads == 0 || (facts != nullptr && facts->has_threads)) {
    return absl::OkStatus();
  }
  return InvalidInput(
      "--threads is of parallel loops on the CPU: expected --target=cpu, found --target=", target);
}

bool Print(const cases::NestReport& report, const RunFlags& flags) {
  if (flags.json) {
    std::cout << report.ToJson().dump(2) << std::endl;
  } else {
    std::cout << report.ToText() << std::flush;
  }
  return report.ok();
}

absl::StatusOr<bool> RunFile(RunFlags& flags) {
  const std::string& file = flags.text.op;
  RETURN_IF_ERROR(command_line::CheckRead(
      *flags.command, file, "a function",
      "--function --arg --values --target --config --set --schedule --threads "
      "--contract --reassociate --reciprocal --dots "
      "--seed --no-check --json"));
  RETURN_IF_ERROR(CheckThreads(flags));
  if (flags.text.schedule.size() > 1) {
    return InvalidInput("run ", file, ": expected one --schedule, found ",
                        absl::StrJoin(flags.text.schedule, ", "));
  }
  if (!flags.text.schedule.empty()) flags.nest.schedule = flags.text.schedule[0];
  flags.nest.config = flags.settings.config;
  flags.nest.overrides = flags.settings.overrides;
  flags.nest.check_values = !flags.no_check;
  flags.nest.seed = flags.settings.seed;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(text, file));
  ASSIGN_OR_RETURN(const ir::Function function, cases::FindFunction(module, flags.function, file));
  flags.nest.on_unchecked = [&] {
    std::cerr << "nao: " << file << ": --no-check: no index and no divisor of '" << function.name
              << "' is checked" << std::endl;
  };
  absl::StatusOr<cases::NestReport> report = cases::RunNest(function, flags.nest);
  if (!report.ok()) return WithContext(file, report.status());
  return Print(*report, flags);
}

}  // namespace polynao::driver
