// The IO-DMA of a core: GMEM to and from SMEM, NMEM and WMEM.
#ifndef SIMULATOR_IO_DMA_H_
#define SIMULATOR_IO_DMA_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "isa/machine.h"
#include "simulator/dma.h"
#include "simulator/gmem.h"
#include "simulator/link.h"
#include "simulator/server.h"
#include "simulator/smem.h"

namespace polynao::simulator {

// The segments of a transfer are its runs in GMEM. A burst of a load passes the channel or its
// cache, the latency, the link, the core's port, and SMEM's port if it ends there; a burst of a store passes
// them in reverse.
class IoDma : public Dma {
 public:
  // `core` counts in the cluster, `card_core` in the card. `profile` may be null.
  IoDma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
        int core, int card_core, bool is_memory_core, Gmem& gmem, ClusterLink& link, Smem& smem,
        RunProfile* profile);

  const Port& in() const { return in_; }
  const Port& out() const { return out_; }

  void Advance(Burst& burst, int64_t time) override;

 protected:
  std::vector<const isa::ByteRanges*> SegmentsOf(const Issued& issued,
                                                 const DmaTransfer& transfer) const override;
  DmaTransfer::Limits LimitsOf(const DmaTransfer& transfer) const override;
  void Inject(Burst& burst, int64_t time) override;
  void OnSegmentDone(const DmaTransfer& transfer, int64_t time) override;

 private:
  void AdvanceLoad(Burst& burst, int64_t time);
  void AdvanceStore(Burst& burst, int64_t time);
  void PushToChannel(Burst& burst, int64_t time);
  // Tells the profile that a burst will be in its channel from cycle `time` on (delta 1), or no more (-1).
  void Profile(const Burst& burst, int delta, int64_t time);
  void PassPortUp(Burst& burst, int64_t time);

  const int core_;
  const int card_core_;
  const int64_t burst_;
  const int64_t strided_reads_;
  const int64_t strided_writes_;
  Gmem& gmem_;
  ClusterLink& link_;
  Smem& smem_;
  RunProfile* const profile_;
  Port in_;
  Port out_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_IO_DMA_H_
