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
             Smem& smem)
    : Dma(name, queue, machine.Get("io_dma.outstanding")),
      core_(core),
      channel_requester_(Gmem::DmaRequester(card_core)),
      burst_(machine.Get("io_dma.burst")),
      outstanding_(machine.Get("io_dma.outstanding")),
      strided_reads_(machine.Get("io_dma.strided_reads")),
      strided_writes_(machine.Get("io_dma.strided_writes")),
      gmem_(gmem),
      link_(link),
      smem_(smem),
      in_(PortRate(machine, is_memory_core)),
      out_(PortRate(machine, is_memory_core)) {}

Dma::Limits IoDma::Prepare(const Issued& issued, std::vector<const isa::ByteRanges*>& segments) {
  is_store_ = false;
  touches_smem_ = false;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    if (ranges.space == isa::Space::kGmem) {
      is_store_ |= ranges.is_write;
      segments.push_back(&ranges);
    }
    touches_smem_ |= ranges.space == isa::Space::kSmem;
  }
  return {burst_, outstanding_, is_store_ ? strided_writes_ : strided_reads_};
}

void IoDma::Inject(Burst& burst, int64_t time) {
  burst.is_write = is_store_;
  burst.is_cached = false;
  burst.moved = gmem_.MovedBytes(burst.address, burst.payload, is_store_);
  gmem_.Count(burst);
  if (is_store_) {
    if (touches_smem_) {
      smem_.Push(core_, Smem::Use::kIo, burst, smem_.MovedBytes(0, burst.payload), time + 1);
    } else {
      PassPortUp(burst, time);
    }
  } else {
    gmem_.channel(gmem_.ChannelOf(burst.address))
        .Push(channel_requester_, burst, burst.moved, time + 1);
  }
}

void IoDma::Advance(Burst& burst, int64_t time) {
  ++burst.stage;
  is_store_ ? AdvanceStore(burst, time) : AdvanceLoad(burst, time);
}

void IoDma::AdvanceLoad(Burst& burst, int64_t time) {
  switch (burst.stage) {
    case 1:  // has left the channel or the cache
      link_.down.Push(ClusterLink::DownRequester(gmem_.ChannelOf(burst.address), burst.is_cached),
                      burst, burst.payload, time + gmem_.LatencyOf(burst));
      return;
    case 2: {  // has left the link
      const int64_t passed = in_.Pass(burst, burst.payload, time);
      if (touches_smem_) {
        smem_.Push(core_, Smem::Use::kIo, burst, smem_.MovedBytes(0, burst.payload), passed);
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
  link_.up.Push(ClusterLink::DmaRequester(core_), burst, burst.payload,
                out_.Pass(burst, burst.payload, time));
}

void IoDma::AdvanceStore(Burst& burst, int64_t time) {
  const int stage = burst.stage - (touches_smem_ ? 1 : 0);
  switch (stage) {
    case 0:  // has left SMEM
      PassPortUp(burst, time);
      return;
    case 1:  // has left the link
      gmem_.channel(gmem_.ChannelOf(burst.address))
          .Push(channel_requester_, burst, burst.moved, time + gmem_.LatencyOf(burst));
      return;
    default:  // is in GMEM
      Complete(burst, time);
  }
}

}  // namespace polynao::simulator
