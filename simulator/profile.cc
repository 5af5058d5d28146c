#include "simulator/profile.h"

#include <algorithm>

#include "base/check.h"
#include "simulator/clock.h"
#include "simulator/dram/preset.h"

namespace polynao::simulator {
namespace {

std::optional<DramTiming> TimingOf(const isa::Machine& machine) {
  if (!machine.has_dram()) return std::nullopt;
  const absl::StatusOr<DramTiming> timing = DramOf(machine);
  POLYNAO_CHECK(timing.ok()) << timing.status();  // Run has checked it
  return *timing;
}

// Changes that are kept at least before cycles are counted: few enough to be no memory, many enough to be no time.
constexpr int64_t kTicks = 4096;

}  // namespace

RunProfile::RunProfile(const isa::Machine& machine, const int64_t& last_gmem_write)
    : last_gmem_write_(last_gmem_write),
      timing_(TimingOf(machine)),
      ratio_(machine.Get("card.clock_mhz"), timing_ ? timing_->clock_mhz : 1),
      banks_(timing_ ? static_cast<int>(timing_->bank_count()) : 1),
      cores_(static_cast<size_t>(machine.clusters() * (machine.cores_per_cluster() + 1)),
             CycleClasses(static_cast<int>(machine.Get("gmem.channels")))),
      channels_(static_cast<size_t>(machine.Get("gmem.channels")), Channel(timing_)),
      states_(channels_.size()),
      bytes_(banks_ * static_cast<int>(states_.size())),
      activates_(timing_ ? bytes_.rows() : 0) {}

void RunProfile::Change(int card_core, CycleClasses::Activity activity, int delta, int64_t cycle) {
  cores_[static_cast<size_t>(card_core)].Change(activity, delta, cycle);
  Tick();
}

void RunProfile::ChangeBursts(int card_core, int channel, int delta, int64_t cycle) {
  if (!timing_) return;  // a flat channel has no rows
  cores_[static_cast<size_t>(card_core)].ChangeBursts(channel, delta, cycle);
  Channel& at = channels_[static_cast<size_t>(channel)];
  at.bursts += delta;
  if (delta < 0) at.leave_at = std::max(at.leave_at, cycle);
  Tick();
}

void RunProfile::AddBytes(int channel, int64_t cycle, int64_t bytes) {
  bytes_.Add(channel * banks_, cycle, bytes);
}

void RunProfile::AddCommands(int channel, const std::vector<DramCommand>& commands, int64_t clock) {
  Channel& at = channels_[static_cast<size_t>(channel)];
  for (const DramCommand& command : commands) {
    at.rows->Add(command);
    const int row = channel * banks_ + command.bank;
    const int64_t cycle = ratio_.CycleDuring(command.clock);
    if (command.kind == DramCommand::Kind::kActivate) activates_.Add(row, cycle, 1);
    if (command.kind == DramCommand::Kind::kRead || command.kind == DramCommand::Kind::kWrite) {
      bytes_.Add(row, cycle, timing_->burst_bytes());
    }
  }
  ChannelStates& states = states_[static_cast<size_t>(channel)];
  at.rows->Advance(
      clock, [&](int64_t change, DramState state) { states.Set(ratio_.CycleOf(change), state); });
  at.known = ratio_.CycleOf(clock);
}

void RunProfile::Tick() {
  if (++ticks_ % kTicks != 0) return;
  int64_t until = Now();
  for (const Channel& channel : channels_) {
    // The DRAM lags behind, but nobody asks for its state while no core has a burst there.
    if (channel.bursts > 0 || channel.leave_at > channel.known) {
      until = std::min(until, channel.known);
    }
  }
  for (CycleClasses& core : cores_) core.Count(until, last_gmem_write_, states_);
  for (ChannelStates& states : states_) states.Forget(until);
}

void RunProfile::Report(RunResult& result) {
  POLYNAO_CHECK(result.cores.size() == cores_.size());
  for (size_t i = 0; i < cores_.size(); ++i) {
    result.cores[i].classes = cores_[i].Finish(result.cycles, states_);
  }
  const auto rows = [&](TimeBuckets& buckets) {
    buckets.Close(result.end_cycle);
    std::vector<std::vector<int64_t>> sums;
    for (int row = 0; row < buckets.rows(); ++row) sums.push_back(buckets.Row(row));
    return sums;
  };
  result.activity.bytes = rows(bytes_);
  result.activity.activates = rows(activates_);
  result.activity.bucket = bytes_.width();
}

}  // namespace polynao::simulator
