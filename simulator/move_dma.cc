#include "simulator/move_dma.h"

namespace polynao::simulator {

MoveDma::MoveDma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
                 int core, Smem& smem)
    : Dma(name, queue, machine.Get("move_dma.outstanding")),
      core_(core),
      latency_(machine.Get("smem.latency")),
      burst_(machine.Get("smem.burst")),
      outstanding_(machine.Get("move_dma.outstanding")),
      smem_(smem),
      port_(kKilocycle * machine.Get("move_dma.port_bytes")) {}

Dma::Limits MoveDma::Prepare(const Issued& issued, std::vector<const isa::ByteRanges*>& segments) {
  reads_smem_ = writes_smem_ = false;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    if (ranges.space != isa::Space::kSmem) continue;
    (ranges.is_write ? writes_smem_ : reads_smem_) = true;
  }
  const bool follow_writes = writes_smem_ && !reads_smem_;
  for (const isa::ByteRanges& ranges : issued.ranges) {
    if (ranges.is_write == follow_writes) segments.push_back(&ranges);
  }
  return {burst_, outstanding_, outstanding_};
}

void MoveDma::Inject(Burst& burst, int64_t time) {
  burst.moved = smem_.MovedBytes(burst.address, burst.payload);
  if (reads_smem_) {
    smem_.Push(core_, Smem::Use::kMoveRead, burst, burst.moved, time + 1);
    return;
  }
  const int64_t arrived = port_.Pass(burst, burst.payload, time) + latency_;
  if (writes_smem_) {
    smem_.Push(core_, Smem::Use::kMoveWrite, burst, burst.moved, arrived);
  } else {
    Complete(burst, arrived);
  }
}

void MoveDma::Advance(Burst& burst, int64_t time) {
  ++burst.stage;
  if (burst.stage == 1 && reads_smem_ && writes_smem_) {
    smem_.Push(core_, Smem::Use::kMoveWrite, burst, burst.moved, time + latency_);
  } else if (burst.stage == 1 && reads_smem_) {
    Complete(burst, port_.Pass(burst, burst.payload, time + latency_));
  } else {
    Complete(burst, time);
  }
}

}  // namespace polynao::simulator
