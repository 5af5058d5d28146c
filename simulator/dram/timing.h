// Describes what a DRAM channel is made of, and the rules of its commands. README.md states every
// rule.
#ifndef SIMULATOR_DRAM_TIMING_H_
#define SIMULATOR_DRAM_TIMING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "isa/dram_parameters.h"

namespace polynao::simulator {

struct DramTiming {
#define POLYNAO_DRAM_FIELD(name, min, max, unit, meaning) int64_t name = min;
  POLYNAO_DRAM_PARAMETERS(POLYNAO_DRAM_FIELD)
#undef POLYNAO_DRAM_FIELD
  // Where the fields of an address are: see address_map.h.
  std::string map;

  int64_t burst_bytes() const { return bus_bits * burst_length / 8; }
  int64_t burst_clocks() const { return burst_length / beats_per_clock; }
  int64_t banks_per_rank() const { return bank_groups * banks; }
  int64_t bank_count() const { return ranks * banks_per_rank(); }
  int64_t bursts_per_row() const { return row_bytes / burst_bytes(); }
  int64_t capacity() const { return bank_count() * rows * row_bytes; }
  // Bytes a second / 1'000'000 that the data bus moves at most.
  int64_t megabytes_per_second() const { return clock_mhz * beats_per_clock * bus_bits / 8; }
};

// The numbers of a channel with their names ("trcd").
struct DramField {
  const char* name;
  int64_t DramTiming::* field;
};
const std::vector<DramField>& DramFields();

// Limits of DramChannel's bit masks and of the ages that it packs into 64 bits.
inline constexpr int64_t kMaxDramBanks = 64;
inline constexpr int64_t kMaxDramQueue = 128;

// Errors, with `place` in front: a value out of its range; sizes that are not powers of two; a burst that is no whole
// number of clocks or longer than tccd_s; more than kMaxDramBanks banks; watermarks out of order; refreshes that leave
// no time for anything else.
absl::Status ValidateDram(const DramTiming& timing, std::string_view place);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_TIMING_H_
