#include "simulator/clock.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "third_party/systemc/process.h"

namespace polynao::simulator {
namespace {

int64_t SystemcNow() { return static_cast<int64_t>(sc_core::sc_time_stamp().value()); }

}  // namespace

Calendar& Calendar::Get() {
  // Modules live as long as the process, as far as SystemC is concerned.
  static Calendar* const calendar = new Calendar("calendar");
  return *calendar;
}

Calendar::Calendar(sc_core::sc_module_name name) : sc_core::sc_module(name) {
  SC_METHOD(Run);
  sensitive << event_;
  dont_initialize();
}

void Calendar::WakeAt(int64_t cycle) {
  event_.notify(sc_core::sc_time::from_value(static_cast<uint64_t>(cycle - SystemcNow())));
}

Calendar::List& Calendar::ListOf(int64_t cycle) {
  return cycle < window_end_ ? lists_[static_cast<size_t>(cycle % kSlots)] : far_;
}

void Calendar::Link(Timer& timer) {
  List& list = ListOf(timer.time_);
  timer.before_ = list.last;
  timer.after_ = nullptr;
  (list.last == nullptr ? list.first : list.last->after_) = &timer;
  list.last = &timer;
  if (timer.time_ >= window_end_) return;
  const size_t slot = static_cast<size_t>(timer.time_ % kSlots);
  is_used_[slot / 64] |= uint64_t{1} << slot % 64;
}

void Calendar::Unlink(Timer& timer) {
  List& list = ListOf(timer.time_);
  (timer.before_ == nullptr ? list.first : timer.before_->after_) = timer.after_;
  (timer.after_ == nullptr ? list.last : timer.after_->before_) = timer.before_;
  if (timer.time_ >= window_end_ || list.first != nullptr) return;
  const size_t slot = static_cast<size_t>(timer.time_ % kSlots);
  is_used_[slot / 64] &= ~(uint64_t{1} << slot % 64);
}

void Calendar::Set(Timer& timer, int64_t cycle) {
  POLYNAO_CHECK(cycle >= now_) << "notified at " << cycle << " in cycle " << now_;
  if (timer.time_ == kNever) {
    ++count_;
  } else {
    Unlink(timer);
  }
  timer.time_ = cycle;
  Link(timer);
  if (!running_) WakeAt(std::max(cycle, SystemcNow()));
}

void Calendar::Clear(Timer& timer) {
  Unlink(timer);
  timer.time_ = kNever;
  --count_;
}

int64_t Calendar::Next() const {
  const size_t first = static_cast<size_t>(now_ % kSlots);
  // The word of the first slot comes twice: at first its bits from there on, in the end those before.
  uint64_t word = is_used_[first / 64] & ~uint64_t{0} << first % 64;
  for (size_t i = 0; i <= kWords; ++i) {
    if (word != 0) {
      const size_t slot =
          (first / 64 + i) % kWords * 64 + static_cast<size_t>(std::countr_zero(word));
      return now_ + static_cast<int64_t>((slot - first) % kSlots);
    }
    word = is_used_[(first / 64 + i + 1) % kWords];
  }
  int64_t next = kNever;
  for (const Timer* timer = far_.first; timer != nullptr; timer = timer->after_) {
    next = std::min(next, timer->time_);
  }
  return next;
}

void Calendar::MoveWindow() {
  window_end_ = now_ + kSlots;
  Timer* timer = std::exchange(far_, List()).first;
  while (timer != nullptr) Link(*std::exchange(timer, timer->after_));
}

void Calendar::Run() {
  const int64_t until = std::min(limit_, SystemcNow() + kQuantum);
  running_ = true;
  int64_t next = Next();
  for (; next < until && !stopped_; next = Next()) {
    now_ = next;
    // Half of the window at a time, so that far timers are looked at seldom.
    if (window_end_ - now_ < kSlots / 2) MoveWindow();
    const size_t slot = static_cast<size_t>(now_ % kSlots);
    due_.clear();
    for (Timer* timer = lists_[slot].first; timer != nullptr; timer = timer->after_) {
      due_.push_back(timer);
      timer->time_ = kNever;
    }
    lists_[slot] = List();
    is_used_[slot / 64] &= ~(uint64_t{1} << slot % 64);
    count_ -= static_cast<int64_t>(due_.size());
    for (const Timer* timer : due_) timer->wake_();
  }
  running_ = false;
  if (next < limit_ && !stopped_) WakeAt(next);
}

}  // namespace polynao::simulator
