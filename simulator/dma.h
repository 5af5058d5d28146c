// What the DMA engines of a core have in common: cutting a transfer into bursts, and how many of
// them are in flight.
#ifndef SIMULATOR_DMA_H_
#define SIMULATOR_DMA_H_

#include <cstdint>
#include <queue>
#include <systemc>
#include <utility>
#include <vector>

#include "simulator/burst.h"
#include "simulator/clock.h"
#include "simulator/queue.h"
#include "simulator/ranges.h"

namespace polynao::simulator {

// Executes transfers one after another. A transfer waits its start-up cost, then sends the bursts
// of its segments in order, one a cycle, as long as fewer than the limits are in flight; it
// completes when its last burst has. The segments are the runs of the accesses to one memory, which
// the derived class chooses.
class Dma : public sc_core::sc_module, public ExecutionUnit, public BurstOwner {
 public:
  void Start(const Issued& issued) final;

 protected:
  struct Limits {
    int64_t burst = 0;        // largest burst; none crosses a multiple of it
    int64_t outstanding = 0;  // bursts in flight
    int64_t segments = 0;     // segments in flight, if there are several
  };
  Dma(sc_core::sc_module_name name, InstructionQueue& queue, int64_t max_outstanding);

  // Prepares for `issued` and returns the accesses whose runs are the segments, and the limits.
  virtual Limits Prepare(const Issued& issued, std::vector<const isa::ByteRanges*>& segments) = 0;
  // Sends a new burst in cycle `time` >= Now(): it arrives anywhere at time + 1 at the earliest.
  virtual void Inject(Burst& burst, int64_t time) = 0;
  // The burst will have completed in cycle `time`.
  void Complete(Burst& burst, int64_t time);

 private:
  struct Segment {
    int64_t in_flight = 0;
    bool open = false;  // not all of its bursts are sent
    bool free() const { return in_flight == 0 && !open; }
  };
  struct Completion {
    int64_t time;
    Burst* burst;
    // Latest first for std::priority_queue. Ties leave in any order: nothing depends on it.
    bool operator<(const Completion& other) const { return time > other.time; }
  };

  void Run();
  void Send();

  InstructionQueue& queue_;
  std::vector<Burst> pool_;
  std::vector<Burst*> unused_;
  std::priority_queue<Completion> completions_;
  Timer wake_;

  // The transfer in progress.
  bool active_ = false;
  int64_t next_send_ = 0;  // cycle in which the next burst may leave
  Limits limits_;
  std::vector<RunCursor> runs_;
  size_t run_ = 0;            // in runs_
  int64_t sent_ = 0;          // bytes of the current run
  int current_segment_ = -1;  // slot; -1 if the next run has not got one
  std::vector<Segment> segments_;
  int64_t in_flight_ = 0;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DMA_H_
