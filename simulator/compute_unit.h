// The vector unit or the tensor unit of a core.
#ifndef SIMULATOR_COMPUTE_UNIT_H_
#define SIMULATOR_COMPUTE_UNIT_H_

#include <systemc>
#include <vector>

#include "simulator/clock.h"
#include "simulator/port_sharing.h"
#include "simulator/queue.h"

namespace polynao::simulator {

// Takes the cycles of the instruction's @cost, at least one, and one more for each cycle in which a DMA port is at
// a memory that the unit shares with it.
class ComputeUnit : public sc_core::sc_module, public ExecutionUnit {
 public:
  ComputeUnit(sc_core::sc_module_name name, InstructionQueue& queue,
              std::vector<PortSharing*> shared);
  void Start(const Issued& issued) override;

 private:
  void Finish();

  InstructionQueue& queue_;
  const std::vector<PortSharing*> shared_;
  Timer done_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_COMPUTE_UNIT_H_
