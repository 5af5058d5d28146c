// A GMEM channel of DRAM.
#ifndef SIMULATOR_DRAM_GMEM_H_
#define SIMULATOR_DRAM_GMEM_H_

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <systemc>
#include <vector>

#include "isa/channel_map.h"
#include "isa/machine.h"
#include "simulator/dram/channel.h"
#include "simulator/dram/clock_ratio.h"
#include "simulator/gmem.h"

namespace polynao::simulator {

// Bursts wait for their turn as before a flat channel, and go to the DRAM's controller one after another: in a cycle c,
// not earlier than the one after the turn before, if the inbox of the controller is empty, i.e. the last burst has
// entered its queues in clock CycleOf(c) or before. It is seen from clock ClockOf(c) on (clock_ratio.h). Whole granules
// are read and written; a store first reads the granules that it covers in part, and when these have arrived in cycle
// d, its write takes the first turn from d on, before the requesters.
//
// The DRAM is run whenever something that it does could be known outside, not in every cycle: what it does in a
// clock is known outside `slack_` clocks later at the earliest.
class DramGmemChannel : public GmemChannel {
 public:
  // `timing` is DramOf(machine), `channel_map` that of the machine; it outlives the channel.
  DramGmemChannel(sc_core::sc_module_name name, const isa::Machine& machine,
                  const DramTiming& timing, const isa::ChannelMap& channel_map, int requesters);

  std::optional<DramCounters> Dram(int64_t cycles) override;
  std::span<const DramBankCounters> DramBanks() const override { return dram_.bank_counters(); }
  void Observe(RunProfile* profile, int channel) override;

 protected:
  void Arbitrate() override;
  void Announce(int64_t time) override;

 private:
  struct Job {
    Burst* burst = nullptr;
    int reads_left = 0;  // of granules that a store covers in part; it is written after them
  };
  // A store whose granules have been read, from cycle `time` on.
  struct Merged {
    int64_t time;
    int64_t order;
    size_t job;
    bool operator<(const Merged& other) const {  // earliest first, for std::priority_queue
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  // Runs the DRAM's clocks before `clock`, or until its inbox is empty, and tells the owners of what is complete.
  void RunDram(int64_t clock, bool until_entered);
  // The same up to cycle `cycle`, or until a store has its granules by then. The inbox is empty.
  void RunUntilMerged(int64_t cycle);
  // Takes the next turn if it lies in cycle `now` or before; else false, and next_turn_ is what is known of it.
  bool TakeTurn(int64_t now);
  void Start(const Request& request, int64_t cycle);
  void PushPart(size_t job, int64_t begin, int64_t end, bool is_write, int64_t cycle);
  void Settle(const DramCompletion& completion);

  const ClockRatio ratio_;
  const isa::ChannelMap& channel_map_;
  const int64_t granule_;
  const int64_t burst_bytes_, burst_clocks_;
  const int64_t slack_;        // clocks from anything in the DRAM to the end of a request
  const int64_t read_clocks_;  // from RD to the end of its data
  DramChannel dram_;
  int64_t last_turn_ = -1;
  int64_t entered_ = 0;  // clock in which the inbox became empty
  int64_t next_turn_ = 0;
  std::vector<Job> jobs_;
  std::vector<size_t> free_jobs_;
  std::priority_queue<Merged> merged_;
  int64_t merges_ = 0;  // for Merged::order
  int merging_ = 0;     // stores whose granules are being read
  RunProfile* profile_ = nullptr;
  int channel_ = 0;                    // for the profile
  std::vector<DramCommand> commands_;  // that the profile was not told yet
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_GMEM_H_
