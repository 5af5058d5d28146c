// Runs the suite licm511: what normalize, licm, hoist_if and cse bring on the CPU, and in
// kernels for a GPU.
#ifndef TOOLS_DRIVER_BENCH_LICM_H_
#define TOOLS_DRIVER_BENCH_LICM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/licm_result.h"
#include "nlohmann/json.hpp"

namespace polynao::driver {

inline constexpr char kLicmSuite[] = "licm511";
inline constexpr char kLicmSuiteDoc[] =
    "511 cases of TOPI: loop invariant code motion, normalization, hoisting and CSE on the CPU";

struct LicmBenchSettings {
  // "cpu": times and counts. "cuda": counts, and what nvcc makes of the kernels where there is one.
  std::string target = "cpu";
  uint64_t seed = 1;
  // Cases that are compiled and counted at a time. Times are always taken alone, but other cases
  // that compile meanwhile disturb them: 1 for figures to keep.
  int jobs = 1;
  // Cases whose "op/id" contains this text, or a match of it as a regular expression; "" is all.
  std::string filter;
  // How long both programs of a case are run, in all.
  double seconds_per_case = 0.5;
  // Rows of cases that are not to run again.
  std::vector<benchmarks::LicmRow> known = {};
  // One call at a time, for each case that has run.
  std::function<void(int done, int total, const benchmarks::LicmRow& row)> on_row = {};
};

// What all rows of a run have in common: suite, target, machine, commit, seed.
nlohmann::ordered_json LicmRun(const LicmBenchSettings& settings);

// For each case of the TOPI table that passes the filter: the operator's function for the CPU,
// compiled by the CPU's pipeline without the four passes (baseline) and with them, run in turn on
// one thread, values compared bit for bit, counts taken, passes timed. A case that can not be
// built or run is a row with an error. For cuda nothing is run; all programs of a case are compiled
// as one file. Errors: a wrong target, filter or number of jobs, a filter that no case passes.
absl::StatusOr<benchmarks::LicmResult> RunLicmSuite(const LicmBenchSettings& settings);

}  // namespace polynao::driver

#endif  // TOOLS_DRIVER_BENCH_LICM_H_
