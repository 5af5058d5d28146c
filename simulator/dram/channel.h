// One DRAM channel and its controller, event-driven and exact to the clock. README.md states the rules so that
// they can be checked: naive_channel.h steps through every clock by them.
#ifndef SIMULATOR_DRAM_CHANNEL_H_
#define SIMULATOR_DRAM_CHANNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/dram/address_map.h"
#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

// Use: Push requests, Run, read completions(), and again. Time only goes forward: a request must not arrive in a
// clock that has been run.
class DramChannel {
 public:
  // `timing` must be valid (ValidateDram, and AddressMap::Make for its map).
  explicit DramChannel(const DramTiming& timing);

  // `request` waits at the end of the inbox, and is seen from its clock on.
  void Push(const DramRequest& request);

  // Runs all clocks before `until`. Completions are appended to completions().
  void Run(int64_t until) { RunTo<false>(until); }
  // The same, but returns as soon as the inbox is empty. Then clock() is the clock in which the last burst
  // entered a queue; a request pushed now may be seen in that clock.
  void RunUntilEntered(int64_t until) { RunTo<true>(until); }

  // All clocks before this one have been run.
  int64_t clock() const { return now_; }
  bool inbox_empty() const { return inbox_first_ == inbox_.size(); }
  // Nothing waits, neither in the inbox nor in a queue.
  bool idle() const { return inbox_empty() && queues_[0].count + queues_[1].count == 0; }

  int64_t waiting_writes() const { return queues_[1].count; }

  // In the order in which the time of each became known. Cleared by the caller.
  std::vector<DramCompletion>& completions() { return completions_; }
  DramCounters counters() const;
  std::span<const DramBankCounters> bank_counters() const {
    return {bank_counters_.data(), static_cast<size_t>(timing_.bank_count())};
  }
  // Appends each command to `trace`, which outlives this.
  void set_trace(std::vector<DramCommand>* trace) { trace_ = trace; }

 private:
  static constexpr int kMaxEntries = static_cast<int>(kMaxDramQueue);
  static constexpr int kMaxBanks = static_cast<int>(kMaxDramBanks);
  static constexpr int kMaxRanks = 8;
  static constexpr int8_t kNone = -1;
  static constexpr int32_t kClosed = -1;

  // A burst that waits, linked by age with the others of its queue and with those of its bank, and with the
  // bursts of its bank that are in the open row.
  struct Entry {
    int64_t sequence = 0;
    int64_t burst = 0;
    int32_t row = 0;
    int32_t column = 0;
    int32_t request = 0;
    int8_t bank = 0;
    int8_t newer = kNone, older = kNone;
    int8_t bank_newer = kNone, bank_older = kNone;
    int8_t next_hit = kNone;
    bool activated = false;   // an ACT was issued for it
    bool precharged = false;  // a PRE was issued for it
    bool has_merged = false;  // merged_ has writes that end with it
  };
  struct List {
    int8_t first = kNone, last = kNone;
  };
  // The bursts of one direction. Each bank with bursts has one or two commands to offer: RD or WR for the oldest burst
  // in its open row, and ACT or PRE for its oldest burst of all, if that is in no open row.
  struct Queue {
    std::array<Entry, kMaxEntries> entries;
    std::array<List, kMaxBanks> banks;  // all bursts of the bank
    std::array<List, kMaxBanks> hits;   // those in its open row
    std::array<uint64_t, kMaxBanks> column_key{}, row_key{};
    uint64_t column = 0;  // banks that offer RD or WR
    uint64_t row = 0;     // banks that offer ACT or PRE
    uint64_t opened = 0;  // banks whose open row was opened for a burst that still waits
    std::array<int8_t, kMaxEntries> free;  // entries; the first free_count of them
    int free_count = 0;
    List age;
    int count = 0;
    int64_t overtaken = 0;  // bursts that overtook the oldest one
    // Waiting bursts by the low bits of their number.
    std::array<uint8_t, 256> low_bits{};
  };
  struct Waiting {
    int64_t first;  // burst
    int64_t clock;
    int32_t bursts;  // that have not entered
    int32_t request;
    bool is_write;
    // The place of the first burst, if it is known that the write queue has not got that burst. Nothing changes that
    // until the burst enters.
    bool has_place = false;
    DramPlace place = {};
  };
  struct Pending {
    int64_t id;
    int32_t bursts;  // whose end is not known
  };
  // A write that waits in the queue as part of another one of the same burst.
  struct MergedWrite {
    int8_t entry;
    int32_t request;
  };
  // A candidate command as a number, the better one less: clocks from now (16 bits), age (40 bits), then what it is: of
  // the queue of writes (1 bit), RD or WR (1 bit), bank (6 bits). Two commands of one age are those of one burst, never
  // candidates together.
  static constexpr int kWaitShift = 48;
  static constexpr int kAgeShift = 8;
  static constexpr uint64_t kOfWrites = 1 << 7;
  static constexpr uint64_t kIsColumn = 1 << 6;
  static constexpr uint64_t kBankMask = (1 << 6) - 1;
  static constexpr uint64_t kAgeMask = (uint64_t{1} << 40) - 1;
  // Kinds of commands in the order of ready_.
  enum Kind : uint8_t { kRead, kWrite, kActivate, kPrecharge, kKinds };

  template <bool stop_when_entered>
  void RunTo(int64_t until);
  void Enter();
  void AddEntry(Queue& queue, const Waiting& waiting, int64_t burst, const DramPlace& place);
  // Ends a burst that is in the write queue already, as its entry `write`.
  void EndInWriteQueue(const Waiting& waiting, int8_t write);
  // The entry of a burst that waits in the queue, or kNone.
  static int8_t FindBurst(const Queue& queue, int64_t burst, const DramPlace& place);
  void ChooseDirection();
  uint64_t KeyOf(const Queue& queue, int8_t index, bool is_column) const;
  // The better one of `best` and the commands of one kind that `banks` offer, with their keys.
  uint64_t BestOf(uint64_t best, Kind kind, uint64_t banks,
                  const std::array<uint64_t, kMaxBanks>& keys) const;
  // The same for the RDs or WRs, or the ACTs and PREs, that `banks` offer for a queue.
  uint64_t BestColumn(uint64_t best, const Queue& queue, uint64_t banks) const;
  uint64_t BestRow(uint64_t best, const Queue& queue, uint64_t banks) const;
  uint64_t Best(uint64_t banks) const;
  uint64_t BestWhileStarving(uint64_t banks) const;
  // The earliest refresh command of the ranks that are due, and their banks.
  struct Refresh {
    int64_t clock;
    int rank;
    uint64_t banks;
  };
  Refresh NextRefresh() const;
  void IssueRefresh(int64_t clock, int rank);
  void Issue(int64_t clock, uint64_t key);
  void IssueColumn(int64_t clock, bool is_write, int8_t index);
  void IssueActivate(int64_t clock, Queue& queue, int8_t index);
  void IssuePrecharge(int64_t clock, Queue& queue, int8_t index);
  void Close(int64_t clock, int bank);
  void Remove(Queue& queue, int8_t index);
  void FinishMerged(int8_t index, int64_t clock);
  // Sets what a bank offers for a queue.
  void SetCandidates(Queue& queue, int bank);
  void Finish(int32_t request, int64_t clock);
  void Trace(int64_t clock, DramCommand::Kind kind, int bank, int32_t row, int32_t column);
  bool starving(const Queue& queue) const {
    return queue.overtaken >= timing_.starvation && queue.count > 0;
  }
  uint64_t BanksOf(int rank) const { return rank_banks_ << (rank * banks_per_rank_); }

  const DramTiming timing_;
  const AddressMap map_;
  const int burst_shift_;
  const int64_t burst_clocks_;
  const int group_shift_, rank_shift_;  // bank number -> number of its group, of its rank
  const int rank_count_, banks_per_rank_;
  const uint64_t rank_banks_;  // of rank 0

  int64_t now_ = 0;
  int64_t next_sequence_ = 0;
  std::array<Queue, 2> queues_;  // reads, writes
  bool writing_ = false;
  int64_t passed_ = 0;      // reads since the oldest write is that and the direction to read
  int64_t last_late_ = -1;  // the youngest write of the last that waited too long
  std::vector<MergedWrite> merged_;  // that are not complete
  std::vector<Waiting> inbox_;
  size_t inbox_first_ = 0;
  std::vector<Pending> requests_;
  std::vector<int32_t> free_requests_;

  // The first clock for each kind of command, as far as the bank, its group and its rank are concerned.
  std::array<std::array<int64_t, kMaxBanks>, kKinds> ready_{};
  std::array<std::array<int64_t, kMaxBanks>, kKinds> group_ready_{};
  std::array<std::array<int64_t, kMaxRanks>, kKinds> rank_ready_{};
  std::array<int32_t, kMaxBanks> open_row_;
  uint64_t open_ = 0;  // banks
  struct Rank {
    std::array<int64_t, 4> activates;  // the last four
    int oldest = 0;
    int64_t due = 0;  // of the next refresh
  };
  std::array<Rank, kMaxRanks> ranks_;
  int64_t next_due_ = 0;  // of all ranks

  std::vector<DramCompletion> completions_;
  DramCounters counters_;  // those that no bank has; the others are sums over banks
  std::array<DramBankCounters, kMaxBanks> bank_counters_{};
  std::vector<DramCommand>* trace_ = nullptr;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_CHANNEL_H_
