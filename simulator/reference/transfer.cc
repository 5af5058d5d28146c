#include "simulator/reference/transfer.h"

#include <algorithm>

#include "simulator/reference/gmem_channel.h"

namespace polynao::simulator::reference {
namespace {

using Kind = Place::Kind;

// Who asks for SMEM's port, of each core, in the order of their turns; and for a channel.
enum SmemRequester { kIoRead, kIoWrite, kMoveRead, kMoveWrite, kScalarAccess };
static_assert(kScalarAccess + 1 == kSmemRequesters);
enum ChannelRequester { kLoads, kStores, kScalarUnit };
static_assert(kScalarUnit + 1 == kChannelRequesters);

int64_t SmemBytes(const Parameters& p, int64_t address, int64_t size) {
  const int64_t first = address / p.smem_granule;
  const int64_t last = (address + size - 1) / p.smem_granule;
  return (last - first + 1) * p.smem_granule;
}

Stop Channel(const Parameters& p, const Core& core, const Burst& burst, int64_t delay) {
  const ChannelRequester requester = burst.sender == Sender::kScalar ? kScalarUnit
                                     : burst.writes_gmem             ? kStores
                                                                     : kLoads;
  return {{Kind::kChannel, burst.address / p.gmem.interleave % p.gmem.channels},
          kChannelRequesters * core.index + requester,
          GmemBytes(p.gmem, burst.address, burst.payload, burst.writes_gmem),
          delay};
}

Stop LinkDown(const Parameters& p, const Core& core, const Burst& burst) {
  // A burst from the cache has the next requester.
  const int64_t channel = burst.address / p.gmem.interleave % p.gmem.channels;
  return {{Kind::kLinkDown, core.cluster}, 2 * channel, burst.payload, p.gmem.latency};
}

Stop LinkUp(const Core& core, const Burst& burst, int64_t delay) {
  return {{Kind::kLinkUp, core.cluster},
          2 * core.core + (burst.sender == Sender::kScalar ? 1 : 0),
          burst.payload,
          delay};
}

Stop Smem(const Core& core, SmemRequester requester, int64_t bytes, int64_t delay) {
  return {{Kind::kSmem, core.cluster}, core.core * kSmemRequesters + requester, bytes, delay};
}

Stop Port(Kind kind, const Core& core, const Burst& burst, int64_t delay) {
  return {{kind, core.index}, 0, burst.payload, delay};
}

// The cycle in which a burst is sent is the one for its request, where it reads.
constexpr int64_t kRequest = 1;

void AddIoWay(const Parameters& p, const Core& core, bool touches_smem, Burst& burst) {
  // The port counts SMEM's granules as if each burst began at one.
  const int64_t smem_bytes = SmemBytes(p, 0, burst.payload);
  if (burst.writes_gmem) {
    if (touches_smem) burst.Add(Smem(core, kIoRead, smem_bytes, kRequest));
    burst.Add(Port(Kind::kIoOut, core, burst, 0));
    burst.Add(LinkUp(core, burst, 0));
    burst.Add(Channel(p, core, burst, p.gmem.latency));
  } else {
    burst.Add(Channel(p, core, burst, kRequest));
    burst.Add(LinkDown(p, core, burst));
    burst.Add(Port(Kind::kIoIn, core, burst, 0));
    if (touches_smem) burst.Add(Smem(core, kIoWrite, smem_bytes, 0));
  }
}

void AddMoveWay(const Parameters& p, const Core& core, const Sides& sides, Burst& burst) {
  const int64_t smem_bytes = SmemBytes(p, burst.address, burst.payload);
  const bool reads_smem = sides.from->space == isa::Space::kSmem;
  const bool writes_smem = sides.to->space == isa::Space::kSmem;
  if (reads_smem) {
    burst.Add(Smem(core, kMoveRead, smem_bytes, kRequest));
    // What it writes there has as many granules as what it reads.
    burst.Add(writes_smem ? Smem(core, kMoveWrite, smem_bytes, p.smem_latency)
                          : Port(Kind::kMove, core, burst, p.smem_latency));
  } else {
    burst.Add(Port(Kind::kMove, core, burst, 0));
    burst.Add(Smem(core, kMoveWrite, smem_bytes, p.smem_latency));
  }
}

// The runs of consecutive bytes in the order of the loops. Where a loop goes on right behind the run inside it, all its
// iterations are one run.
std::vector<Engine::Segment> SegmentsOf(isa::ByteRanges ranges) {
  std::erase_if(ranges.dims, [](const auto& loop) { return loop.first == 1; });
  while (!ranges.dims.empty() && ranges.dims.back().second == ranges.run) {
    ranges.run *= ranges.dims.back().first;
    ranges.dims.pop_back();
  }
  std::vector<Engine::Segment> segments;
  ranges.ForEachRun([&](int64_t begin, int64_t size) { segments.push_back({begin, size, 0}); });
  return segments;
}

Engine& EngineOf(Core& core, Sender sender) {
  return sender == Sender::kIoDma ? core.io_dma : core.move_dma;
}

Queue& QueueOf(Core& core, Sender sender) {
  return core.queue(sender == Sender::kIoDma ? isa::Queue::kIo : isa::Queue::kMove);
}

}  // namespace

Sides SidesOf(const Issued& issued) {
  Sides sides;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    (ranges.is_write ? sides.to : sides.from) = &ranges;
  }
  return sides;
}

void Load(const Parameters& p, Core& core, Sender sender, int64_t cycle) {
  Engine& engine = EngineOf(core, sender);
  const Issued& issued = QueueOf(core, sender).current;
  engine = Engine();
  engine.send_from = cycle + issued.cost;
  const Sides sides = SidesOf(issued);
  if (sides.from == nullptr || sides.to == nullptr) return;
  // The side whose runs are the segments: GMEM; else SMEM, and of two in SMEM the one that is read.
  const isa::Space followed = sender == Sender::kIoDma ? isa::Space::kGmem : isa::Space::kSmem;
  engine.segments = SegmentsOf(sides.from->space == followed ? *sides.from : *sides.to);
  engine.segments_allowed = sender == Sender::kMoveDma             ? p.move_dma.outstanding
                            : sides.to->space == isa::Space::kGmem ? p.io_dma.strided_writes
                                                                   : p.io_dma.strided_reads;
}

std::optional<Burst> Send(const Parameters& p, Core& core, Sender sender, int64_t cycle) {
  Engine& engine = EngineOf(core, sender);
  const bool is_io = sender == Sender::kIoDma;
  if (engine.all_sent() || cycle < engine.send_from) return std::nullopt;
  if (engine.in_flight == (is_io ? p.io_dma.outstanding : p.move_dma.outstanding)) {
    return std::nullopt;
  }
  if (engine.sent == 0) {
    if (engine.segments_in_flight == engine.segments_allowed) return std::nullopt;
    ++engine.segments_in_flight;
  }
  Engine::Segment& segment = engine.segments[engine.segment];
  Burst burst;
  burst.core = core.index;
  burst.sender = sender;
  burst.segment = static_cast<int64_t>(engine.segment);
  burst.address = segment.begin + engine.sent;
  const int64_t largest = is_io ? p.io_dma.burst : p.smem_burst;
  burst.payload = std::min(largest - burst.address % largest, segment.size - engine.sent);
  const Sides sides = SidesOf(QueueOf(core, sender).current);
  if (is_io) {
    burst.writes_gmem = sides.to->space == isa::Space::kGmem;
    const isa::ByteRanges& other = burst.writes_gmem ? *sides.from : *sides.to;
    AddIoWay(p, core, other.space == isa::Space::kSmem, burst);
  } else {
    AddMoveWay(p, core, sides, burst);
  }
  ++engine.in_flight;
  ++segment.in_flight;
  engine.sent += burst.payload;
  if (engine.sent == segment.size) {
    engine.sent = 0;
    ++engine.segment;
  }
  return burst;
}

void Complete(Engine& engine, const Burst& burst) {
  --engine.in_flight;
  Engine::Segment& segment = engine.segments[static_cast<size_t>(burst.segment)];
  --segment.in_flight;
  const bool is_sent = burst.segment < static_cast<int64_t>(engine.segment);
  if (is_sent && segment.in_flight == 0) --engine.segments_in_flight;
}

Burst ScalarBurst(const Parameters& p, const Core& core, const isa::ByteRanges& access,
                  int64_t delay) {
  Burst burst;
  burst.core = core.index;
  burst.sender = Sender::kScalar;
  burst.address = access.begin;
  burst.payload = access.byte_count();
  if (access.space == isa::Space::kSmem) {
    const int64_t bytes = SmemBytes(p, burst.address, burst.payload);
    burst.Add(Smem(core, kScalarAccess, bytes, delay + (access.is_write ? p.smem_latency : 0)));
    burst.return_delay = access.is_write ? 0 : p.smem_latency;
  } else if (access.is_write) {
    burst.writes_gmem = true;
    burst.Add(LinkUp(core, burst, delay));
    burst.Add(Channel(p, core, burst, p.gmem.latency));
  } else {
    burst.Add(Channel(p, core, burst, delay));
    burst.Add(LinkDown(p, core, burst));
  }
  return burst;
}

}  // namespace polynao::simulator::reference
