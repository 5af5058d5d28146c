// Streams side by side through one channel, by their number and the distance of their starts: what share of the
// channel's peak they get.
#ifndef SIMULATOR_DRAM_VALIDATION_DISTANCES_H_
#define SIMULATOR_DRAM_VALIDATION_DISTANCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/dram/timing.h"

namespace polynao::simulator {

// Says what the streams do: of every `writes_of` streams the last one writes.
struct StreamMix {
  const char* name;
  int64_t writes_of;  // 0: none
};
inline constexpr StreamMix kStreamMixes[] = {
    {"reads", 0}, {"writes", 1}, {"1 of 4 writes", 4}, {"1 of 3 writes", 3}, {"1 of 2 writes", 2}};

inline constexpr int64_t kDistanceRequests = 8192;  // of 64 bytes, of all streams together

// The distances that are powers of two, at which `streams` streams neither overlap nor leave the channel.
std::vector<int64_t> StreamDistances(const DramTiming& timing, int64_t streams);

// The streams take turns of 512 bytes, and the channel always has a request waiting. Data clocks / clocks of all.
double ShareOfPeak(const DramTiming& timing, const StreamMix& mix, int64_t streams,
                   int64_t distance);

// The worst distance of each number of streams from 2 to 64 (rows: mixes), as a Markdown table of shares.
std::string WorstSharesTable(const DramTiming& timing);

// Shares of reads over the distance, of `streams` streams; a curve for each of `timings`, with its name.
struct NamedTiming {
  std::string name;
  DramTiming timing;
};
std::string DistancesSvg(const std::vector<NamedTiming>& timings, int64_t streams);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_VALIDATION_DISTANCES_H_
