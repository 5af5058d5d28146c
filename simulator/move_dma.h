// The Move-DMA of a core: between SMEM, NMEM and WMEM.
#ifndef SIMULATOR_MOVE_DMA_H_
#define SIMULATOR_MOVE_DMA_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "isa/machine.h"
#include "simulator/dma.h"
#include "simulator/server.h"
#include "simulator/smem.h"

namespace polynao::simulator {

// The segments of a transfer are its runs in SMEM; where both sides are in SMEM, those that it reads. A burst
// passes SMEM's port, the latency, the core's port, or the other way round; from SMEM to SMEM it passes SMEM's port
// twice.
class MoveDma : public Dma {
 public:
  MoveDma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
          int core, Smem& smem);

  const Port& port() const { return port_; }
  void Advance(Burst& burst, int64_t time) override;

 protected:
  std::vector<const isa::ByteRanges*> SegmentsOf(const Issued& issued,
                                                 const DmaTransfer& transfer) const override;
  DmaTransfer::Limits LimitsOf(const DmaTransfer& transfer) const override;
  void Inject(Burst& burst, int64_t time) override;

 private:
  const int core_;
  const int64_t latency_;
  const DmaTransfer::Limits limits_;
  Smem& smem_;
  Port port_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_MOVE_DMA_H_
