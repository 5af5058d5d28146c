// Runs the suite licm511: the effect of normalize, licm, hoist_if and cse on the CPU and on kernels for
// a GPU.
#ifndef BENCHMARKS_BENCH_LICM_H_
#define BENCHMARKS_BENCH_LICM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/licm_result.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

inline constexpr char kLicmSuite[] = "licm511";
inline constexpr char kLicmSuiteDoc[] =
    "511 cases of TOPI: loop invariant code motion, normalization, hoisting and CSE on the CPU";

struct LicmBenchSettings {
  // "cpu": times and counts. "cuda": counts, and, if nvcc is there, its code for the kernels.
  std::string target = "cpu";
  uint64_t seed = 1;
  // How many cases are compiled and counted at a time. One program is timed at a time, but cases
  // that compile meanwhile disturb it: use 1 for figures to keep.
  int jobs = 1;
  // Cases whose "op/id" contains this text, or a match of it as a regular expression; "" is all.
  std::string filter;
  // How long both programs of a case run, in total.
  double seconds_per_case = 0.5;
  // Rows of cases that need not run again.
  std::vector<LicmRow> known = {};
  // One call at a time, for each case that has run.
  std::function<void(int done, int total, const LicmRow& row)> on_row = {};
};

// The fields that all rows of a run share: suite, target, machine, commit, seed.
nlohmann::ordered_json LicmRun(const LicmBenchSettings& settings);

// For each case of the TOPI table that passes the filter: the operator's function for the CPU,
// compiled by the CPU's pipeline without the four passes (baseline) and with them, run in turn on
// one thread. Their values are compared bit for bit, operations counted, passes timed. A case that
// cannot be built or run is a row with an error. For cuda nothing runs; all programs of a case are
// compiled as one file. Errors: a wrong target, filter or number of jobs, a filter that no case passes.
absl::StatusOr<LicmResult> RunLicmSuite(const LicmBenchSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_LICM_H_
