#include "simulator/tensor_unit.h"

#include <algorithm>

namespace polynao::simulator {

TensorUnit::TensorUnit(sc_core::sc_module_name name, InstructionQueue& queue)
    : sc_core::sc_module(name), queue_(queue) {
  SC_HAS_PROCESS(TensorUnit);
  SC_METHOD(Finish);
  sensitive << done_.event();
  dont_initialize();
}

void TensorUnit::Start(const Issued& issued) {
  done_.NotifyAt(Now() + std::max<int64_t>(1, issued.cost));
}

void TensorUnit::Finish() { queue_.Complete(); }

}  // namespace polynao::simulator
