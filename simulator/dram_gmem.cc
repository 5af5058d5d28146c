#include "simulator/dram_gmem.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace polynao::simulator {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

DramGmemChannel::DramGmemChannel(sc_core::sc_module_name name, const isa::Machine& machine,
                                 const DramTiming& timing, const isa::ChannelMap& channel_map,
                                 int requesters)
    : GmemChannel(name, machine, requesters),
      ratio_(machine.Get("card.clock_mhz"), machine.Get("dram.clock_mhz")),
      channel_map_(channel_map),
      granule_(machine.Get("gmem.granule")),
      burst_bytes_(timing.burst_bytes()),
      burst_clocks_(timing.burst_clocks()),
      slack_(burst_clocks_ + std::min(machine.Get("dram.cl"), machine.Get("dram.cwl"))),
      read_clocks_(burst_clocks_ + machine.Get("dram.cl")),
      dram_(timing) {}

void DramGmemChannel::Announce(int64_t time) {
  wake().NotifyAt(ratio_.CycleOf(ratio_.ClockOf(time) + slack_) - 1);
}

void DramGmemChannel::Arbitrate() {
  const int64_t now = Now();
  // Bursts that arrive later than now are seen in this clock or later.
  const int64_t horizon = ratio_.ClockOf(now + 1);
  do {
    if (dram_.inbox_empty()) continue;
    RunDram(horizon, true);
    if (!dram_.inbox_empty()) break;
    entered_ = dram_.clock();
  } while (TakeTurn(now));
  // With no burst under way, the DRAM is run when the next one arrives or the run is over: until then, what is left in
  // the write queue concerns nobody. Running it here would go on beyond the end of the run.
  const auto any_burst = [&] { return any_waiting() || jobs_.size() > free_jobs_.size(); };
  if (!any_burst()) return;
  RunDram(horizon, false);
  if (!any_burst()) return;
  // An idle DRAM does nothing before the next turn: a requester's, or that of a store whose granules have come just
  // now.
  const int64_t turn = merged_.empty() ? next_turn_ : std::min(next_turn_, merged_.top().time);
  const int64_t next = dram_.idle() ? ratio_.ClockOf(turn) : horizon;
  wake().NotifyAt(std::max(now + 1, ratio_.CycleOf(next + slack_) - 1));
}

bool DramGmemChannel::TakeTurn(int64_t now) {
  const int64_t first = std::max(last_turn_ + 1, ratio_.CycleOf(entered_));
  next_turn_ = first;
  if (first > now) return false;
  for (;;) {
    const int64_t limit = std::min(next_turn_, now);
    if (merging_ > 0) RunUntilMerged(limit);
    if (!merged_.empty() && merged_.top().time <= limit) {
      last_turn_ = std::max(first, merged_.top().time);
      const size_t job = merged_.top().job;
      merged_.pop();
      const Burst& burst = *jobs_[job].burst;
      PushPart(job, burst.address, burst.address + burst.payload, true, last_turn_);
      return true;
    }
    if (next_turn_ > now) return false;
    int64_t earliest = kNever;
    if (const std::optional<Request> request = Take(next_turn_, earliest)) {
      last_turn_ = next_turn_;
      Start(*request, last_turn_);
      return true;
    }
    next_turn_ = std::min(earliest, merged_.empty() ? kNever : merged_.top().time);
    if (next_turn_ == kNever && merging_ == 0) return false;
  }
}

void DramGmemChannel::Start(const Request& request, int64_t cycle) {
  Use(cycle, cycle, request);
  const Burst& burst = *request.burst;
  const int64_t begin = burst.address, end = begin + burst.payload;
  const int64_t first = begin / granule_ * granule_;
  const int64_t last = (end + granule_ - 1) / granule_ * granule_;
  size_t job = jobs_.size();
  if (free_jobs_.empty()) {
    jobs_.emplace_back();
  } else {
    job = free_jobs_.back();
    free_jobs_.pop_back();
  }
  jobs_[job] = {request.burst, 0};
  const bool cuts_first = burst.is_write && first != begin;
  const bool cuts_last = burst.is_write && last != end;
  if (!cuts_first && !cuts_last) {
    PushPart(job, first, last, burst.is_write, cycle);
    return;
  }
  ++merging_;
  if (last - first <= granule_ || (cuts_first && cuts_last && last - first == 2 * granule_)) {
    jobs_[job].reads_left = 1;
    PushPart(job, first, last, false, cycle);
    return;
  }
  jobs_[job].reads_left = cuts_first + cuts_last;
  if (cuts_first) PushPart(job, first, first + granule_, false, cycle);
  if (cuts_last) PushPart(job, last - granule_, last, false, cycle);
}

void DramGmemChannel::PushPart(size_t job, int64_t begin, int64_t end, bool is_write,
                               int64_t cycle) {
  const int64_t first = begin / granule_ * granule_;
  const int64_t last = (end + granule_ - 1) / granule_ * granule_;
  dram_.Push({.id = static_cast<int64_t>(job),
              .address = channel_map_.LocalAddress(first),
              .bytes = last - first,
              .is_write = is_write,
              .clock = ratio_.ClockOf(cycle)});
}

void DramGmemChannel::RunUntilMerged(int64_t cycle) {
  const int64_t end = ratio_.ClockOf(cycle);
  // What is read in a step arrives after it, so that its write can still be pushed in time.
  while (merging_ > 0 && dram_.clock() < end && (merged_.empty() || merged_.top().time > cycle)) {
    RunDram(std::min(end, dram_.clock() + read_clocks_), false);
  }
}

void DramGmemChannel::RunDram(int64_t clock, bool until_entered) {
  if (until_entered) {
    dram_.RunUntilEntered(clock);
  } else {
    dram_.Run(clock);
  }
  if (profile_ != nullptr) {
    profile_->AddCommands(channel_, commands_, dram_.clock());
    commands_.clear();
  }
  // By index: an owner may push to this channel.
  for (size_t i = 0; i < dram_.completions().size(); ++i) Settle(dram_.completions()[i]);
  dram_.completions().clear();
}

void DramGmemChannel::Settle(const DramCompletion& completion) {
  const size_t job = static_cast<size_t>(completion.id);
  const int64_t cycle = ratio_.CycleOf(completion.clock);
  if (jobs_[job].reads_left > 0) {
    // Reads end in the order in which their ends become known.
    if (--jobs_[job].reads_left > 0) return;
    --merging_;
    merged_.push({cycle, merges_++, job});
    return;
  }
  Burst& burst = *jobs_[job].burst;
  free_jobs_.push_back(job);
  burst.owner->Advance(burst, cycle);
}

void DramGmemChannel::Observe(RunProfile* profile, int channel) {
  profile_ = profile;
  channel_ = channel;
  dram_.set_trace(&commands_);
}

std::optional<DramCounters> DramGmemChannel::Dram(int64_t cycles) {
  const int64_t end = ratio_.ClockOf(cycles);
  if (dram_.clock() < end) RunDram(end, false);
  const DramCounters& counters = dram_.counters();
  const int64_t bursts = counters.reads + counters.writes;
  set_busy(std::min(cycles, ratio_.CycleOf(bursts * burst_clocks_)));
  // Whatever was asked for has passed the bus, came from the write queue, waits in it, or is part of what does.
  POLYNAO_CHECK(use().moved <=
                (bursts + counters.forwarded + counters.merged + dram_.waiting_writes()) *
                    burst_bytes_)
      << name() << ": " << use().moved << " bytes, " << bursts << " bursts";
  return counters;
}

}  // namespace polynao::simulator
