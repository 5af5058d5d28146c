// Cycles of suites, kept in a file and compared with those of another day: what a change of the compiler made slower.
#ifndef BENCHMARKS_CYCLES_H_
#define BENCHMARKS_CYCLES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/suites.h"
#include "kernels/te/operator.h"

namespace polynao::benchmarks {

// One case on one machine. `failure`: why there are no cycles ("" where there are).
struct CaseCycles {
  std::string machine = {}, suite = {}, name = {};
  int count = 1;  // how often the network has it
  int64_t cycles = 0;
  int64_t bound = 0;          // the larger of the bounds of docs/benchmarks.md
  int64_t reach = 0;          // cases::CardBounds::reach; 0: not known, of nests
  int64_t scalar_stores = 0;  // statements of topi511's programs that are left to the scalar unit
  std::string failure = {};
  // Of topi511 with CyclesSettings::values: "agree", or how not, at the shapes `values_at` ("1x8x28x28,16x8x3x3").
  std::string values = {}, values_at = {};

  std::string Key() const { return machine + " " + suite + " " + name; }
  bool operator==(const CaseCycles&) const = default;
};

struct CyclesSettings {
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::string
      filter;  // only cases with this in their names; of topi511 also a regular expression (NameFilter)
  bool use_tuned = true;
  // Of topi511: compare values, too.
  bool values = false;
  int jobs = 1;
  std::function<void(int done, int total, const CaseCycles&)> on_case;
};

// Simulates the compiled programs of a suite's cases, their timing alone. The order is the suite's. Errors: a wrong
// machine; no case passes the filter. A case that does not compile or run has a failure.
absl::StatusOr<std::vector<CaseCycles>> MeasureCycles(const Suite& suite,
                                                      const CyclesSettings& settings);

// The suite of the TOPI table, of which each case has its first function: "topi511".
inline constexpr char kTopiSuite[] = "topi511";
// The same for its cases, whose loops become instructions. A case whose program leaves so much to the scalar unit that
// simulating it takes minutes has a failure that says so. Cycles are those of the real shapes. Values are compared at
// shapes that a simulation with values can take (SmallerCase), for the first and the last of a case's functions.
absl::StatusOr<std::vector<CaseCycles>> MeasureTopiCycles(const CyclesSettings& settings);

// A case of the same operator with at most `most_work` products and bytes, as far as halving extents leads there: the
// largest extent above 8, wherever it stands in shapes and attributes, becomes half, odd if it was odd; where the
// operator does not take that, another one does, alone or with a number among the attributes (groups), or all at once.
kernels::OperatorCase SmallerCase(const kernels::OperatorCase& c, double most_work);

// "511 cases: 490 run, 400 of them without scalar stores; median efficiency 0.5; values agree in 489 of 500".
std::string SummaryText(const std::vector<CaseCycles>& cases);

// JSON, one line for each case, and back. Errors: no such JSON; a case twice.
std::string CyclesText(const std::vector<CaseCycles>& cases);
absl::StatusOr<std::vector<CaseCycles>> ParseCycles(std::string_view text);

struct CyclesComparison {
  // For each machine, suite and class with cases in both: geometric means of efficiency (bound / cycles), and sums of
  // cycles times count; then each case that changed, as text.
  std::string report;
  // Cases that became slower by more than 1 %, or lost their cycles, or stand in `before` alone.
  std::vector<std::string> worse;
};
CyclesComparison CompareCycles(const std::vector<CaseCycles>& before,
                               const std::vector<CaseCycles>& after);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_CYCLES_H_
