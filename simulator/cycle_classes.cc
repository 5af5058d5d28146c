#include "simulator/cycle_classes.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace polynao::simulator {

void ChannelStates::Set(int64_t cycle, DramState state) {
  if (!changes_.empty()) {
    POLYNAO_CHECK(cycle >= changes_.back().cycle) << cycle << " after " << changes_.back().cycle;
    if (cycle == changes_.back().cycle) {
      changes_.back().state = state;
      return;
    }
  }
  changes_.push_back({cycle, state});
}

ChannelStates::Step ChannelStates::At(int64_t cycle, int64_t& place) const {
  // The number of changes that the reader has passed.
  place = std::max(place, forgotten_);
  const auto change = [&](int64_t i) -> const Change& {
    return changes_[static_cast<size_t>(i - forgotten_)];
  };
  const int64_t count = forgotten_ + static_cast<int64_t>(changes_.size());
  while (place < count && change(place).cycle <= cycle) ++place;
  return {place == forgotten_ ? DramState::kOther : change(place - 1).state,
          place == count ? std::numeric_limits<int64_t>::max() : change(place).cycle};
}

void ChannelStates::Forget(int64_t cycle) {
  // The state in `cycle` itself stays.
  while (changes_.size() > 1 && changes_[1].cycle <= cycle) {
    changes_.pop_front();
    ++forgotten_;
  }
}

CycleClasses::CycleClasses(int channels)
    : active_(static_cast<size_t>(kActivities + channels)),
      places_(static_cast<size_t>(channels)) {}

void CycleClasses::Change(Activity activity, int delta, int64_t cycle) {
  Push(activity, delta, cycle);
}

void CycleClasses::ChangeBursts(int channel, int delta, int64_t cycle) {
  Push(kActivities + channel, delta, cycle);
}

void CycleClasses::Push(int what, int delta, int64_t cycle) {
  POLYNAO_CHECK(cycle >= counted_)
      << "activity " << what << " changes in " << cycle << " after " << counted_;
  events_.push({cycle, what, delta});
}

CycleClass CycleClasses::Classify(const std::vector<ChannelStates>& channels, int64_t& next) {
  if (active_[kComputing] > 0) return CycleClass::kCompute;
  bool is_data = false, is_rows = false;
  for (size_t c = 0; c < places_.size(); ++c) {
    if (active_[kActivities + c] == 0) continue;
    const ChannelStates::Step step = channels[c].At(counted_, places_[c]);
    next = std::min(next, step.until);
    is_data |= step.state == DramState::kData;
    is_rows |= step.state == DramState::kRows;
  }
  if (is_rows && !is_data) return CycleClass::kDramRows;
  if (active_[kLoading] > 0) return CycleClass::kLoad;
  if (active_[kStoring] > 0) return CycleClass::kStore;
  if (active_[kMoving] > 0) return CycleClass::kMove;
  if (active_[kAtBarrier] > 0) return CycleClass::kBarrier;
  return active_[kWaiting] + active_[kHalted] == 0 ? CycleClass::kScalar : CycleClass::kIdle;
}

void CycleClasses::CountTo(int64_t until, const std::vector<ChannelStates>& channels) {
  while (counted_ < until) {
    for (; !events_.empty() && events_.top().cycle <= counted_; events_.pop()) {
      int64_t& active = active_[static_cast<size_t>(events_.top().what)];
      active += events_.top().delta;
    }
    int64_t next = events_.empty() ? until : std::min(until, events_.top().cycle);
    const CycleClass found = Classify(channels, next);
    counts_[static_cast<size_t>(found)] += next - counted_;
    counted_ = next;
  }
}

void CycleClasses::Count(int64_t until, int64_t end, const std::vector<ChannelStates>& channels) {
  if (end >= counted_ && end <= until) {
    CountTo(end, channels);
    counts_at_end_ = counts_;
    end_ = end;
  }
  CountTo(until, channels);
}

std::array<int64_t, kCycleClassCount> CycleClasses::Finish(
    int64_t end, const std::vector<ChannelStates>& channels) {
  if (end >= counted_) {
    CountTo(end, channels);
    return counts_;
  }
  POLYNAO_CHECK(end == end_) << end << " is not " << end_ << ", counted to " << counted_;
  return counts_at_end_;
}

}  // namespace polynao::simulator
