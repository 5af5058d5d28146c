#include "benchmarks/measure.h"

#include "base/status.h"
#include "cases/schedule.h"
#include "compiler/ir/float_rules.h"

namespace polynao::benchmarks {

absl::StatusOr<cases::Executable> CompileScheduled(const ir::Function& function,
                                                   const std::string& schedule, int threads,
                                                   ComparisonEntry& entry) {
  ir::Function allowed = function;
  ir::Allow(allowed, {.contract = true, .reassociate = true, .reciprocal = true});
  ASSIGN_OR_RETURN(const cases::Scheduled scheduled,
                   cases::ScheduleFunction(allowed, schedule, threads));
  entry.schedule_ms = scheduled.milliseconds;
  entry.figures = scheduled.figures;
  entry.notes = scheduled.notes;
  ASSIGN_OR_RETURN(
      cases::Executable executable,
      cases::MakeExecutable(scheduled.function, {.target = "cpu", .threads = threads}));
  entry.compile_ms = scheduled.milliseconds + executable.compile_ms;
  return executable;
}

bool TimeEntry(const cases::Executable& executable, const ir::Function& function,
               const cases::TimingOptions& options, ir::RandomArguments& arguments,
               ComparisonEntry& entry) {
  const absl::StatusOr<cases::RunTimes> times =
      cases::TimeRuns(executable, function, arguments, options);
  if (!times.ok()) {
    entry.error = std::string(times.status().message());
    return false;
  }
  entry.time_ns = times->median_ns;
  entry.least_ns = times->least_ns;
  entry.runs = times->runs;
  return true;
}

}  // namespace polynao::benchmarks
