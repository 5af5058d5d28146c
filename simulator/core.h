// A core: scalar unit, queues, vector and tensor unit, IO-DMA, Move-DMA, NMEM, WMEM. A cluster's
// memory core is one without the compute queue, its units, NMEM and WMEM.
#ifndef SIMULATOR_CORE_H_
#define SIMULATOR_CORE_H_

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "simulator/compute_unit.h"
#include "simulator/context.h"
#include "simulator/io_dma.h"
#include "simulator/memory.h"
#include "simulator/move_dma.h"
#include "simulator/port_sharing.h"
#include "simulator/queue.h"
#include "simulator/scalar_unit.h"

namespace polynao::simulator {

class Core : public sc_core::sc_module, public QueueListener {
 public:
  struct Surroundings {
    Gmem* gmem = nullptr;
    ClusterLink* link = nullptr;
    Smem* smem = nullptr;
    Barrier* cluster_barrier = nullptr;
    Barrier* global_barrier = nullptr;
  };
  Core(sc_core::sc_module_name name, Context& context, AccessChecker::CoreId id,
       const Surroundings& surroundings, CoreReport& report, int32_t report_index);

  ExecutionUnit& UnitOf(const isa::Instruction& instruction) override;
  void OnStart(const Issued& issued) override { Profile(issued, 1); }
  void OnComplete(const Issued& issued, int64_t start, int64_t first) override;
  void OnProgress(isa::Queue queue) override { scalar_->OnProgress(queue); }

  const ScalarUnit& scalar() const { return *scalar_; }
  const IoDma& io_dma() const { return io_dma_; }
  const MoveDma& move_dma() const { return move_dma_; }
  bool idle() const;

 private:
  // Tells the profile, if there is one, that an instruction starts (delta 1) or has completed (-1).
  void Profile(const Issued& issued, int delta);
  // Adds a completed copy to the path it took.
  void CountTransfer(const Issued& issued, Slice& slice);
  // The vector unit and the tensor unit, and what they share with DMAs.
  void MakeComputeUnits();

  Context& context_;
  const AccessChecker::CoreId id_;
  CoreReport& report_;
  const int32_t report_index_;
  const bool is_memory_core_;
  std::unique_ptr<Nmem> nmem_;
  std::unique_ptr<Wmem> wmem_;
  std::unique_ptr<InstructionQueue> compute_queue_;
  InstructionQueue io_queue_;
  InstructionQueue move_queue_;
  PortSharing nmem_sharing_;
  PortSharing wmem_sharing_;
  std::unique_ptr<ComputeUnit> vector_;
  std::unique_ptr<ComputeUnit> tensor_;
  IoDma io_dma_;
  MoveDma move_dma_;
  std::unique_ptr<ScalarUnit> scalar_;
  std::vector<int64_t> written_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CORE_H_
