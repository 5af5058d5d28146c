#include "simulator/io_dma.h"

#include "base/check.h"

namespace polynao::simulator {
namespace {

Rate PortRate(const isa::Machine& machine, bool is_memory_core) {
  return kKilocycle *
         machine.Get(is_memory_core ? "io_dma.memory_core_port_bytes" : "io_dma.port_bytes");
}

}  // namespace

IoDma::IoDma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
             int core, int card_core, bool is_memory_core, Gmem& gmem, ClusterLink& link,
             Smem& smem, RunProfile* profile)
    : Dma(name, machine, queue, machine.Get("io_dma.outstanding")),
      core_(core),
      card_core_(card_core),
      burst_(machine.Get("io_dma.burst")),
      strided_reads_(machine.Get("io_dma.strided_reads")),
      strided_writes_(machine.Get("io_dma.strided_writes")),
      gmem_(gmem),
      link_(link),
      smem_(smem),
      profile_(profile),
      in_(PortRate(machine, is_memory_core)),
      out_(PortRate(machine, is_memory_core)) {}

std::vector<const isa::ByteRanges*> IoDma::SegmentsOf(const Issued& issued,
                                                      const DmaTransfer&) const {
  std::vector<const isa::ByteRanges*> segments;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    if (ranges.space == isa::Space::kGmem) segments.push_back(&ranges);
  }
  return segments;
}

DmaTransfer::Limits IoDma::LimitsOf(const DmaTransfer& transfer) const {
  return {burst_, transfer.is_store() ? strided_writes_ : strided_reads_};
}

void IoDma::Profile(const Burst& burst, int delta, int64_t time) {
  if (profile_ == nullptr) return;
  profile_->ChangeBursts(card_core_, gmem_.ChannelOf(burst.address), delta, time);
}

void IoDma::PushToChannel(Burst& burst, int64_t time) {
  Profile(burst, 1, time);
  gmem_.channel(gmem_.ChannelOf(burst.address))
      .Push(Gmem::DmaRequester(card_core_, burst.is_write), burst, burst.moved, time);
}

void IoDma::Inject(Burst& burst, int64_t time) {
  burst.is_write = burst.transfer->is_store();
  burst.is_cached = false;
  burst.moved = gmem_.MovedBytes(burst.address, burst.payload, burst.is_write);
  gmem_.Count(burst);
  if (!burst.is_write) {
    PushToChannel(burst, time + 1);
  } else if (burst.transfer->touches(isa::Space::kSmem)) {
    smem_.Push(core_, Smem::Use::kIoRead, burst, smem_.MovedBytes(0, burst.payload), time + 1);
  } else {
    PassPortUp(burst, time);
  }
}

void IoDma::Advance(Burst& burst, int64_t time) {
  ++burst.stage;
  burst.is_write ? AdvanceStore(burst, time) : AdvanceLoad(burst, time);
}

void IoDma::AdvanceLoad(Burst& burst, int64_t time) {
  switch (burst.stage) {
    case 1:  // has left the channel or the cache
      Profile(burst, -1, time);
      link_.down.Push(ClusterLink::DownRequester(gmem_.ChannelOf(burst.address), burst.is_cached),
                      burst, burst.payload, time + gmem_.LatencyOf(burst));
      return;
    case 2: {  // has left the link
      const int64_t passed = Pass(in_, burst, time);
      if (burst.transfer->touches(isa::Space::kSmem)) {
        smem_.Push(core_, Smem::Use::kIoWrite, burst, smem_.MovedBytes(0, burst.payload), passed);
      } else {
        Complete(burst, passed);
      }
      return;
    }
    default:  // is in SMEM
      Complete(burst, time);
  }
}

void IoDma::PassPortUp(Burst& burst, int64_t time) {
  link_.up.Push(ClusterLink::DmaRequester(core_), burst, burst.payload, Pass(out_, burst, time));
}

void IoDma::AdvanceStore(Burst& burst, int64_t time) {
  const int stage = burst.stage - (burst.transfer->touches(isa::Space::kSmem) ? 1 : 0);
  switch (stage) {
    case 0:  // has left SMEM
      PassPortUp(burst, time);
      return;
    case 1:  // has left the link
      PushToChannel(burst, time + gmem_.LatencyOf(burst));
      return;
    default:  // is in GMEM
      Profile(burst, -1, time);
      Complete(burst, time);
  }
}

void IoDma::OnSegmentDone(const DmaTransfer& transfer, int64_t time) {
  if (transfer.is_store()) link_.up.ReleaseAt(time);
}

}  // namespace polynao::simulator
