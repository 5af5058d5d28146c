// When a DRAM channel moves data, and when it only opens and closes rows, from its commands.
#ifndef SIMULATOR_DRAM_ROW_CHANGES_H_
#define SIMULATOR_DRAM_ROW_CHANGES_H_

#include <algorithm>
#include <cstdint>
#include <deque>

#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

// The state says what a channel does in a clock.
enum class DramState : uint8_t {
  kOther,
  kRows,  // opens or closes a row, and no data is on the bus: trcd from an ACT on, trp from a PRE on
  kData,  // data of a RD or WR is on the bus
};

// A refresh (PREA, REF) is no change of rows: it says nothing about the order of accesses.
//
//   ACT in clock 0, RD in trcd:  kRows [0, trcd), kOther [trcd, trcd + cl), kData [trcd + cl, trcd + cl + B)
class RowChanges {
 public:
  explicit RowChanges(const DramTiming& timing) : timing_(timing) {}

  // Commands come in the order of their clocks, not before the clock of the last Advance.
  void Add(const DramCommand& command);

  // All commands before `clock` have been added. Calls set(clock, state) for each change of the state before `clock`;
  // it is kOther at first.
  template <typename Set>
  void Advance(int64_t clock, const Set& set) {
    while (now_ < clock) {
      int64_t next = clock;
      const bool is_data = Covers(data_, next);
      const bool is_rows = Covers(rows_, next);
      const DramState state = is_data   ? DramState::kData
                              : is_rows ? DramState::kRows
                                        : DramState::kOther;
      if (state != state_) set(now_, state);
      state_ = state;
      now_ = next;
    }
  }

 private:
  struct Span {
    int64_t begin, end;
  };
  // Spans come in the order of their begins; those that touch become one.
  static void AddSpan(std::deque<Span>& spans, int64_t begin, int64_t end);
  // Returns true if a span covers now_; `next` becomes at most the clock in which that changes.
  bool Covers(std::deque<Span>& spans, int64_t& next) const {
    while (!spans.empty() && spans.front().end <= now_) spans.pop_front();
    if (spans.empty()) return false;
    const bool is_covered = spans.front().begin <= now_;
    next = std::min(next, is_covered ? spans.front().end : spans.front().begin);
    return is_covered;
  }

  const DramTiming timing_;
  std::deque<Span> data_, rows_;
  int64_t now_ = 0;
  DramState state_ = DramState::kOther;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_ROW_CHANGES_H_
