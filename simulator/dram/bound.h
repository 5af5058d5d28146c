// The least time that a DRAM channel takes, whatever the order of its requests.
#ifndef SIMULATOR_DRAM_BOUND_H_
#define SIMULATOR_DRAM_BOUND_H_

#include <cstdint>

#include "simulator/dram/clock_ratio.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

// The terms of the bound, in clocks; they add up to `clocks`.
struct DramBoundTerms {
  int64_t columns = 0;  // spacing of the RD and WR commands
  int64_t turn = 0;     // one change between reads and writes
  int64_t refresh = 0;
  int64_t latency = 0;  // of the last burst: from its command to the end of its data
  int64_t clocks = 0;
};

// No channel of that timing completes reads of `read_bytes` and writes of `write_bytes` sooner after it has seen the
// first request: every row is open and stays so, the bank groups take turns, all reads come before all writes or after
// them. With `posted` writes the last `write_queue` bursts may still be in the queue. (Reads that the write queue
// serves, and writes that it merges, cost nothing and do not count.) With g bank groups in r ranks, s = tccd_s (r > 1:
// at most burst + rank_switch), b = max(g s, tccd_l) for g commands, n bursts:
//
//   columns  b floor((n - 1) / g) + s ((n - 1) mod g), for reads and for writes
//   turn     least of: cl + burst + turnaround - cwl; cwl + burst + twtr_s (one group: twtr_l)
//   refresh  (one rank) floor(T / trefi) times what a refresh costs, T: from the first to the last command;
//            it costs p + trp + trfc + trcd, less what it hides: max(b, turn); p is trtp for reads, cwl + burst +
//            twr for writes, the less of the two for both
//   latency  cl + burst after a read, cwl + burst after a write
DramBoundTerms DramBound(const DramTiming& timing, int64_t read_bytes, int64_t write_bytes);

// The same in cycles of the card: floor(clocks x cycle_mhz / clock_mhz), for each of the channels
// that share the bytes evenly.
int64_t DramBoundCycles(const DramTiming& timing, int64_t cycle_mhz, int64_t channels,
                        int64_t read_bytes, int64_t write_bytes);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_BOUND_H_
