#include "simulator/dma.h"

#include <algorithm>

#include "base/check.h"

namespace polynao::simulator {

Dma::Dma(sc_core::sc_module_name name, InstructionQueue& queue, int64_t max_outstanding)
    : sc_core::sc_module(name), queue_(queue), pool_(static_cast<size_t>(max_outstanding)) {
  for (Burst& burst : pool_) {
    burst.owner = this;
    unused_.push_back(&burst);
  }
  SC_HAS_PROCESS(Dma);
  SC_METHOD(Run);
  sensitive << wake_.event();
  dont_initialize();
}

void Dma::Start(const Issued& issued) {
  POLYNAO_CHECK(!active_ && in_flight_ == 0) << name();
  active_ = true;
  next_send_ = Now() + std::max<int64_t>(1, issued.cost);
  std::vector<const isa::ByteRanges*> segments;
  limits_ = Prepare(issued, segments);
  runs_.clear();
  int64_t run_count = 0;
  for (const isa::ByteRanges* ranges : segments) {
    RunCursor cursor(*ranges);
    if (cursor.done()) continue;
    run_count += cursor.run_count();
    runs_.push_back(std::move(cursor));
  }
  run_ = 0;
  sent_ = 0;
  current_segment_ = -1;
  segments_.assign(static_cast<size_t>(run_count > 1 ? limits_.segments : 1), Segment());
  wake_.NotifyAt(next_send_);
}

void Dma::Complete(Burst& burst, int64_t time) {
  completions_.push({time, &burst});
  wake_.NotifyAt(completions_.top().time);
}

void Dma::Run() {
  const int64_t now = Now();
  while (!completions_.empty() && completions_.top().time <= now) {
    Burst* burst = completions_.top().burst;
    completions_.pop();
    --in_flight_;
    --segments_[static_cast<size_t>(burst->segment)].in_flight;
    unused_.push_back(burst);
  }
  if (active_) {
    Send();
    if (run_ == runs_.size() && in_flight_ == 0 && now >= next_send_) {
      active_ = false;
      queue_.Complete();
    }
  }
  if (!completions_.empty()) wake_.NotifyAt(completions_.top().time);
}

// Sends bursts ahead of the cycles in which they leave: until then the number in flight can only fall.
void Dma::Send() {
  while (run_ < runs_.size() && in_flight_ < limits_.outstanding) {
    RunCursor& cursor = runs_[run_];
    if (current_segment_ < 0) {
      const auto slot = std::find_if(segments_.begin(), segments_.end(),
                                     [](const Segment& segment) { return segment.free(); });
      if (slot == segments_.end()) return;
      slot->open = true;
      current_segment_ = static_cast<int>(slot - segments_.begin());
    }
    Segment& segment = segments_[static_cast<size_t>(current_segment_)];
    Burst& burst = *unused_.back();
    unused_.pop_back();
    const int64_t address = cursor.begin() + sent_;
    const int64_t room = limits_.burst - address % limits_.burst;
    burst.address = address;
    burst.payload = std::min(room, cursor.size() - sent_);
    burst.segment = current_segment_;
    burst.stage = 0;
    ++in_flight_;
    ++segment.in_flight;
    sent_ += burst.payload;
    if (sent_ == cursor.size()) {
      segment.open = false;
      current_segment_ = -1;
      sent_ = 0;
      cursor.Next();
      if (cursor.done()) ++run_;
    }
    const int64_t time = std::max(Now(), next_send_);
    next_send_ = time + 1;
    Inject(burst, time);
  }
}

}  // namespace polynao::simulator
