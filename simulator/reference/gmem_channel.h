// A flat GMEM channel (one rate, whatever the addresses) with its slice of the last-level cache. A channel of DRAM
// (dram_channel.h) stands beside it and offers the same functions.
#ifndef SIMULATOR_REFERENCE_GMEM_CHANNEL_H_
#define SIMULATOR_REFERENCE_GMEM_CHANNEL_H_

#include <cstdint>
#include <list>
#include <set>
#include <vector>

#include "simulator/reference/burst.h"
#include "simulator/reference/gmem_counts.h"
#include "simulator/reference/parameters.h"
#include "simulator/reference/server.h"

namespace polynao::simulator::reference {

struct GmemChannel {
  // A line of the cache, the numbers of its granules, and the cycle in which its latest fetch has come in.
  struct Line {
    int64_t number;
    std::set<int64_t> granules;
    int64_t fetched;
  };
  Parameters::Gmem gmem;
  Server memory;
  Server slice_port;
  int64_t lines_allowed = 0;  // 0: no cache
  std::list<Line> lines;      // the one used last comes first

  GmemCounts counts;
};

GmemChannel MakeGmemChannel(const Parameters& parameters, int64_t index, int64_t requesters);

void Enter(GmemChannel& channel, const Burst& burst, int64_t arrival);

// The end of a cycle of service, in `cycle`: the bursts that leave the channel or the slice. The rest of a burst's way
// says how long it takes from there.
std::vector<Burst> Finish(GmemChannel& channel, int64_t cycle);

// If the channel is free, it begins to serve a burst; until it finds one that the slice does not serve. Returns the
// bytes that it begins to move.
int64_t Take(GmemChannel& channel, int64_t cycle);

// Bytes that a channel moves for a burst: whole granules, and for a write those before that it covers in part.
int64_t GmemBytes(const Parameters::Gmem& gmem, int64_t address, int64_t size, bool is_write);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_GMEM_CHANNEL_H_
