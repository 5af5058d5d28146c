// A GMEM channel of DRAM, beside the flat one (gmem_channel.h), with the same functions. Here are turns, whole
// granules, and reads before partial writes, as docs/timing.md states them. The controller and its DRAM are
// NaiveChannel, the plain form of simulator/dram/README.md, which goes through every clock.
#ifndef SIMULATOR_REFERENCE_DRAM_CHANNEL_H_
#define SIMULATOR_REFERENCE_DRAM_CHANNEL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "simulator/dram/naive_channel.h"
#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"
#include "simulator/reference/burst.h"
#include "simulator/reference/gmem_counts.h"
#include "simulator/reference/parameters.h"
#include "simulator/reference/server.h"

namespace polynao::simulator::reference {

struct DramChannel {
  explicit DramChannel(const DramTiming& t) : timing(t), controller(t) {}

  // A burst whose turn has come, until it is complete.
  struct Job {
    Burst burst;
    int64_t reads_left = 0;  // requests for granules that it covers in part
  };

  Parameters::Gmem gmem;
  int64_t cycle_mhz = 0;
  DramTiming timing;
  Server queues;  // of the requesters, and whose turn it is; serves nothing itself
  NaiveChannel controller;
  bool has_entered = true;      // what was handed to the controller is in its queues
  std::map<int64_t, Job> jobs;  // by the number of their turn
  int64_t turns = 0;
  size_t ends_seen = 0;                // of the controller's completions
  std::vector<DramCompletion> ending;  // completions that are seen, but lie ahead
  std::deque<int64_t> to_write;  // jobs whose reads have arrived, in the order in which they ended

  GmemCounts counts;
};

DramChannel MakeDramChannel(const Parameters& parameters, const DramTiming& timing, int64_t index,
                            int64_t requesters);

void Enter(DramChannel& channel, const Burst& burst, int64_t arrival);

// Lets the DRAM run up to the beginning of `cycle`. Returns the bursts that leave the channel in this cycle.
std::vector<Burst> Finish(DramChannel& channel, int64_t cycle);

// Takes a turn in `cycle`, if it can. Returns the bytes of the burst that it takes from a requester.
int64_t Take(DramChannel& channel, int64_t cycle);

// Counters of the clocks that begin before `end_cycle`; sets the time of the data bus as the channel's busy cycles. The
// run is over.
DramCounters Close(DramChannel& channel, int64_t end_cycle);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_DRAM_CHANNEL_H_
