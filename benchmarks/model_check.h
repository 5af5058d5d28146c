// How well a cost model orders schedules: its ranks against the simulator's, and what its first choice costs.
#ifndef BENCHMARKS_MODEL_CHECK_H_
#define BENCHMARKS_MODEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/cycles.h"
#include "benchmarks/suites.h"

namespace polynao::benchmarks {

// One case's schedules on one machine.
struct ModelCheck {
  std::string machine, name;
  int schedules = 0;  // that the operator has
  int simulated = 0;  // of these, with the model's first choice among them
  int failed = 0;     // did not compile or run
  double rank = 0;    // Spearman's rank correlation of the model's cycles and the simulator's
  int64_t chosen = 0,
          best = 0;  // simulated cycles of the model's first choice, and of the best one
  double worst = 0;  // the largest simulated cycles / modelled cycles

  double regret() const { return static_cast<double>(chosen) / static_cast<double>(best) - 1; }
};

// Simulates at most `most` schedules of each case that have the choices `schedule` ("stream=1"): all, or some drawn at
// random, the same ones in every run. Cases with fewer than two such schedules are left out. Errors: those of
// MeasureCycles.
absl::StatusOr<std::vector<ModelCheck>> CheckModel(const Suite& suite,
                                                   const std::vector<std::string>& schedule,
                                                   int most, const CyclesSettings& settings);

// Of values in [0, 1, ..): 1 where both are in the same order, -1 in the opposite one; equal values have the mean of
// their ranks. 0 where one of the two is constant.
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

// JSON: a line for each check, then one with the numbers of all: schedules, the rank correlation's mean, the largest
// regret.
std::string ModelText(const std::vector<ModelCheck>& checks);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_MODEL_CHECK_H_
