// Finds what each cycle of a core went into. docs/timing.md ("Where a core's cycles go") has the
// rules.
#ifndef SIMULATOR_CYCLE_CLASSES_H_
#define SIMULATOR_CYCLE_CLASSES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "simulator/dram/row_changes.h"
#include "simulator/report.h"

namespace polynao::simulator {

// Records what one GMEM channel does, by cycles; kOther at first. It has several readers, each of which only goes
// forward.
class ChannelStates {
 public:
  // From `cycle` on, which is not less than that of the call before. The last of several for a cycle counts.
  void Set(int64_t cycle, DramState state);

  struct Step {
    DramState state;
    int64_t until;  // the next change; the greatest number if there is none
  };
  // `place` is the reader's own, 0 at first.
  Step At(int64_t cycle, int64_t& place) const;
  // No reader will ask for a cycle before this one.
  void Forget(int64_t cycle);

 private:
  struct Change {
    int64_t cycle;
    DramState state;
  };
  std::deque<Change> changes_;
  int64_t forgotten_ = 0;
};

// One core. Told what begins and ends when, it gives each cycle exactly one class, in pieces as the run goes on, so
// that it keeps only what is not counted yet.
class CycleClasses {
 public:
  // These activities may be under way, several of a kind at a time. While no wait is, the core runs scalar code.
  enum Activity {
    kComputing,  // instructions in the vector or tensor unit
    kLoading,    // in the IO-DMA
    kStoring,
    kMoving,   // in the Move-DMA
    kWaiting,  // the core issues nothing
    kAtBarrier,
    kHalted,
    kActivities
  };
  explicit CycleClasses(int channels);

  // From `cycle` on, `delta` more are under way. The cycle has not been counted.
  void Change(Activity activity, int delta, int64_t cycle);
  // The same for bursts of the core's IO-DMA that a GMEM channel has got and not completed.
  void ChangeBursts(int channel, int delta, int64_t cycle);

  // Counts the cycles before `until`: all changes before it are known. `end` is where the run would end if nothing more
  // happened; at most `until`, or not counted yet.
  void Count(int64_t until, int64_t end, const std::vector<ChannelStates>& channels);
  // The classes of the cycles [0, end), whose sum is `end`. The latest `end` given to Count, or not counted yet.
  std::array<int64_t, kCycleClassCount> Finish(int64_t end,
                                               const std::vector<ChannelStates>& channels);

 private:
  struct Event {
    int64_t cycle;
    int32_t what;  // an Activity, or kActivities + channel
    int32_t delta;
    bool operator>(const Event& other) const { return cycle > other.cycle; }
  };
  void Push(int what, int delta, int64_t cycle);
  void CountTo(int64_t until, const std::vector<ChannelStates>& channels);
  // The class of cycle counted_. `next` becomes at most the cycle in which a channel's state changes.
  CycleClass Classify(const std::vector<ChannelStates>& channels, int64_t& next);

  // Ties leave in any order: all changes of a cycle come before it is counted.
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int64_t> active_;  // by Event::what
  std::vector<int64_t> places_;  // in ChannelStates, by channel
  int64_t counted_ = 0;
  std::array<int64_t, kCycleClassCount> counts_{};
  std::array<int64_t, kCycleClassCount> counts_at_end_{};
  int64_t end_ = 0;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CYCLE_CLASSES_H_
