#include "simulator/queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace polynao::simulator {
namespace {

bool Overlap(const isa::ByteRanges& a, const isa::ByteRanges& b) {
  if (a.space != b.space || (!a.is_write && !b.is_write)) return false;
  if (a.byte_count() == 0 || b.byte_count() == 0) return false;
  return a.begin < b.end() && b.begin < a.end();
}

// Between which memories bytes move; NMEM and WMEM are one here. -1: none do.
struct Way {
  explicit Way(const Issued& issued) {
    for (const isa::ByteRanges& ranges : issued.ranges) {
      const int space =
          static_cast<int>(ranges.space == isa::Space::kWmem ? isa::Space::kNmem : ranges.space);
      (ranges.is_write ? to : from) = space;
    }
  }
  int from = -1;
  int to = -1;
};

}  // namespace

bool MayGoBeside(const Issued& transfer, const Issued& other) {
  for (const isa::ByteRanges& a : transfer.ranges) {
    for (const isa::ByteRanges& b : other.ranges) {
      if (Overlap(a, b)) return false;
    }
  }
  const Way a(transfer), b(other);
  if (a.to < 0 || b.to < 0) return true;
  constexpr int kGmem = static_cast<int>(isa::Space::kGmem);
  const bool opposite = (a.from == kGmem && b.to == kGmem) || (a.to == kGmem && b.from == kGmem);
  return opposite || (a.from == b.from && a.to == b.to);
}

InstructionQueue::InstructionQueue(sc_core::sc_module_name name, isa::Queue queue, int64_t depth,
                                   int64_t transfers, QueueListener& listener)
    : sc_core::sc_module(name),
      queue_(queue),
      depth_(depth),
      transfers_(transfers),
      listener_(listener),
      wake_([this] { Dispatch(); }) {}

void InstructionQueue::Push(Issued issued) {
  POLYNAO_CHECK(HasRoom()) << name();
  POLYNAO_CHECK(issued.ready > Now()) << name();
  if (waiting_.empty()) wake_.NotifyAt(issued.ready);
  waiting_.push_back(std::move(issued));
}

void InstructionQueue::Dispatch() {
  if (static_cast<int64_t>(active_.size()) >= transfers_ || waiting_.empty()) return;
  if (last_start_ == Now() || waiting_.front().ready > Now()) {
    wake_.NotifyAt(std::max(last_start_ + 1, waiting_.front().ready));
    return;
  }
  for (const Active& active : active_) {
    if (!MayGoBeside(waiting_.front(), active.issued)) return;
  }
  active_.push_back({std::move(waiting_.front()), Now()});
  waiting_.pop_front();
  last_start_ = Now();
  const Issued& issued = active_.back().issued;
  listener_.OnStart(issued);
  listener_.UnitOf(*issued.instruction).Start(issued);
  listener_.OnProgress(queue_);
  if (!waiting_.empty() && static_cast<int64_t>(active_.size()) < transfers_) {
    wake_.NotifyAt(std::max(Now() + 1, waiting_.front().ready));
  }
}

void InstructionQueue::Complete() {
  POLYNAO_CHECK(!active_.empty()) << name();
  const Active done = std::move(active_.front());
  active_.pop_front();
  POLYNAO_CHECK(Now() > done.start) << name() << ": an instruction takes at least a cycle";
  listener_.OnComplete(done.issued, done.start, std::max(done.start, last_completion_));
  last_completion_ = Now();
  Dispatch();
  listener_.OnProgress(queue_);
}

}  // namespace polynao::simulator
