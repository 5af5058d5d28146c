#include "simulator/compute_unit.h"

#include <algorithm>
#include <utility>

namespace polynao::simulator {

ComputeUnit::ComputeUnit(sc_core::sc_module_name name, InstructionQueue& queue,
                         std::vector<PortSharing*> shared)
    : sc_core::sc_module(name),
      queue_(queue),
      shared_(std::move(shared)),
      done_([this] { Finish(); }) {}

void ComputeUnit::Start(const Issued& issued) {
  for (PortSharing* shared : shared_) shared->Begin(Now());
  done_.NotifyAt(Now() + std::max<int64_t>(1, issued.cost));
}

void ComputeUnit::Finish() {
  int64_t stolen = 0;
  for (PortSharing* shared : shared_) stolen += shared->Count(Now());
  if (stolen > 0) {
    done_.NotifyAt(Now() + stolen);
    return;
  }
  for (PortSharing* shared : shared_) shared->End();
  queue_.Complete();
}

}  // namespace polynao::simulator
