// Compiles functions, times them, and makes rows of the times, as the suites of comparisons do.
#ifndef BENCHMARKS_MEASURE_H_
#define BENCHMARKS_MEASURE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"
#include "benchmarks/peers.h"
#include "benchmarks/plain_c.h"
#include "cases/executable.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/shapes.h"

namespace polynao::benchmarks {

// `function` compiled by this compiler, with a schedule of cases/schedule.h. Float operations may be contracted and
// reassociated, and divisions become products with reciprocals. What it took, and what the schedule did, goes to
// `entry`.
absl::StatusOr<cases::Executable> CompileScheduled(const ir::Function& function,
                                                   const std::string& schedule, int threads,
                                                   ComparisonEntry& entry);

// `function` for the sizes `integers` as C (plain_c.h), compiled by `peer`. What it took goes to `entry`.
absl::StatusOr<cases::Executable> CompilePlainC(const ir::Function& function,
                                                const ir::IntValues& integers, const Peer& peer,
                                                const PlainCOptions& options,
                                                ComparisonEntry& entry);

// Times runs on `arguments`, which then hold what one run leaves. Times or the error go to `entry`; false: an error.
bool TimeEntry(const cases::Executable& executable, const ir::Function& function,
               const cases::TimingOptions& options, ir::RandomArguments& arguments,
               ComparisonEntry& entry);

// Settings of a suite's run, as the suites' settings have them.
struct RowsSettings {
  const std::optional<Comparison>& known;
  const std::function<void(int done, int total, const ComparisonRow& row)>& on_row;
  const std::function<absl::Status(const Comparison& so_far)>& save;
};

// A row that a suite may have; it runs if it is chosen and not known.
struct SuiteRow {
  std::string kernel;
  bool is_chosen = true;
};

// Sets the machine, the date and the commit of a result.
void SetProvenance(Comparison& result);

// "this compiler, --schedule=auto --contract --reassociate --reciprocal": what CompileScheduled does.
std::string ScheduleCommand(const std::string& schedule);

// Adds to `result`, which has the implementations, the known rows, and then what `run` makes of the rows that are to
// run, each at its place in the order of `rows`. Sets the time since `start`, and what the known run took. Errors:
// `known` of another run (CheckSameRun); those of `run` and `save`.
absl::Status AddRows(const std::vector<SuiteRow>& rows, const RowsSettings& settings,
                     std::chrono::steady_clock::time_point start,
                     absl::FunctionRef<absl::StatusOr<ComparisonRow>(size_t row)> run,
                     Comparison& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_MEASURE_H_
