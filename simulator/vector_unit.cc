#include "simulator/vector_unit.h"

#include <algorithm>

namespace polynao::simulator {

VectorUnit::VectorUnit(sc_core::sc_module_name name, InstructionQueue& queue)
    : sc_core::sc_module(name), queue_(queue) {
  SC_HAS_PROCESS(VectorUnit);
  SC_METHOD(Finish);
  sensitive << done_.event();
  dont_initialize();
}

void VectorUnit::Start(const Issued& issued) {
  done_.NotifyAt(Now() + std::max<int64_t>(1, issued.cost));
}

void VectorUnit::Finish() { queue_.Complete(); }

}  // namespace polynao::simulator
