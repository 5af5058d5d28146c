#include "simulator/move_dma.h"

namespace polynao::simulator {

MoveDma::MoveDma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
                 int core, Smem& smem)
    : Dma(name, machine, queue, machine.Get("move_dma.outstanding")),
      core_(core),
      latency_(machine.Get("smem.latency")),
      limits_{machine.Get("smem.burst"), machine.Get("move_dma.outstanding")},
      smem_(smem),
      port_(kKilocycle * machine.Get("move_dma.port_bytes")) {}

std::vector<const isa::ByteRanges*> MoveDma::SegmentsOf(const Issued& issued,
                                                        const DmaTransfer& transfer) const {
  std::vector<const isa::ByteRanges*> segments;
  const bool follow_writes = transfer.from != isa::Space::kSmem;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    if (ranges.is_write == follow_writes) segments.push_back(&ranges);
  }
  return segments;
}

DmaTransfer::Limits MoveDma::LimitsOf(const DmaTransfer&) const { return limits_; }

void MoveDma::Inject(Burst& burst, int64_t time) {
  burst.moved = smem_.MovedBytes(burst.address, burst.payload);
  if (burst.transfer->from == isa::Space::kSmem) {
    smem_.Push(core_, Smem::Use::kMoveRead, burst, burst.moved, time + 1);
  } else {
    smem_.Push(core_, Smem::Use::kMoveWrite, burst, burst.moved,
               Pass(port_, burst, time) + latency_);
  }
}

void MoveDma::Advance(Burst& burst, int64_t time) {
  ++burst.stage;
  if (burst.stage > 1 || burst.transfer->from != isa::Space::kSmem) {
    Complete(burst, time);
  } else if (burst.transfer->to == isa::Space::kSmem) {
    smem_.Push(core_, Smem::Use::kMoveWrite, burst, burst.moved, time + latency_);
  } else {
    Complete(burst, Pass(port_, burst, time + latency_));
  }
}

}  // namespace polynao::simulator
