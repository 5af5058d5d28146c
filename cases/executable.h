// A function of loop IR, ready to run on this machine, and how long it takes.
#ifndef CASES_EXECUTABLE_H_
#define CASES_EXECUTABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/back_end.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::cases {

struct ExecutableOptions {
  // Runs on this machine: no card's.
  std::string target = "cpu";
  // Of parallel loops on cpu; 0: as many as the machine runs at once. C follows OMP_NUM_THREADS.
  int threads = 0;
  // In addition to what the function's attributes allow.
  ir::FloatRules float_rules = {};
  // On cpu: as the function is written, with a test of each index and divisor. What stops the interpreter is an error
  // then, at a tenth of its time.
  bool checks = false;
};

struct Executable : codegen::Executable {
  double compile_ms = 0;  // passes of the target's pipeline and code generation
};

// Runs the target's passes on `function` and compiles it. Errors: an unknown target, one that is no processor
// (diannao), those of the back end.
absl::StatusOr<Executable> MakeExecutable(const ir::Function& function,
                                          const ExecutableOptions& options);

struct RunTimes {
  double median_ns = 0;
  double least_ns = 0;
  int runs = 0;
};

struct TimingOptions {
  // Runs go on until both are reached, ...
  int least_runs = 3;
  double seconds = 0.3;
  // ... unless they have taken so long.
  double most_seconds = 20;
  int most_runs = 1000;
};

// Times runs of `function`, which `executable` was made of, on `arguments`. Every run begins with the same values;
// giving them back is not timed. At the end the arguments hold what one run leaves. Code gets its buffers at multiples
// of a page, as a program's own large arrays mostly are. The first run is timed only if it takes `most_seconds` or
// more.
absl::StatusOr<RunTimes> TimeRuns(const Executable& executable, const ir::Function& function,
                                  ir::RandomArguments& arguments,
                                  const TimingOptions& options = {});

}  // namespace polynao::cases

#endif  // CASES_EXECUTABLE_H_
