#include "cases/run_pipeline.h"

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/pipelines/pipelines.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/run.h"

namespace polynao::driver {

absl::StatusOr<bool> RunPipeline(const kernels::Pipeline& pipeline, RunFlags& flags) {
  RETURN_IF_ERROR(
      command_line::CheckRead(*flags.command, pipeline.name, "a pipeline",
                              "--shape --image --out --target --config --set --schedule --threads "
                              "--contract --reassociate --reciprocal "
                              "--instructions --trace --timeline --report --energy --no-hazards "
                              "--seed --no-check --json"));
  RETURN_IF_ERROR(CheckThreads(flags));
  RETURN_IF_ERROR(command_line::CheckWritable("--out", flags.out));
  if (flags.text.schedule.size() > 1) {
    return InvalidInput("run ", pipeline.name, ": expected one --schedule, found ",
                        absl::StrJoin(flags.text.schedule, ", "));
  }
  cases::PipelineSettings settings{
      .shape = flags.text.shape, .image = flags.image, .out = flags.out, .nest = flags.nest};
  settings.nest.schedule = !flags.text.schedule.empty() ? flags.text.schedule[0] : "fuse";
  RETURN_IF_ERROR(ReadCardFlags(flags, settings.nest));
  settings.nest.check_values = !flags.no_check;
  settings.nest.seed = flags.settings.seed;
  ASSIGN_OR_RETURN(const cases::NestReport report, cases::RunPipeline(pipeline, settings));
  return WriteAndPrint(report, flags);
}

}  // namespace polynao::driver
