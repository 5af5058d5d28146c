// Simulated time as whole cycles, and what happens when. One cycle is one unit of SystemC's time resolution.
#ifndef SIMULATOR_CLOCK_H_
#define SIMULATOR_CLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <systemc>
#include <utility>
#include <vector>

namespace polynao::simulator {

class Timer;

// Runs the timers of all modules, in the order of their cycles, as one process of SystemC. As SystemC does, it runs
// all timers that are due in a cycle; what these set for the same cycle is due after them. It is an event queue for
// times that are whole and near: a list for each of the next cycles (R. Brown, Calendar Queues, CACM 31(10), 1988),
// where SystemC's has a heap of allocated nodes.
//
// It is ahead of SystemC's own time by less than kQuantum cycles (temporal decoupling, IEEE 1666-2011, 9.2).
class Calendar : public sc_core::sc_module {
 public:
  // The one of this process, which is made with the first timer, before the simulation starts.
  static Calendar& Get();
  static int64_t now() { return now_; }

  // No timer of this cycle or of a later one runs.
  void set_limit(int64_t cycle) { limit_ = cycle; }
  // The timers that are due now still run, but no others.
  void Stop() { stopped_ = true; }
  // Some timer is set.
  bool pending() const { return count_ > 0; }

 private:
  friend class Timer;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kQuantum = 4096;
  static constexpr int64_t kSlots = 1024;  // cycles that have a list of their own
  static constexpr size_t kWords = kSlots / 64;
  struct List {
    Timer* first = nullptr;
    Timer* last = nullptr;
  };

  explicit Calendar(sc_core::sc_module_name name);
  void Run();
  void Set(Timer& timer, int64_t cycle);
  void Clear(Timer& timer);
  List& ListOf(int64_t cycle);
  void Link(Timer& timer);
  void Unlink(Timer& timer);
  // The cycle of the first timer.
  int64_t Next() const;
  // The cycles from now on have lists of their own.
  void MoveWindow();
  void WakeAt(int64_t cycle);

  inline static int64_t now_ = 0;
  sc_core::sc_event event_;
  std::array<List, kSlots> lists_;  // of the cycles from now on, by cycle % kSlots
  std::array<uint64_t, kWords> is_used_{};
  List far_;  // from window_end_ on, in no order
  int64_t window_end_ = kSlots;
  int64_t count_ = 0;
  int64_t limit_ = kNever;
  bool stopped_ = false;
  bool running_ = false;
  std::vector<Timer*> due_;
};

// The current cycle.
inline int64_t Now() { return Calendar::now(); }

// Calls a function in a given cycle. Of several notifications the earliest counts, as with sc_event.
class Timer {
 public:
  explicit Timer(std::function<void()> wake) : wake_(std::move(wake)) { Calendar::Get(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // `cycle` is not in the past.
  void NotifyAt(int64_t cycle) {
    if (cycle < time_) Calendar::Get().Set(*this, cycle);
  }
  // Forgets what was notified and is not due yet.
  void Cancel() {
    if (time_ != Calendar::kNever) Calendar::Get().Clear(*this);
  }

 private:
  friend class Calendar;
  const std::function<void()> wake_;
  int64_t time_ = Calendar::kNever;  // kNever: not set
  Timer* before_ = nullptr;          // in its list
  Timer* after_ = nullptr;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CLOCK_H_
