// Simulated time as whole cycles. One cycle is one unit of SystemC's time resolution.
#ifndef SIMULATOR_CLOCK_H_
#define SIMULATOR_CLOCK_H_

#include <cstdint>
#include <systemc>

#include "base/check.h"

namespace polynao::simulator {

// The current cycle.
inline int64_t Now() { return static_cast<int64_t>(sc_core::sc_time_stamp().value()); }

// An event that triggers in a given cycle. Of several notifications the earliest counts, as with
// sc_event.
class Timer {
 public:
  void NotifyAt(int64_t cycle) {
    const int64_t delay = cycle - Now();
    POLYNAO_CHECK(delay >= 0) << "notified at " << cycle << " in cycle " << Now();
    event_.notify(sc_core::sc_time::from_value(static_cast<uint64_t>(delay)));
  }
  // Forgets what was notified and has not triggered yet.
  void Cancel() { event_.cancel(); }
  const sc_core::sc_event& event() const { return event_; }

 private:
  sc_core::sc_event event_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CLOCK_H_
