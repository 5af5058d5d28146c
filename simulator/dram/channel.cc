#include "simulator/dram/channel.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace polynao::simulator {
namespace {

constexpr uint64_t kNothing = std::numeric_limits<uint64_t>::max();
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int Log2(int64_t size) { return std::countr_zero(static_cast<uint64_t>(size)); }

AddressMap MakeMap(const DramTiming& timing) {
  absl::StatusOr<AddressMap> map = AddressMap::Make(timing, "DramChannel");
  POLYNAO_CHECK(map.ok()) << map.status();
  return *map;
}

}  // namespace

DramChannel::DramChannel(const DramTiming& timing)
    : timing_(timing),
      map_(MakeMap(timing)),
      burst_shift_(Log2(timing.burst_bytes())),
      burst_clocks_(timing.burst_clocks()),
      group_shift_(Log2(timing.banks)),
      rank_shift_(Log2(timing.banks_per_rank())),
      rank_count_(static_cast<int>(timing.ranks)),
      banks_per_rank_(static_cast<int>(timing.banks_per_rank())),
      rank_banks_(~uint64_t{0} >> (64 - timing.banks_per_rank())) {
  const absl::Status valid = ValidateDram(timing, "DramChannel");
  POLYNAO_CHECK(valid.ok()) << valid;
  const int64_t sizes[] = {timing.read_queue, timing.write_queue};
  for (size_t i = 0; i < 2; ++i) {
    Queue& queue = queues_[i];
    for (int64_t entry = sizes[i]; entry > 0; --entry) {
      queue.free[static_cast<size_t>(queue.free_count++)] = static_cast<int8_t>(entry - 1);
    }
  }
  open_row_.fill(kClosed);
  for (int64_t r = 0; r < timing.ranks; ++r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    rank.activates.fill(-timing.tfaw);
    rank.due = timing.trefi == 0 ? kNever : timing.trefi * (r + 1) / timing.ranks;
  }
  next_due_ = ranks_[0].due;
}

DramCounters DramChannel::counters() const {
  DramCounters sums = counters_;
  for (const DramBankCounters& bank : bank_counters()) {
    sums.activates += bank.activates;
    sums.precharges += bank.precharges;
    sums.reads += bank.reads;
    sums.writes += bank.writes;
    sums.hits += bank.hits;
    sums.misses += bank.misses;
    sums.conflicts += bank.conflicts;
  }
  return sums;
}

void DramChannel::Push(const DramRequest& request) {
  POLYNAO_CHECK(request.clock >= now_ && request.bytes > 0 && request.address >= 0)
      << request.bytes << " bytes at " << request.address << " in clock " << request.clock
      << ", run to " << now_;
  POLYNAO_CHECK(inbox_empty() || inbox_.back().clock <= request.clock) << request.clock;
  const int64_t first = request.address >> burst_shift_;
  const int64_t last = (request.address + request.bytes - 1) >> burst_shift_;
  const int32_t bursts = static_cast<int32_t>(last - first + 1);
  int32_t slot = static_cast<int32_t>(requests_.size());
  if (free_requests_.empty()) {
    requests_.emplace_back();
  } else {
    slot = free_requests_.back();
    free_requests_.pop_back();
  }
  requests_[static_cast<size_t>(slot)] = {request.id, bursts};
  if (inbox_empty()) {
    inbox_.clear();
    inbox_first_ = 0;
  }
  inbox_.push_back({first, request.clock, bursts, slot, request.is_write});
}

template <bool stop_when_entered>
void DramChannel::RunTo(int64_t until) {
  while (now_ < until) {
    if (!inbox_empty()) Enter();
    if (stop_when_entered && inbox_empty()) return;
    ChooseDirection();
    // Nothing but a command changes anything before `limit`.
    int64_t limit = until;
    if (!inbox_empty() && inbox_[inbox_first_].clock > now_) {
      limit = std::min(limit, inbox_[inbox_first_].clock);
    }
    uint64_t banks = ~uint64_t{0};
    Refresh refresh{kNever, 0, 0};
    if (now_ >= next_due_) {
      refresh = NextRefresh();
      banks &= ~refresh.banks;
      for (int64_t r = 0; r < timing_.ranks; ++r) {
        const int64_t due = ranks_[static_cast<size_t>(r)].due;
        if (due > now_) limit = std::min(limit, due);
      }
    } else {
      limit = std::min(limit, next_due_);
    }
    const uint64_t best = Best(banks);
    const int64_t clock =
        best == kNothing ? kNever : now_ + static_cast<int64_t>(best >> kWaitShift);
    const int64_t next = std::min(clock, refresh.clock);
    if (next >= limit) {
      now_ = limit;
      continue;
    }
    if (refresh.clock <= clock) {
      IssueRefresh(next, refresh.rank);
    } else {
      Issue(next, best);
    }
    now_ = next + 1;
  }
}
template void DramChannel::RunTo<false>(int64_t until);
template void DramChannel::RunTo<true>(int64_t until);

void DramChannel::Enter() {
  while (!inbox_empty()) {
    Waiting& waiting = inbox_[inbox_first_];
    if (waiting.clock > now_) return;
    Queue& queue = queues_[waiting.is_write];
    for (; waiting.bursts > 0; --waiting.bursts, ++waiting.first) {
      if (!waiting.has_place) {
        waiting.place = map_.Map(waiting.first << burst_shift_);
        const int8_t write = FindBurst(queues_[1], waiting.first, waiting.place);
        if (write != kNone) {
          EndInWriteQueue(waiting, write);
          continue;
        }
        waiting.has_place = true;
      }
      if (queue.free_count == 0) return;
      // A write must not overtake a read of its burst.
      if (waiting.is_write && FindBurst(queues_[0], waiting.first, waiting.place) != kNone) return;
      AddEntry(queue, waiting, waiting.first, waiting.place);
      waiting.has_place = false;
    }
    ++inbox_first_;
  }
}

void DramChannel::EndInWriteQueue(const Waiting& waiting, int8_t write) {
  if (!waiting.is_write) {
    ++counters_.forwarded;
    Finish(waiting.request, now_ + timing_.cl + burst_clocks_);
    return;
  }
  ++counters_.merged;
  if (timing_.posted) {
    Finish(waiting.request, now_ + timing_.cwl + burst_clocks_);
  } else {
    queues_[1].entries[static_cast<size_t>(write)].has_merged = true;
    merged_.push_back({write, waiting.request});
  }
}

int8_t DramChannel::FindBurst(const Queue& queue, int64_t burst, const DramPlace& place) {
  if (queue.low_bits[burst & 255] == 0) return kNone;
  for (int8_t i = queue.banks[static_cast<size_t>(place.bank)].first; i != kNone;) {
    const Entry& entry = queue.entries[static_cast<size_t>(i)];
    if (entry.burst == burst) return i;
    i = entry.bank_newer;
  }
  return kNone;
}

void DramChannel::AddEntry(Queue& queue, const Waiting& waiting, int64_t burst,
                           const DramPlace& place) {
  const int8_t index = queue.free[static_cast<size_t>(--queue.free_count)];
  const size_t bank = static_cast<size_t>(place.bank);
  Entry& entry = queue.entries[static_cast<size_t>(index)];
  entry.sequence = next_sequence_++;
  entry.burst = burst;
  entry.row = place.row;
  entry.column = place.column;
  entry.request = waiting.request;
  entry.bank = static_cast<int8_t>(place.bank);
  entry.activated = entry.precharged = entry.has_merged = false;
  entry.newer = entry.bank_newer = entry.next_hit = kNone;
  entry.older = queue.age.last;
  (entry.older == kNone ? queue.age.first : queue.entries[static_cast<size_t>(entry.older)].newer) =
      index;
  queue.age.last = index;
  List& list = queue.banks[bank];
  entry.bank_older = list.last;
  (list.last == kNone ? list.first : queue.entries[static_cast<size_t>(list.last)].bank_newer) =
      index;
  const bool was_empty = list.last == kNone;
  list.last = index;
  bool is_first_hit = false;
  if (open_row_[bank] == place.row) {
    List& hits = queue.hits[bank];
    is_first_hit = hits.last == kNone;
    (is_first_hit ? hits.first : queue.entries[static_cast<size_t>(hits.last)].next_hit) = index;
    hits.last = index;
  }
  if (was_empty || is_first_hit) SetCandidates(queue, place.bank);
  if (queue.count++ == 0) {
    queue.overtaken = 0;
    if (waiting.is_write) passed_ = 0;
  }
  ++queue.low_bits[burst & 255];
  if (waiting.is_write && timing_.posted) {
    Finish(waiting.request, now_ + timing_.cwl + burst_clocks_);
  }
}

// Reads that may pass a write whose store waits for it, in units of `starvation`: then two changes of direction, which
// cost the time of 9 to 15 bursts, take 3 % of the rate at most.
constexpr int64_t kPatience = 4;

// Idempotent, so it does not matter that it does not run in clocks in which nothing happens.
void DramChannel::ChooseDirection() {
  const int reads = queues_[0].count;
  const int writes = queues_[1].count;
  const auto sequence = [&](int8_t write) {
    return queues_[1].entries[static_cast<size_t>(write)].sequence;
  };
  if (writing_) {
    writing_ = writes > 0 && (writes > timing_.write_low || reads == 0 ||
                              sequence(queues_[1].age.first) <= last_late_);
    if (!writing_) passed_ = 0;
    return;
  }
  const bool is_late = !timing_.posted && writes > 0 &&
                       passed_ >= std::max<int64_t>(1, kPatience * timing_.starvation);
  if (writes < timing_.write_high && (reads > 0 || writes == 0) && !is_late) return;
  writing_ = true;
  ++counters_.drains;
  if (is_late) last_late_ = sequence(queues_[1].age.last);
}

uint64_t DramChannel::BestOf(uint64_t best, Kind kind, uint64_t banks,
                             const std::array<uint64_t, kMaxBanks>& keys) const {
  for (int r = 0; r < rank_count_; ++r) {
    uint64_t left = banks & BanksOf(r);
    const int64_t first = std::max(now_, rank_ready_[kind][static_cast<size_t>(r)]);
    // Nothing of this kind can come before what there is.
    if (static_cast<uint64_t>(first - now_) > best >> kWaitShift) continue;
    for (; left != 0; left &= left - 1) {
      const size_t b = static_cast<size_t>(std::countr_zero(left));
      const int64_t clock =
          std::max({first, ready_[kind][b], group_ready_[kind][b >> group_shift_]});
      best = std::min(best, static_cast<uint64_t>(clock - now_) << kWaitShift | keys[b]);
    }
  }
  return best;
}

uint64_t DramChannel::BestColumn(uint64_t best, const Queue& queue, uint64_t banks) const {
  const Kind kind = &queue == &queues_[1] ? kWrite : kRead;
  return BestOf(best, kind, banks & queue.column, queue.column_key);
}

uint64_t DramChannel::BestRow(uint64_t best, const Queue& queue, uint64_t banks) const {
  banks &= queue.row;
  best = BestOf(best, kPrecharge, banks & open_, queue.row_key);
  return BestOf(best, kActivate, banks & ~open_, queue.row_key);
}

uint64_t DramChannel::Best(uint64_t banks) const {
  const Queue& queue = queues_[writing_];
  const Queue& other = queues_[!writing_];
  if (other.opened != 0) {
    // The rows of the direction before are made use of first; meanwhile the other banks get ready.
    return BestRow(BestColumn(kNothing, other, banks), queue, banks & ~other.column);
  }
  if (starving(queue)) return BestWhileStarving(banks);
  return BestRow(BestColumn(kNothing, queue, banks), queue, banks);
}

// The oldest burst has been overtaken too often. Its bank works for it alone; once its row is open, no
// other burst is read or written before it.
uint64_t DramChannel::BestWhileStarving(uint64_t banks) const {
  const Queue& queue = queues_[writing_];
  const Entry& oldest = queue.entries[static_cast<size_t>(queue.age.first)];
  const uint64_t own = uint64_t{1} << oldest.bank;
  if (open_row_[static_cast<size_t>(oldest.bank)] == oldest.row) {
    return BestRow(BestColumn(kNothing, queue, banks & own), queue, banks);
  }
  uint64_t best = BestColumn(kNothing, queue, banks & ~own);
  // With keep_rows the row of its bank closes now, although others wait for it.
  if ((banks & own & ~queue.row) != 0) {
    const int64_t clock = std::max(ready_[kPrecharge][static_cast<size_t>(oldest.bank)], now_);
    best = std::min(best, static_cast<uint64_t>(clock - now_) << kWaitShift |
                              KeyOf(queue, queue.age.first, false));
  }
  return BestRow(best, queue, banks);
}

DramChannel::Refresh DramChannel::NextRefresh() const {
  Refresh result{kNever, 0, 0};
  for (int r = 0; r < rank_count_; ++r) {
    if (ranks_[static_cast<size_t>(r)].due > now_) continue;
    const uint64_t banks = BanksOf(r);
    result.banks |= banks;
    // PREA waits for its open banks, REF for an ACT to be allowed in all of them.
    const bool is_open = (open_ & banks) != 0;
    const Kind kind = is_open ? kPrecharge : kActivate;
    int64_t clock = now_;
    for (uint64_t left = is_open ? open_ & banks : banks; left != 0; left &= left - 1) {
      clock = std::max(clock, ready_[kind][static_cast<size_t>(std::countr_zero(left))]);
    }
    if (clock < result.clock) {
      result.clock = clock;
      result.rank = r;
    }
  }
  return result;
}

}  // namespace polynao::simulator
