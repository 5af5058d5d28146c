// Barriers: of a cluster (its cores and its memory core) and of the card.
#ifndef SIMULATOR_BARRIER_H_
#define SIMULATOR_BARRIER_H_

#include <cstdint>
#include <functional>
#include <systemc>
#include <vector>

#include "simulator/clock.h"

namespace polynao::simulator {

class BarrierMember {
 public:
  virtual ~BarrierMember() = default;
  // The barrier opens for this member in cycle `time`.
  virtual void OnRelease(int64_t time) = 0;
};

// Opens for all members the barrier's latency after the last one arrived. All members take part,
// each time.
class Barrier : public sc_core::sc_module {
 public:
  // `on_last` is called when the last member arrives, before any is released.
  Barrier(sc_core::sc_module_name name, int64_t members, std::function<void()> on_last)
      : sc_core::sc_module(name), members_(members), on_last_(std::move(on_last)) {}

  void Arrive(BarrierMember& member, int64_t latency) {
    arrived_.push_back(&member);
    if (static_cast<int64_t>(arrived_.size()) < members_) return;
    on_last_();
    std::vector<BarrierMember*> released;
    released.swap(arrived_);
    for (BarrierMember* each : released) each->OnRelease(Now() + latency);
  }

 private:
  const int64_t members_;
  const std::function<void()> on_last_;
  std::vector<BarrierMember*> arrived_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_BARRIER_H_
