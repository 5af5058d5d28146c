// A DRAM channel that steps through every clock, written from README.md as directly as possible. Slow, and shares
// nothing with DramChannel but the requests and the address map: tests compare the two. The clocked card
// (simulator/reference) has it as its controller.
#ifndef SIMULATOR_DRAM_NAIVE_CHANNEL_H_
#define SIMULATOR_DRAM_NAIVE_CHANNEL_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "simulator/dram/address_map.h"
#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

class NaiveChannel {
 public:
  explicit NaiveChannel(const DramTiming& timing);

  void Push(const DramRequest& request) { inbox_.push_back({request, 0, 0, 0}); }
  // Runs clocks until `until`, one by one.
  void Run(int64_t until);

  // Does what step 1 of clock `t`, the next one to run, does with what has been pushed so far. True if the inbox
  // is empty then.
  bool EnterEarly(int64_t t) {
    Enter(t);
    return jobs_seen_ == inbox_.size();
  }

  const std::vector<DramCompletion>& completions() const { return completions_; }
  const std::vector<DramCommand>& trace() const { return trace_; }
  const DramCounters& counters() const { return counters_; }
  const std::vector<DramBankCounters>& bank_counters() const { return bank_counters_; }

 private:
  struct Job {
    DramRequest request;
    int64_t entered = 0;   // bursts
    int64_t finished = 0;  // bursts whose end is known
    int64_t end = 0;       // the latest of them
  };
  struct Burst {
    int64_t number;
    DramPlace place;
    Job* job;
    int64_t age;
    bool was_activated, was_precharged;
    bool is_opened;            // an ACT was sent for it, and its row is still open
    bool is_late;              // a write for which the direction has changed
    std::vector<Job*> merged;  // writes of the same burst
  };
  struct Bank {
    int64_t row = -1;  // -1: closed
    // The last commands.
    int64_t act = kLongAgo, pre = kLongAgo, rd = kLongAgo, wr = kLongAgo, ref = kLongAgo;
  };
  static constexpr int64_t kLongAgo = -1'000'000'000;
  using Kind = DramCommand::Kind;

  void Step(int64_t t);
  void Enter(int64_t t);
  bool StepRefresh(int64_t t);
  // A burst may be given one of these in a clock, or it waits.
  struct Offer {
    std::vector<Burst>* queue;
    size_t index;
    Kind kind;
  };
  void StepCommand(int64_t t);
  // RD or WR for bursts in open rows.
  std::vector<Offer> ColumnOffers(std::vector<Burst>& queue);
  // ACT or PRE for the oldest burst of each bank. `may_starve`: the queue's oldest burst may close a row whatever
  // keep_rows says.
  std::vector<Offer> RowOffers(std::vector<Burst>& queue, bool may_starve);
  bool HasOpened(const std::vector<Burst>& queue) const;
  bool IsInOpenRow(const Burst& burst) const {
    return banks_[burst.place.bank].row == burst.place.row;
  }
  bool IsStarving(const std::vector<Burst>& queue) const;
  void SendColumn(int64_t t, std::vector<Burst>& queue, size_t index);
  void SendActivate(int64_t t, Burst& burst);
  void SendPrecharge(int64_t t, Burst& burst);
  void CloseBank(int64_t t, int64_t bank);
  bool IsAllowed(Kind kind, int64_t bank, int64_t t) const;
  bool IsDue(int64_t bank, int64_t t) const;
  void Note(int64_t t, Kind kind, int64_t bank, int64_t row, int64_t column);
  void FinishBurst(Job& job, int64_t end);
  int64_t RankOf(int64_t bank) const { return bank / (t_.bank_groups * t_.banks); }
  int64_t GroupOf(int64_t bank) const { return bank / t_.banks; }  // of the channel

  const DramTiming t_;
  const AddressMap map_;
  std::deque<Job> inbox_;  // of all time; jobs_seen_ of them have entered entirely
  size_t jobs_seen_ = 0;
  std::vector<Burst> reads_, writes_;  // by age
  int64_t entered_ = 0;                // bursts of both queues
  int64_t reads_overtaken_ = 0, writes_overtaken_ = 0;
  int64_t writes_passed_ = 0;  // reads while one write was the oldest
  bool writing_ = false;
  int64_t clock_ = 0;
  std::vector<Bank> banks_;
  std::vector<std::vector<int64_t>> activates_;  // by rank
  std::vector<int64_t> due_;                     // by rank
  std::vector<DramCompletion> completions_;
  std::vector<DramCommand> trace_;
  DramCounters counters_;
  std::vector<DramBankCounters> bank_counters_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_NAIVE_CHANNEL_H_
