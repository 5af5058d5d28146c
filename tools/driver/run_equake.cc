#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/run_nest.h"
#include "compiler/ir/random_arguments.h"
#include "kernels/equake/equake.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/run.h"

namespace polynao::driver {

absl::StatusOr<bool> RunEquake(const kernels::Equake& equake, RunFlags& flags) {
  RETURN_IF_ERROR(command_line::CheckRead(
      *flags.command, equake.name, "a time step of equake",
      "--shape --target --schedule --threads --contract --reassociate --reciprocal --seed "
      "--no-check --json"));
  RETURN_IF_ERROR(CheckThreads(flags));
  if (flags.text.schedule.size() > 1) {
    return InvalidInput("run ", equake.name, ": expected one --schedule, found ",
                        absl::StrJoin(flags.text.schedule, ", "));
  }
  cases::NestSettings settings = flags.nest;
  settings.schedule = flags.text.schedule.empty() ? "fuse" : flags.text.schedule[0];
  settings.check_values = !flags.no_check;
  settings.seed = flags.settings.seed;
  ASSIGN_OR_RETURN(const int64_t nodes, kernels::ParseEquakeNodes(equake, flags.text.shape));
  ASSIGN_OR_RETURN(const ir::Function function, kernels::EquakeFunction(equake, nodes));
  ASSIGN_OR_RETURN(ir::RandomArguments arguments,
                   kernels::EquakeArguments(equake, function, nodes, settings.seed));
  ASSIGN_OR_RETURN(cases::NestReport report, cases::RunNest(function,
                                                            {.arguments = &arguments,
                                                             .name = "plain loops",
                                                             .run = equake.reference,
                                                             .tolerance = equake.tolerance},
                                                            settings));
  report.arguments = {{"nodes", StrCat(nodes)}};
  return Print(report, flags);
}

}  // namespace polynao::driver
