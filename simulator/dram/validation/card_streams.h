// A stream for each core of a whole card, by the distance of their starts: the share of the peak of all channels that
// they get.
#ifndef SIMULATOR_DRAM_VALIDATION_CARD_STREAMS_H_
#define SIMULATOR_DRAM_VALIDATION_CARD_STREAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "isa/machine.h"
#include "simulator/dram/validation/distances.h"

namespace polynao::simulator {

inline constexpr int64_t kCardTransferBytes = 65536;
inline constexpr int64_t kCardTransfers = 8;  // of a core, in flight as the machine allows

// The distances that are powers of two at which the streams of all cores neither overlap nor leave GMEM, of which the
// card keeps some bytes.
std::vector<int64_t> CardDistances(const isa::Machine& machine);

// Bytes moved / (cycles until all cores halt x the channels' rate).
double CardShareOfPeak(const isa::Machine& machine, const StreamMix& mix, int64_t distance);

// The worst and the best distance of each mix, as a row of a Markdown table for each of `machines`.
struct NamedMachine {
  std::string name;
  isa::Machine machine;
};
std::string CardSharesTable(const std::vector<NamedMachine>& machines);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_VALIDATION_CARD_STREAMS_H_
