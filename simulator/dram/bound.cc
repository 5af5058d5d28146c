#include "simulator/dram/bound.h"

#include <algorithm>

#include "base/math.h"

namespace polynao::simulator {

DramBoundTerms DramBound(const DramTiming& t, int64_t read_bytes, int64_t write_bytes) {
  DramBoundTerms result;
  const int64_t burst = t.burst_clocks();
  const int64_t reads = CeilDiv(read_bytes, t.burst_bytes());
  const int64_t writes =
      std::max<int64_t>(0, CeilDiv(write_bytes, t.burst_bytes()) - (t.posted ? t.write_queue : 0));
  if (reads == 0 && writes == 0) return result;
  const bool one_rank = t.ranks == 1;
  const int64_t groups = t.ranks * t.bank_groups;
  const int64_t step = one_rank ? t.tccd_s : std::min(t.tccd_s, burst + t.rank_switch);
  const int64_t block = std::max(groups * step, t.tccd_l);
  for (const int64_t bursts : {reads, writes}) {
    if (bursts == 0) continue;
    result.columns += block * ((bursts - 1) / groups) + step * ((bursts - 1) % groups);
  }
  const int64_t read_latency = t.cl + burst, write_latency = t.cwl + burst;
  if (reads > 0 && writes > 0) {
    const int64_t to_write =
        std::max<int64_t>(1, read_latency + t.turnaround - t.cwl) + write_latency;
    const int64_t same_rank = write_latency + (t.bank_groups > 1 ? t.twtr_s : t.twtr_l);
    const int64_t other_rank = std::max<int64_t>(1, write_latency + t.rank_switch - t.cl);
    const int64_t to_read = (one_rank ? same_rank : std::min(same_rank, other_rank)) + read_latency;
    // The order whose last data end first.
    result.latency = to_write <= to_read ? write_latency : read_latency;
    result.turn = std::min(to_write, to_read) - result.latency;
  } else {
    result.latency = reads > 0 ? read_latency : write_latency;
  }
  if (t.trefi > 0 && one_rank) {
    // From the last command before the PRE; with both kinds it may be the better one.
    int64_t close = t.trtp;
    if (writes > 0) {
      close = reads > 0 ? std::min(close, write_latency + t.twr) : write_latency + t.twr;
    }
    const int64_t gap = close + t.trp + t.trfc + t.trcd;
    const int64_t cost = std::max<int64_t>(0, gap - std::max(block, result.turn));
    // A refresh makes the time longer and so may let another one in.
    for (int64_t last = -1; result.refresh != last;) {
      last = result.refresh;
      result.refresh = (result.columns + result.turn + last) / t.trefi * cost;
    }
  }
  result.clocks = result.columns + result.turn + result.refresh + result.latency;
  return result;
}

int64_t DramBoundCycles(const DramTiming& timing, int64_t cycle_mhz, int64_t channels,
                        int64_t read_bytes, int64_t write_bytes) {
  // Some channel has at least its share.
  const int64_t clocks =
      DramBound(timing, CeilDiv(read_bytes, channels), CeilDiv(write_bytes, channels)).clocks;
  return clocks * cycle_mhz / timing.clock_mhz;
}

}  // namespace polynao::simulator
