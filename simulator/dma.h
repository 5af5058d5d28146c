// The DMA engines of a core share this: cutting transfers into bursts, and how much of them
// is in flight.
#ifndef SIMULATOR_DMA_H_
#define SIMULATOR_DMA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <systemc>
#include <vector>

#include "isa/machine.h"
#include "isa/ranges.h"
#include "simulator/burst.h"
#include "simulator/clock.h"
#include "simulator/port_sharing.h"
#include "simulator/queue.h"
#include "simulator/server.h"

namespace polynao::simulator {

// One transfer in an engine.
struct DmaTransfer {
  struct Limits {
    int64_t burst = 0;     // largest burst; none crosses a multiple of it
    int64_t segments = 0;  // segments in flight, if there are several
  };
  struct Segment {
    int64_t in_flight = 0;
    bool open = false;      // not all of its bursts are sent
    int64_t unsettled = 0;  // bursts of which nobody knows yet when they complete
    int64_t done = 0;       // the cycle in which the last of the others completes
    bool free() const { return in_flight == 0 && !open; }
  };

  // Between which memories bytes move. A transfer without bytes stays at any value.
  isa::Space from = isa::Space::kGmem;
  isa::Space to = isa::Space::kGmem;
  bool is_store() const { return to == isa::Space::kGmem; }
  bool touches(isa::Space space) const { return from == space || to == space; }

  int64_t send_from = 0;  // the cycle in which its start is over
  Limits limits;
  std::vector<isa::RunCursor> runs;  // of the segments
  size_t run = 0;                    // in runs
  int64_t sent = 0;                  // bytes of the current run
  int current_segment = -1;          // slot; -1 if the next run has not got one
  std::vector<Segment> segments;
  int64_t in_flight = 0;
  std::optional<isa::RunCursor> core_side;  // the runs in NMEM or WMEM
  int64_t core_side_sent = 0;               // bytes of the current one

  bool all_sent() const { return run == runs.size(); }
};

// Executes the transfers of a queue, which decides how many are here at a time. A transfer waits its start-up cost,
// then sends the bursts of its segments in order, when those before it have sent theirs; the engine sends one burst a
// cycle, as long as fewer than the limits are in flight. Transfers complete in order, each when its last burst has. The
// segments are the runs of the accesses to one memory, which the derived class chooses.
class Dma : public sc_core::sc_module, public ExecutionUnit, public BurstOwner {
 public:
  void Start(const Issued& issued) final;
  // From now on, notes in `sharing` when bursts go through the port to or from `memory` of the core.
  void Share(isa::Space memory, PortSharing* sharing) {
    sharing_[static_cast<size_t>(memory)] = sharing;
  }

 protected:
  Dma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
      int64_t outstanding);

  // The accesses whose runs are the segments of a transfer, from those of its instruction.
  virtual std::vector<const isa::ByteRanges*> SegmentsOf(const Issued& issued,
                                                         const DmaTransfer& transfer) const = 0;
  virtual DmaTransfer::Limits LimitsOf(const DmaTransfer& transfer) const = 0;
  // Sends a new burst in cycle `time` >= Now(): it arrives anywhere at time + 1 at the earliest.
  virtual void Inject(Burst& burst, int64_t time) = 0;
  // All bursts of a segment will have completed in cycle `time`.
  virtual void OnSegmentDone(const DmaTransfer& transfer, int64_t time);
  // The burst will have completed in cycle `time`.
  void Complete(Burst& burst, int64_t time);
  // A burst that arrives at a port of the core in cycle `time` has passed it in the cycle that is returned. It takes a
  // cycle for each line that it touches.
  int64_t Pass(Port& port, Burst& burst, int64_t time);

 private:
  struct Completion {
    int64_t time;
    Burst* burst;
    // Latest first for std::priority_queue. Ties leave in any order: nothing depends on it.
    bool operator<(const Completion& other) const { return time > other.time; }
  };

  void Run();
  void Send();
  void SendNext(DmaTransfer& transfer);
  // How many lines of the core's memory the next `bytes` of the transfer touch.
  int64_t LinesOf(DmaTransfer& transfer, int64_t bytes) const;

  InstructionQueue& queue_;
  const int64_t line_;  // bytes; 0: none
  std::array<PortSharing*, isa::kSpaceCount> sharing_{};
  std::vector<Burst> pool_;
  std::vector<Burst*> unused_;
  std::priority_queue<Completion> completions_;
  Timer wake_;

  std::deque<std::unique_ptr<DmaTransfer>> transfers_;  // in the order of their starts
  std::vector<std::unique_ptr<DmaTransfer>> unused_transfers_;
  int64_t next_send_ = 0;  // cycle in which the next burst may leave
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DMA_H_
