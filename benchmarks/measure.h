// Compiles functions and times them, as the suites of comparisons do.
#ifndef BENCHMARKS_MEASURE_H_
#define BENCHMARKS_MEASURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"
#include "cases/executable.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::benchmarks {

// `function` compiled by this compiler, with a schedule of cases/schedule.h. Float operations may be contracted and
// reassociated, and divisions become products with reciprocals. What it took, and what the schedule did, goes to
// `entry`.
absl::StatusOr<cases::Executable> CompileScheduled(const ir::Function& function,
                                                   const std::string& schedule, int threads,
                                                   ComparisonEntry& entry);

// Times runs on `arguments`, which then hold what one run leaves. Times or the error go to `entry`; false: an error.
bool TimeEntry(const cases::Executable& executable, const ir::Function& function,
               const cases::TimingOptions& options, ir::RandomArguments& arguments,
               ComparisonEntry& entry);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_MEASURE_H_
