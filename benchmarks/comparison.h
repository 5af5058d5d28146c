// Times of kernels by several implementations: results of the suites polybench and fusion.
#ifndef BENCHMARKS_COMPARISON_H_
#define BENCHMARKS_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

// One kernel by one implementation.
struct ComparisonEntry {
  std::string implementation;  // "nao-auto", "gcc"
  // At most one of them is not empty; then there is no time.
  std::string skipped;     // the compiler is missing, ...
  std::string error;       // it failed
  std::string difference;  // its values differ from those of the first implementation
  double time_ns = 0;      // median
  double least_ns = 0;
  int runs = 0;
  double schedule_ms = 0;  // for this compiler: of the time to compile, what the schedule took
  double compile_ms = 0;   // all
  // Of this compiler's schedule, by name: "redundancy", "bytes_before", "bytes_after".
  std::vector<std::pair<std::string, double>> figures = {};
  std::vector<std::string> notes;

  bool ran() const { return skipped.empty() && error.empty() && difference.empty(); }
};

struct ComparisonRow {
  std::string kernel;
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::vector<ComparisonEntry> entries;  // in the order of Comparison::implementations

  const ComparisonEntry* Find(const std::string& implementation) const;
  // Time of the `baseline` / time of the implementation; nothing if one of them did not run.
  std::optional<double> Speedup(const std::string& implementation,
                                const std::string& baseline) const;
};

struct ComparisonImplementation {
  std::string name;
  std::string command;  // what it is: "gcc -O3 -march=native -ffast-math"
  int threads = 1;
  std::string missing;        // why it is not there; "" if it is
  std::string baseline = {};  // whose times its speed-ups are over; "": Comparison::baseline

  bool operator==(const ComparisonImplementation&) const = default;
};

struct Comparison {
  std::string suite = "polybench";
  std::string title = "polybench: the 30 kernels of PolyBench/C 4.2";
  std::string machine, date, commit, filter;
  std::string size;  // "LARGE"
  uint64_t seed = 1;
  double wall_seconds = 0;
  std::vector<ComparisonImplementation> implementations;
  // The first implementation that is not missing, in the order gcc, clang, nao-none, any other: speed-ups are over it.
  std::string baseline;
  std::vector<ComparisonRow> rows;

  // Something ran, nothing failed, all values agree.
  bool ok() const;
  // Returns the implementation that the speed-ups of another one are relative to.
  const std::string& BaselineOf(const std::string& implementation) const;
  // The geometric mean of the speed-ups over the baseline, or over another implementation, of the kernels that both
  // ran, and how many these are.
  std::pair<double, int> GeometricMean(const std::string& implementation) const;
  std::pair<double, int> GeometricMean(const std::string& implementation,
                                       const std::string& over) const;
};

// {suite, size, machine, date, commit, filter, seed, wall_seconds, ok, baseline, implementations, rows, summary}.
nlohmann::ordered_json ToJson(const Comparison& result);
// Returns the result that ToJson was made of. Errors: another object, a result of another suite.
absl::StatusOr<Comparison> ComparisonFromJson(const nlohmann::ordered_json& json,
                                              const std::string& suite = "polybench");
// Checks that rows of the two results may stand in one: the same machine, commit, size, seed and implementations. The
// error names the first that differs.
absl::Status CheckSameRun(const Comparison& known, const Comparison& now);
// For a terminal: speed-ups by kernel, their geometric means, what was skipped and why.
std::string RowsText(const Comparison& result);
std::string SummaryText(const Comparison& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_COMPARISON_H_
