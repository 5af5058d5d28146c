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

// Blocks of gmem.interleave bytes take turns on the channels; with gmem.channel_hash, the digits of a block's number in
// base gmem.channels are added up.
int64_t ChannelOf(const Parameters::Gmem& gmem, int64_t address) {
  int64_t sum = 0;
  for (int64_t block = address / gmem.interleave; block > 0; block /= gmem.channels) {
    sum += block % gmem.channels;
    if (gmem.channel_hash == 0 || gmem.channels == 1) break;
  }
  return sum % gmem.channels;
}

Stop Channel(const Parameters& p, const Core& core, const Burst& burst, int64_t delay) {
  const ChannelRequester requester = burst.sender == Sender::kScalar ? kScalarUnit
                                     : burst.writes_gmem             ? kStores
                                                                     : kLoads;
  return {{Kind::kChannel, ChannelOf(p.gmem, burst.address)},
          kChannelRequesters * core.index + requester,
          GmemBytes(p.gmem, burst.address, burst.payload, burst.writes_gmem),
          0,
          delay};
}

Stop LinkDown(const Parameters& p, const Core& core, const Burst& burst) {
  // A burst from the cache has the next requester.
  const int64_t channel = ChannelOf(p.gmem, burst.address);
  return {{Kind::kLinkDown, core.cluster}, 2 * channel, burst.payload, 0, p.gmem.latency};
}

Stop LinkUp(const Core& core, const Burst& burst, int64_t delay) {
  return {{Kind::kLinkUp, core.cluster},
          2 * core.core + (burst.sender == Sender::kScalar ? 1 : 0),
          burst.payload,
          0,
          delay};
}

Stop Smem(const Core& core, SmemRequester requester, int64_t bytes, int64_t delay) {
  return {{Kind::kSmem, core.cluster}, core.core * kSmemRequesters + requester, bytes, 0, delay};
}

Stop Port(Kind kind, const Core& core, const Burst& burst, int64_t delay) {
  return {{kind, core.index}, 0, burst.payload, burst.lines, delay};
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
std::vector<Transfer::Segment> SegmentsOf(isa::ByteRanges ranges) {
  std::erase_if(ranges.dims, [](const auto& loop) { return loop.first == 1; });
  while (!ranges.dims.empty() && ranges.dims.back().second == ranges.run) {
    ranges.run *= ranges.dims.back().first;
    ranges.dims.pop_back();
  }
  std::vector<Transfer::Segment> segments;
  ranges.ForEachRun([&](int64_t begin, int64_t size) { segments.push_back({begin, size, 0}); });
  return segments;
}

bool IsCores(isa::Space space) { return space == isa::Space::kNmem || space == isa::Space::kWmem; }

Queue& QueueOf(Core& core, Sender sender) {
  return core.queue(sender == Sender::kIoDma ? isa::Queue::kIo : isa::Queue::kMove);
}

// The lines that the transfer's next `bytes` bytes touch in the core's memory, piece by piece. Where some bytes there
// are read more than once, runs hold them once, and begin again after the last one.
int64_t TakeLines(int64_t line, Transfer& transfer, int64_t bytes) {
  int64_t lines = 0;
  while (bytes > 0 && !transfer.core_runs.empty()) {
    const Transfer::Segment& run = transfer.core_runs[transfer.core_run];
    const int64_t piece = std::min(bytes, run.size - transfer.core_sent);
    const int64_t begin = run.begin + transfer.core_sent;
    for (int64_t at = begin / line; at <= (begin + piece - 1) / line; ++at) ++lines;
    bytes -= piece;
    transfer.core_sent += piece;
    if (transfer.core_sent < run.size) continue;
    transfer.core_sent = 0;
    transfer.core_run = (transfer.core_run + 1) % transfer.core_runs.size();
  }
  return lines;
}

// From the lowest byte of an operand to behind the highest; nothing if it has none.
struct Hull {
  explicit Hull(const isa::ByteRanges& ranges) {
    ranges.ForEachRun([&](int64_t first, int64_t size) {
      begin = end == begin ? first : std::min(begin, first);
      end = std::max(end, first + size);
    });
  }
  int64_t begin = 0, end = 0;
};

bool Collide(const isa::ByteRanges& a, const isa::ByteRanges& b) {
  if (a.space != b.space || (!a.is_write && !b.is_write)) return false;
  const Hull x(a), y(b);
  return std::max(x.begin, y.begin) < std::min(x.end, y.end);
}

bool IsEmpty(const Issued& issued) {
  const Sides sides = SidesOf(issued);
  return sides.from == nullptr || sides.to == nullptr || sides.to->byte_count() == 0;
}

bool SameMemory(isa::Space a, isa::Space b) { return a == b || (IsCores(a) && IsCores(b)); }

}  // namespace

Sides SidesOf(const Issued& issued) {
  Sides sides;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    (ranges.is_write ? sides.to : sides.from) = &ranges;
  }
  return sides;
}

Transfer MakeTransfer(const Parameters& p, const Issued& issued, Sender sender, int64_t cycle) {
  Transfer transfer;
  transfer.send_from = cycle + issued.cost;
  const Sides sides = SidesOf(issued);
  if (sides.from == nullptr || sides.to == nullptr) return transfer;
  // The side whose runs are the segments: GMEM; else SMEM, and of two in SMEM the one that is read.
  const isa::Space followed = sender == Sender::kIoDma ? isa::Space::kGmem : isa::Space::kSmem;
  transfer.segments = SegmentsOf(sides.from->space == followed ? *sides.from : *sides.to);
  transfer.segments_allowed = sender == Sender::kMoveDma             ? p.move_dma.outstanding
                              : sides.to->space == isa::Space::kGmem ? p.io_dma.strided_writes
                                                                     : p.io_dma.strided_reads;
  for (const isa::ByteRanges* side : {sides.from, sides.to}) {
    if (IsCores(side->space) && p.nmem_line > 0) transfer.core_runs = SegmentsOf(*side);
  }
  return transfer;
}

bool Hinders(const Issued& a, const Issued& b) {
  if (IsEmpty(a) || IsEmpty(b)) return false;
  for (const isa::ByteRanges& x : a.ranges) {
    for (const isa::ByteRanges& y : b.ranges) {
      if (Collide(x, y)) return true;
    }
  }
  const Sides one = SidesOf(a), other = SidesOf(b);
  const bool is_move = a.instruction->queue == isa::Queue::kMove;
  const bool same_direction =
      is_move || (one.to->space == isa::Space::kGmem) == (other.to->space == isa::Space::kGmem);
  return same_direction && !(SameMemory(one.from->space, other.from->space) &&
                             SameMemory(one.to->space, other.to->space));
}

std::optional<Burst> Send(const Parameters& p, Core& core, Sender sender, int64_t cycle) {
  Queue& queue = QueueOf(core, sender);
  const bool is_io = sender == Sender::kIoDma;
  int64_t in_flight = 0;
  Running* next = nullptr;
  for (Running& running : queue.running) {
    in_flight += running.transfer.in_flight;
    if (next == nullptr && !running.transfer.all_sent()) next = &running;
  }
  if (next == nullptr || cycle < next->transfer.send_from) return std::nullopt;
  if (in_flight == (is_io ? p.io_dma.outstanding : p.move_dma.outstanding)) return std::nullopt;
  Transfer& transfer = next->transfer;
  if (transfer.sent == 0) {
    if (transfer.segments_in_flight == transfer.segments_allowed) return std::nullopt;
    ++transfer.segments_in_flight;
  }
  Transfer::Segment& segment = transfer.segments[transfer.segment];
  const Sides sides = SidesOf(next->issued);
  Burst burst;
  burst.core = core.index;
  burst.sender = sender;
  burst.transfer = next->number;
  burst.segment = static_cast<int64_t>(transfer.segment);
  burst.address = segment.begin + transfer.sent;
  const int64_t largest = is_io ? p.io_dma.burst : p.smem_burst;
  burst.payload = std::min(largest - burst.address % largest, segment.size - transfer.sent);
  for (const isa::ByteRanges* side : {sides.from, sides.to}) {
    burst.touches_nmem |= side->space == isa::Space::kNmem;
    burst.touches_wmem |= side->space == isa::Space::kWmem;
  }
  burst.lines = TakeLines(p.nmem_line, transfer, burst.payload);
  if (is_io) {
    burst.writes_gmem = sides.to->space == isa::Space::kGmem;
    burst.opens_segment = burst.writes_gmem && transfer.sent == 0;
    const isa::ByteRanges& other = burst.writes_gmem ? *sides.from : *sides.to;
    AddIoWay(p, core, other.space == isa::Space::kSmem, burst);
  } else {
    AddMoveWay(p, core, sides, burst);
  }
  ++transfer.in_flight;
  ++segment.in_flight;
  transfer.sent += burst.payload;
  if (transfer.sent == segment.size) {
    transfer.sent = 0;
    ++transfer.segment;
  }
  return burst;
}

bool Complete(Core& core, const Burst& burst) {
  Queue& queue = QueueOf(core, burst.sender);
  const int64_t place = burst.transfer - queue.running.front().number;
  Transfer& transfer = queue.running[static_cast<size_t>(place)].transfer;
  Transfer::Segment& segment = transfer.segments[static_cast<size_t>(burst.segment)];
  --transfer.in_flight;
  --segment.in_flight;
  const bool is_sent = burst.segment < static_cast<int64_t>(transfer.segment);
  if (!is_sent || segment.in_flight > 0) return false;
  --transfer.segments_in_flight;
  return true;
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
