// The vector unit of a core: elementwise operations, reductions, fills and copies inside NMEM.
#ifndef SIMULATOR_VECTOR_UNIT_H_
#define SIMULATOR_VECTOR_UNIT_H_

#include <systemc>

#include "simulator/clock.h"
#include "simulator/queue.h"

namespace polynao::simulator {

// Takes the cycles of the instruction's @cost, at least one.
class VectorUnit : public sc_core::sc_module, public ExecutionUnit {
 public:
  VectorUnit(sc_core::sc_module_name name, InstructionQueue& queue);
  void Start(const Issued& issued) override;

 private:
  void Finish();

  InstructionQueue& queue_;
  Timer done_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_VECTOR_UNIT_H_
