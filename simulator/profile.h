// Collects what a run's report shows beyond counters: what each core's cycles went into, and what each GMEM channel did
// over time.
#ifndef SIMULATOR_PROFILE_H_
#define SIMULATOR_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "isa/machine.h"
#include "simulator/cycle_classes.h"
#include "simulator/dram/clock_ratio.h"
#include "simulator/dram/request.h"
#include "simulator/dram/row_changes.h"
#include "simulator/report.h"
#include "simulator/time_buckets.h"

namespace polynao::simulator {

// The modules of a card tell it what they do; it changes nothing. It keeps little of the past: what it was told is
// counted as soon as nothing more can be said about those cycles.
class RunProfile {
 public:
  // `last_gmem_write`, which outlives this, is the cycle in which a run would end that wrote no more.
  RunProfile(const isa::Machine& machine, const int64_t& last_gmem_write);

  // `delta` more of an activity of a core from `cycle` on, which is not in the past.
  void Change(int card_core, CycleClasses::Activity activity, int delta, int64_t cycle);
  // A burst of a core's IO-DMA will arrive at a channel in `cycle`, or (delta -1) leave it.
  void ChangeBursts(int card_core, int channel, int delta, int64_t cycle);
  // A flat channel starts to move so many bytes.
  void AddBytes(int channel, int64_t cycle, int64_t bytes);
  // Adds what a channel of DRAM did since the last call; its clocks before `clock` are over.
  void AddCommands(int channel, const std::vector<DramCommand>& commands, int64_t clock);

  // Fills in the parts of `result` that come from here. The run has ended; its cycles and end_cycle are known.
  void Report(RunResult& result);

 private:
  struct Channel {
    explicit Channel(const std::optional<DramTiming>& timing) {
      if (timing) rows.emplace(*timing);
    }
    std::optional<RowChanges> rows;
    int64_t known = 0;  // cycles before this one are over, as far as commands are concerned
    int64_t bursts =
        0;  // that have set out for the channel, and of which nobody knows when they leave it
    int64_t leave_at = 0;  // when the last of the others does
  };
  // Now and then counts what is over.
  void Tick();

  const int64_t& last_gmem_write_;
  const std::optional<DramTiming> timing_;  // none: flat channels
  const ClockRatio ratio_;
  const int banks_;  // rows of the tables for each channel
  std::vector<CycleClasses> cores_;
  std::vector<Channel> channels_;
  std::vector<ChannelStates> states_;  // by channel
  TimeBuckets bytes_;
  TimeBuckets activates_;
  int64_t ticks_ = 0;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_PROFILE_H_
