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

// Executes instructions: one at a time, or as many as its queue lets it.
class ExecutionUnit {
 public:
  virtual ~ExecutionUnit() = default;
  // Starts `issued` in the current cycle. The unit calls its queue's Complete in a later cycle, in the order of the
  // starts.
  virtual void Start(const Issued& issued) = 0;
};

// A queue tells its core about these events.
class QueueListener {
 public:
  virtual ~QueueListener() = default;
  virtual ExecutionUnit& UnitOf(const isa::Instruction& instruction) = 0;
  // The unit starts the instruction in the current cycle.
  virtual void OnStart(const Issued& issued) = 0;
  // The instruction has just completed: its values are to take effect. It had been the first one of its queue since
  // `first`.
  virtual void OnComplete(const Issued& issued, int64_t start, int64_t first) = 0;
  // Called after an instruction left the queue for its unit, and after one completed.
  virtual void OnProgress(isa::Queue queue) = 0;
};

// Instructions start in the order in which they were pushed, one a cycle, at the earliest in their ready cycle, each
// when fewer than `transfers` are in the units and it may go beside those (MayGoBeside). A place becomes free in the
// cycle after its instruction has started: then it makes no difference whether the core or the unit acts first in a
// cycle.
class InstructionQueue : public sc_core::sc_module {
 public:
  InstructionQueue(sc_core::sc_module_name name, isa::Queue queue, int64_t depth, int64_t transfers,
                   QueueListener& listener);

  bool HasRoom() const {
    return static_cast<int64_t>(waiting_.size()) + (last_start_ == Now() ? 1 : 0) < depth_;
  }
  // Returns true if an instruction started in the current cycle, so that there will be room in the
  // next.
  bool started_now() const { return last_start_ == Now(); }
  // `issued.ready` lies in the future.
  void Push(Issued issued);
  bool idle() const { return waiting_.empty() && active_.empty(); }
  // The unit has finished the first active instruction in the current cycle.
  void Complete();

 private:
  struct Active {
    Issued issued;
    int64_t start;
  };
  void Dispatch();

  const isa::Queue queue_;
  const int64_t depth_;
  const int64_t transfers_;
  QueueListener& listener_;
  std::deque<Issued> waiting_;
  std::deque<Active> active_;
  int64_t last_start_ = -1;
  int64_t last_completion_ = 0;
  Timer wake_;
};

// Returns true if a transfer may start while another one of its queue is under way: neither writes where the other
// reads or writes, judged by hulls, and they go the same way or, of an IO-DMA, in opposite directions. docs/timing.md
// has the rule.
bool MayGoBeside(const Issued& transfer, const Issued& other);

}  // namespace polynao::simulator

#endif  // SIMULATOR_QUEUE_H_
