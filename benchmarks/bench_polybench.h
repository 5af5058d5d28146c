// Runs the suite polybench: this compiler and C compilers on the 30 kernels of PolyBench.
#ifndef BENCHMARKS_BENCH_POLYBENCH_H_
#define BENCHMARKS_BENCH_POLYBENCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"
#include "benchmarks/peers.h"

namespace polynao::benchmarks {

inline constexpr char kPolyBenchSuite[] = "polybench";
inline constexpr char kPolyBenchSuiteDoc[] =
    "30 kernels of PolyBench/C 4.2: times on the CPU, against gcc, clang and Polly";

struct PolyBenchSettings {
  std::string size = "LARGE";  // a data set (kernels::kPolyBenchSizes)
  // Kernels whose name contains this text, or a match of it as a regular expression; "" is all.
  std::string filter = {};
  uint64_t seed = 1;
  int threads = 2;  // of parallel loops: this compiler's, and Polly's
  // The schedules of this compiler (cases::ScheduleFunction); each is an implementation "nao-NAME".
  std::vector<std::string> schedules = {"none", "auto"};
  std::vector<std::string> peers = PeerNames();  // the other compilers
  // Runs of one program go on for so long, and a run that takes longer than `most_seconds` is the only one.
  double seconds = 0.5;
  double most_seconds = 6;
  // A result of the same run (CheckSameRun), whose rows become rows of the result; these kernels do not run.
  std::optional<Comparison> known = {};
  // Called for each kernel that has run.
  std::function<void(int done, int total, const ComparisonRow& row)> on_row = {};
  // Called after each kernel with all rows until then. An error ends the run.
  std::function<absl::Status(const Comparison& so_far)> save = {};
};

// For each kernel that passes the filter: the same inputs for all implementations, one after the other, in this
// process. Float operations may be contracted and reassociated by all of them. Values are compared with those of the
// first implementation that runs. An implementation that cannot be compiled or run is an entry with an error or a
// reason. Rows stand in the order of the kernels. Errors: an unknown size, schedule or peer, a malformed filter, one
// that no kernel passes, `known` of another run.
absl::StatusOr<Comparison> RunPolyBench(const PolyBenchSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_POLYBENCH_H_
