#include "simulator/reference/gmem_channel.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace polynao::simulator::reference {
namespace {

// The numbers of the granules that a burst touches.
std::vector<int64_t> GranulesOf(const GmemChannel& channel, const Burst& burst) {
  std::vector<int64_t> granules;
  const int64_t last = (burst.address + burst.payload - 1) / channel.gmem.granule;
  for (int64_t g = burst.address / channel.gmem.granule; g <= last; ++g) granules.push_back(g);
  return granules;
}

std::list<GmemChannel::Line>::iterator FindLine(GmemChannel& channel, const Burst& burst) {
  const int64_t number = burst.address / channel.gmem.line;
  return std::find_if(channel.lines.begin(), channel.lines.end(),
                      [&](const GmemChannel::Line& line) { return line.number == number; });
}

// A write whose service starts: the slice keeps nothing of what it touches.
void Drop(GmemChannel& channel, const Burst& burst) {
  const auto line = FindLine(channel, burst);
  if (line == channel.lines.end()) return;
  for (int64_t granule : GranulesOf(channel, burst)) line->granules.erase(granule);
  if (line->granules.empty()) channel.lines.erase(line);
}

// Makes the burst's line the one used last, and tells whether it has all granules of the burst.
bool Look(GmemChannel& channel, const Burst& burst) {
  const auto line = FindLine(channel, burst);
  if (line == channel.lines.end()) {
    if (static_cast<int64_t>(channel.lines.size()) == channel.lines_allowed) {
      channel.lines.pop_back();
    }
    channel.lines.push_front({burst.address / channel.gmem.line, {}, 0});
    return false;
  }
  channel.lines.splice(channel.lines.begin(), channel.lines, line);
  const std::vector<int64_t> granules = GranulesOf(channel, burst);
  return std::includes(line->granules.begin(), line->granules.end(), granules.begin(),
                       granules.end());
}

// The slice serves the burst instead of the channel, as soon as the line's latest fetch has come in.
void Divert(GmemChannel& channel, Burst burst, int64_t cycle) {
  Stop& slice = burst.way[burst.passed];
  slice.requester = 0;
  channel.counts.read_cached += slice.bytes;
  Stop& link = burst.way[burst.passed + 1];
  link.requester += 1;
  link.delay = channel.gmem.cache_latency;
  Enter(channel.slice_port, burst, std::max(cycle, channel.lines.front().fetched));
}

// The line used last gets the burst's granules from the channel, which serves it from this cycle on.
void Fetch(GmemChannel& channel, const Burst& burst, int64_t cycle) {
  int64_t end = cycle;
  for (int64_t left = channel.memory.left; end == cycle || left > 0; ++end) {
    left -= channel.memory.counts.rate;
  }
  GmemChannel::Line& line = channel.lines.front();
  line.fetched = end + std::max<int64_t>(0, channel.gmem.latency - channel.gmem.cache_latency);
  for (int64_t granule : GranulesOf(channel, burst)) line.granules.insert(granule);
}

}  // namespace

GmemChannel MakeGmemChannel(const Parameters& parameters, int64_t index, int64_t requesters) {
  GmemChannel channel;
  channel.gmem = parameters.gmem;
  const Parameters::Gmem& gmem = channel.gmem;
  channel.memory =
      MakeServer(absl::StrCat("gmem.channel", index), requesters, gmem.channel_bytes_per_kilocycle);
  channel.slice_port = MakeServer(absl::StrCat("gmem.cache", index), 1, gmem.cache_bytes * 1000);
  channel.lines_allowed = gmem.cache_kib * 1024 / gmem.channels / gmem.line;
  return channel;
}

void Enter(GmemChannel& channel, const Burst& burst, int64_t arrival) {
  Enter(channel.memory, burst, arrival);
}

std::vector<Burst> Finish(GmemChannel& channel, int64_t) {
  std::vector<Burst> done;
  for (Server* server : {&channel.memory, &channel.slice_port}) {
    if (const std::optional<Burst> burst = Finish(*server)) done.push_back(*burst);
  }
  return done;
}

int64_t Take(GmemChannel& channel, int64_t cycle) {
  while (channel.memory.free()) {
    const std::optional<Burst> burst = TakeTurn(channel.memory, cycle);
    if (!burst) break;
    const int64_t bytes = burst->next_stop().bytes;
    const bool has_cache = channel.lines_allowed > 0;
    if (burst->writes_gmem) {
      channel.counts.written += burst->payload;
      channel.counts.written_moved += bytes;
      if (has_cache) Drop(channel, *burst);
    } else {
      channel.counts.read += burst->payload;
      if (has_cache && Look(channel, *burst)) {
        Divert(channel, *burst, cycle);
        continue;
      }
      channel.counts.read_moved += bytes;
    }
    Serve(channel.memory, *burst);
    if (has_cache && !burst->writes_gmem) Fetch(channel, *burst, cycle);
    Take(channel.slice_port, cycle);
    return bytes;
  }
  Take(channel.slice_port, cycle);
  return 0;
}

int64_t GmemBytes(const Parameters::Gmem& gmem, int64_t address, int64_t size, bool is_write) {
  int64_t bytes = 0;
  const int64_t end = address + size;
  for (int64_t granule = address / gmem.granule * gmem.granule; granule < end;
       granule += gmem.granule) {
    bytes += gmem.granule;
    const bool covered = address <= granule && granule + gmem.granule <= end;
    if (is_write && !covered) bytes += gmem.granule;
  }
  return bytes;
}

}  // namespace polynao::simulator::reference
