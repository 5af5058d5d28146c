// Cycles of the card and clocks of its DRAM.
#ifndef SIMULATOR_DRAM_CLOCK_RATIO_H_
#define SIMULATOR_DRAM_CLOCK_RATIO_H_

#include <cstdint>
#include <numeric>

namespace polynao::simulator {

// Cycle c begins c / cycle_mhz microseconds after the start of the run, clock k begins k / clock_mhz after it.
// Both conversions round to the first edge that is not earlier, so nothing is seen before it is there.
class ClockRatio {
 public:
  ClockRatio(int64_t cycle_mhz, int64_t clock_mhz)
      : cycles_(cycle_mhz / std::gcd(cycle_mhz, clock_mhz)),
        clocks_(clock_mhz / std::gcd(cycle_mhz, clock_mhz)) {}

  // The first clock that begins when cycle `cycle` does, or later: ceil(cycle x clock_mhz / cycle_mhz).
  int64_t ClockOf(int64_t cycle) const { return (cycle * clocks_ + cycles_ - 1) / cycles_; }
  // The first cycle that begins when clock `clock` does, or later.
  int64_t CycleOf(int64_t clock) const { return (clock * cycles_ + clocks_ - 1) / clocks_; }
  // The cycle in which clock `clock` begins.
  int64_t CycleDuring(int64_t clock) const { return clock * cycles_ / clocks_; }

 private:
  int64_t cycles_, clocks_;  // that take the same time, least such numbers
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_CLOCK_RATIO_H_
