// Runs the suite equake: strategies of this compiler, and C compilers, on a time step of an earthquake simulation.
#ifndef BENCHMARKS_BENCH_EQUAKE_H_
#define BENCHMARKS_BENCH_EQUAKE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"

namespace polynao::benchmarks {

inline constexpr char kEquakeSuite[] = "equake";
inline constexpr char kEquakeSuiteDoc[] =
    "a time step of an earthquake simulation on the CPU: what is fused around a sparse matrix";

struct EquakeSettings {
  // Rows "equake/train" whose name contains this text, or a match of it as a regular expression; "" is all.
  std::string filter = {};
  std::string size = "all";  // test, train, ref, a number of nodes, or all three
  uint64_t seed = 1;
  std::vector<int> threads = {1, 2};
  // Of this compiler (cases::ScheduleFunction); each is an implementation "nao-NAME". Speed-ups are over the first.
  std::vector<std::string> schedules = {"min", "smart", "max", "fuse", "auto"};
  // "gcc" and "clang": the program as it is written, parallel loops by OpenMP.
  std::vector<std::string> peers = {"gcc", "clang"};
  // Runs of one program go on for so long, in turns with the others', and a run that takes longer than `most_seconds`
  // is the only one.
  double seconds = 1;
  double most_seconds = 6;
  // A result of the same run (CheckSameRun), whose rows become rows of the result; these do not run.
  std::optional<Comparison> known = {};
  // Called for each row that has run.
  std::function<void(int done, int total, const ComparisonRow& row)> on_row = {};
  // Called after each row with all rows until then. An error ends the run.
  std::function<absl::Status(const Comparison& so_far)> save = {};
};

// Both forms of the program (kernels/equake/equake.h) at each size, one run of one time step after the other, on each
// number of threads. Float operations may be contracted and reassociated by all. Values are compared with the
// reference. Errors: an unknown size, schedule or peer, a malformed filter, one that no row passes, `known` of another
// run.
absl::StatusOr<Comparison> RunEquakeSuite(const EquakeSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_EQUAKE_H_
