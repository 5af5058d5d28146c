#include "simulator/reference/dram_channel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "simulator/reference/gmem_channel.h"

namespace polynao::simulator::reference {
namespace {

// ---- clocks and cycles; clock k begins k / clock_mhz microseconds after the start of the run, cycle c begins c /
// cycle_mhz after it

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The first clock that does not begin before the cycle.
int64_t ClockOf(const DramChannel& channel, int64_t cycle) {
  return CeilDiv(cycle * channel.timing.clock_mhz, channel.cycle_mhz);
}

// The last clock that begins with the cycle or before it.
int64_t LastClockOf(const DramChannel& channel, int64_t cycle) {
  return cycle * channel.timing.clock_mhz / channel.cycle_mhz;
}

// The first cycle that does not begin before the clock.
int64_t CycleOf(const DramChannel& channel, int64_t clock) {
  return CeilDiv(clock * channel.cycle_mhz, channel.timing.clock_mhz);
}

// ---- turns

int64_t FirstGranule(const DramChannel& channel, int64_t address) {
  return address / channel.gmem.granule * channel.gmem.granule;
}

// Hands whole granules to the controller: [begin, end) in GMEM, in one block of gmem.interleave bytes.
void Ask(DramChannel& channel, int64_t job, int64_t begin, int64_t end, bool is_write,
         int64_t cycle) {
  const Parameters::Gmem& gmem = channel.gmem;
  const int64_t block = begin / gmem.interleave;
  channel.controller.Push(
      {.id = job,
       .address = block / gmem.channels * gmem.interleave + (begin - block * gmem.interleave),
       .bytes = end - begin,
       .is_write = is_write,
       .clock = ClockOf(channel, cycle)});
}

// The whole of a burst.
void AskForAll(DramChannel& channel, int64_t job, bool is_write, int64_t cycle) {
  const Burst& burst = channel.jobs.at(job).burst;
  const int64_t last = burst.address + burst.payload - 1;
  Ask(channel, job, FirstGranule(channel, burst.address),
      FirstGranule(channel, last) + channel.gmem.granule, is_write, cycle);
}

// Reads the granules that a store covers in part, if there are any. They are the first one, the last one, or both.
bool AskForPartlyCovered(DramChannel& channel, int64_t number, int64_t cycle) {
  DramChannel::Job& job = channel.jobs.at(number);
  const Burst& burst = job.burst;
  const int64_t granule = channel.gmem.granule;
  const int64_t end = burst.address + burst.payload;
  const int64_t first = FirstGranule(channel, burst.address);
  const int64_t last = FirstGranule(channel, end - 1);
  std::vector<int64_t> partly;
  for (int64_t g = first; g <= last; g += granule) {
    if (g < burst.address || end < g + granule) partly.push_back(g);
  }
  for (size_t i = 0; i < partly.size(); ++i) {
    const bool two = i + 1 < partly.size() && partly[i + 1] == partly[i] + granule;
    Ask(channel, number, partly[i], partly[i] + (two ? 2 : 1) * granule, false, cycle);
    ++job.reads_left;
    if (two) ++i;
  }
  return job.reads_left > 0;
}

}  // namespace

DramChannel MakeDramChannel(const Parameters& parameters, const DramTiming& timing, int64_t index,
                            int64_t requesters) {
  DramChannel channel(timing);
  channel.gmem = parameters.gmem;
  channel.cycle_mhz = parameters.clock_mhz;
  channel.queues = MakeServer(absl::StrCat("gmem.channel", index), requesters,
                              parameters.gmem.channel_bytes_per_kilocycle);
  return channel;
}

void Enter(DramChannel& channel, const Burst& burst, int64_t arrival) {
  Enter(channel.queues, burst, arrival);
}

std::vector<Burst> Finish(DramChannel& channel, int64_t cycle) {
  // The last clock that has begun is not over yet, but bursts have entered in it.
  const int64_t clock = LastClockOf(channel, cycle);
  channel.controller.Run(clock);
  channel.has_entered = channel.controller.EnterEarly(clock);
  const std::vector<DramCompletion>& ends = channel.controller.completions();
  for (; channel.ends_seen < ends.size(); ++channel.ends_seen) {
    channel.ending.push_back(ends[channel.ends_seen]);
  }
  std::vector<Burst> done;
  std::vector<DramCompletion> ahead;
  for (const DramCompletion& end : channel.ending) {
    if (CycleOf(channel, end.clock) > cycle) {
      ahead.push_back(end);
      continue;
    }
    DramChannel::Job& job = channel.jobs.at(end.id);
    if (job.reads_left > 0) {
      if (--job.reads_left == 0) channel.to_write.push_back(end.id);
      continue;
    }
    ++job.burst.passed;
    done.push_back(job.burst);
    channel.jobs.erase(end.id);
  }
  channel.ending = ahead;
  return done;
}

int64_t Take(DramChannel& channel, int64_t cycle) {
  if (!channel.has_entered) return 0;
  if (!channel.to_write.empty()) {
    AskForAll(channel, channel.to_write.front(), true, cycle);
    channel.to_write.pop_front();
    return 0;
  }
  const std::optional<Burst> burst = TakeTurn(channel.queues, cycle);
  if (!burst) return 0;
  const int64_t bytes = burst->next_stop().bytes;
  (burst->writes_gmem ? channel.counts.written : channel.counts.read) += burst->payload;
  (burst->writes_gmem ? channel.counts.written_moved : channel.counts.read_moved) += bytes;
  Count(channel.queues, *burst);
  const int64_t number = channel.turns++;
  channel.jobs[number] = {*burst};
  if (!burst->writes_gmem || !AskForPartlyCovered(channel, number, cycle)) {
    AskForAll(channel, number, burst->writes_gmem, cycle);
  }
  return bytes;
}

DramCounters Close(DramChannel& channel, int64_t end_cycle) {
  channel.controller.Run(ClockOf(channel, end_cycle));
  const DramCounters& counters = channel.controller.counters();
  const int64_t bus_clocks = (counters.reads + counters.writes) * channel.timing.burst_clocks();
  channel.queues.counts.busy = std::min(end_cycle, CycleOf(channel, bus_clocks));
  return counters;
}

}  // namespace polynao::simulator::reference
