#include "benchmarks/measure.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "benchmarks/busy_cores.h"
#include "benchmarks/provenance.h"
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

absl::StatusOr<cases::Executable> CompilePlainC(const ir::Function& function,
                                                const ir::IntValues& integers, const Peer& peer,
                                                const PlainCOptions& options,
                                                ComparisonEntry& entry) {
  ASSIGN_OR_RETURN(const std::string text, PlainC(function, integers, options));
  ASSIGN_OR_RETURN(cases::Executable executable, MakePeerExecutable(peer, text, function.name));
  entry.compile_ms = executable.compile_ms;
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

void SetProvenance(Comparison& result) {
  result.machine = ProcessorName();
  result.date = Date();
  result.commit = Commit();
}

std::string ScheduleCommand(const std::string& schedule) {
  return StrCat("this compiler, --schedule=", schedule, " --contract --reassociate --reciprocal");
}

absl::Status AddRows(const std::vector<SuiteRow>& rows, const RowsSettings& settings,
                     std::chrono::steady_clock::time_point start,
                     absl::FunctionRef<absl::StatusOr<ComparisonRow>(size_t row)> run,
                     Comparison& result) {
  const BusyCores busy;
  double seconds_before = 0;
  if (settings.known) {
    RETURN_IF_ERROR(WithContext("--resume", CheckSameRun(*settings.known, result)));
    result.date = settings.known->date;
    result.rows = settings.known->rows;
    seconds_before = settings.known->wall_seconds;
  }
  const auto take_time = [&] {
    result.wall_seconds =
        seconds_before +
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto is_known = [&](const SuiteRow& row) {
    return std::any_of(result.rows.begin(), result.rows.end(),
                       [&](const ComparisonRow& known) { return known.kernel == row.kernel; });
  };
  const auto total = std::count_if(rows.begin(), rows.end(), [&](const SuiteRow& row) {
    return row.is_chosen && !is_known(row);
  });
  int done = 0;
  std::ptrdiff_t place = 0;  // in result.rows, of the next row
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_known(rows[i])) {
      ++place;
      continue;
    }
    if (!rows[i].is_chosen) continue;
    ASSIGN_OR_RETURN(ComparisonRow made, run(i));
    const ComparisonRow& placed =
        *result.rows.insert(result.rows.begin() + place++, std::move(made));
    take_time();
    if (settings.on_row) settings.on_row(++done, static_cast<int>(total), placed);
    if (settings.save) RETURN_IF_ERROR(settings.save(result));
  }
  take_time();
  return absl::OkStatus();
}

}  // namespace polynao::benchmarks
