// The in-order queue in front of one or more execution units of a core.
#ifndef SIMULATOR_QUEUE_H_
#define SIMULATOR_QUEUE_H_

#include <cstdint>
#include <deque>
#include <systemc>

#include "isa/instruction_set.h"
#include "simulator/clock.h"
#include "simulator/context.h"

namespace polynao::simulator {

// Executes one instruction at a time.
class ExecutionUnit {
 public:
  virtual ~ExecutionUnit() = default;
  // Starts `issued` in the current cycle. The unit calls its queue's Complete in a later cycle.
  virtual void Start(const Issued& issued) = 0;
};

// What a queue tells its core.
class QueueListener {
 public:
  virtual ~QueueListener() = default;
  virtual ExecutionUnit& UnitOf(const isa::Instruction& instruction) = 0;
  // The instruction has just completed: its values are to take effect.
  virtual void OnComplete(const Issued& issued, int64_t start) = 0;
  // Called after an instruction left the queue for its unit, and after one completed.
  virtual void OnProgress(isa::Queue queue) = 0;
};

// Instructions start in the order in which they were pushed, each when the one before has
// completed, at the earliest in its ready cycle. A place becomes free in the cycle after its
// instruction has started: then it makes no difference whether the core or the unit acts first in a
// cycle.
class InstructionQueue : public sc_core::sc_module {
 public:
  InstructionQueue(sc_core::sc_module_name name, isa::Queue queue, int64_t depth,
                   QueueListener& listener);

  bool HasRoom() const {
    return static_cast<int64_t>(waiting_.size()) + (last_start_ == Now() ? 1 : 0) < depth_;
  }
  // Whether an instruction started in the current cycle, so that there will be room in the next.
  bool started_now() const { return last_start_ == Now(); }
  // `issued.ready` lies in the future.
  void Push(Issued issued);
  bool idle() const { return waiting_.empty() && !active_; }
  // The unit has finished the active instruction in the current cycle.
  void Complete();

 private:
  void Dispatch();

  const isa::Queue queue_;
  const int64_t depth_;
  QueueListener& listener_;
  std::deque<Issued> waiting_;
  bool active_ = false;
  Issued current_;
  int64_t last_start_ = -1;
  Timer wake_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_QUEUE_H_
