// The figures of two public simulators of DRAM for 26 streams, and ours beside them.
#ifndef SIMULATOR_DRAM_VALIDATION_PUBLIC_SIMULATORS_H_
#define SIMULATOR_DRAM_VALIDATION_PUBLIC_SIMULATORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao::simulator {

inline constexpr int64_t kComparedRequests = 100'000;

// One stream. Figures are clocks, or for light_read the mean latency of a read in clocks.
struct ComparedStream {
  std::string pattern, parameters;
  double dramsim3 = 0, ramulator = 0;
  double ours = 0;
  // ours / the larger of the two: above 1, we are slower than both.
  double ratio() const;
};

// Makes and runs each stream of public_simulators.csv on ddr4_3200 with the map and watermarks of the recorded runs,
// with the bank hash of those (`hash`) or none, and with `overrides`. Errors: those of DramPreset.
absl::StatusOr<std::vector<ComparedStream>> CompareWithPublicSimulators(
    bool hash, const std::vector<std::string>& overrides = {});

// As a table for people.
std::string ComparedText(const std::vector<ComparedStream>& streams);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_VALIDATION_PUBLIC_SIMULATORS_H_
