// What each command of a DRAM channel does to the state of its banks and queues.
#include <algorithm>
#include <bit>
#include <limits>

#include "simulator/dram/channel.h"

namespace polynao::simulator {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

void Raise(int64_t& ready, int64_t clock) { ready = std::max(ready, clock); }

}  // namespace

uint64_t DramChannel::KeyOf(const Queue& queue, int8_t index, bool is_column) const {
  const Entry& entry = queue.entries[static_cast<size_t>(index)];
  return (static_cast<uint64_t>(entry.sequence) & kAgeMask) << kAgeShift |
         (&queue == &queues_[1] ? kOfWrites : 0) | (is_column ? kIsColumn : 0) |
         static_cast<uint64_t>(entry.bank);
}

void DramChannel::SetCandidates(Queue& queue, int bank) {
  const size_t b = static_cast<size_t>(bank);
  const uint64_t bit = uint64_t{1} << bank;
  queue.column &= ~bit;
  queue.row &= ~bit;
  const int8_t oldest = queue.banks[b].first;
  if (oldest == kNone) return;
  const int8_t hit = queue.hits[b].first;
  if (hit != kNone) {
    queue.column |= bit;
    queue.column_key[b] = KeyOf(queue, hit, true);
  }
  if (hit == oldest || (hit != kNone && timing_.keep_rows != 0)) return;
  queue.row |= bit;
  queue.row_key[b] = KeyOf(queue, oldest, false);
}

void DramChannel::IssueRefresh(int64_t clock, int r) {
  Rank& rank = ranks_[static_cast<size_t>(r)];
  const uint64_t banks = BanksOf(r);
  const int first = std::countr_zero(banks);
  if ((open_ & banks) != 0) {
    ++counters_.precharge_alls;
    Trace(clock, DramCommand::Kind::kPrechargeAll, first, -1, 0);
    for (uint64_t left = open_ & banks; left != 0; left &= left - 1) {
      ++bank_counters_[static_cast<size_t>(std::countr_zero(left))].precharge_alls;
      Close(clock, std::countr_zero(left));
    }
    return;
  }
  ++counters_.refreshes;
  Trace(clock, DramCommand::Kind::kRefresh, first, -1, 0);
  for (uint64_t left = banks; left != 0; left &= left - 1) {
    const size_t bank = static_cast<size_t>(std::countr_zero(left));
    ++bank_counters_[bank].refreshes;
    Raise(ready_[kActivate][bank], clock + timing_.trfc);
  }
  rank.due += timing_.trefi;
  next_due_ = kNever;
  for (int64_t i = 0; i < timing_.ranks; ++i) {
    next_due_ = std::min(next_due_, ranks_[static_cast<size_t>(i)].due);
  }
}

void DramChannel::Issue(int64_t clock, uint64_t key) {
  const bool is_write = (key & kOfWrites) != 0;
  Queue& queue = queues_[is_write];
  const size_t b = static_cast<size_t>(key & kBankMask);
  if ((key & kIsColumn) != 0) return IssueColumn(clock, is_write, queue.hits[b].first);
  const int8_t oldest = queue.banks[b].first;
  if (open_row_[b] == kClosed) return IssueActivate(clock, queue, oldest);
  IssuePrecharge(clock, queue, oldest);
}

void DramChannel::IssueColumn(int64_t clock, bool is_write, int8_t index) {
  const DramTiming& t = timing_;
  Queue& queue = queues_[is_write];
  const Entry& entry = queue.entries[static_cast<size_t>(index)];
  const size_t bank = static_cast<size_t>(entry.bank);
  const size_t group = bank >> group_shift_;
  const size_t rank = bank >> rank_shift_;
  const int64_t b = burst_clocks_;
  // After this command, the same and the other direction may follow in the same rank, in another bank
  // group (short) or not (long), and in another rank.
  int64_t same_short = clock + t.tccd_s, same_long = clock + t.tccd_l;
  int64_t same_rank_switch = clock + b + t.rank_switch;
  int64_t other_short, other_long, other_rank_switch;
  Kind same, other;
  DramBankCounters& counters = bank_counters_[bank];
  if (is_write) {
    same = kWrite, other = kRead;
    other_short = clock + t.cwl + b + t.twtr_s;
    other_long = clock + t.cwl + b + t.twtr_l;
    other_rank_switch = clock + t.cwl + b + t.rank_switch - t.cl;
    Raise(ready_[kPrecharge][bank], clock + t.cwl + b + t.twr);
    ++counters.writes;
  } else {
    same = kRead, other = kWrite;
    other_short = other_long = clock + t.cl + b + t.turnaround - t.cwl;
    other_rank_switch = clock + t.cl + b + std::max(t.turnaround, t.rank_switch) - t.cwl;
    Raise(ready_[kPrecharge][bank], clock + t.trtp);
    ++counters.reads;
  }
  for (size_t r = 0; r < static_cast<size_t>(rank_count_); ++r) {
    Raise(rank_ready_[same][r], r == rank ? same_short : same_rank_switch);
    Raise(rank_ready_[other][r], r == rank ? other_short : other_rank_switch);
  }
  Raise(group_ready_[same][group], same_long);
  Raise(group_ready_[other][group], other_long);

  ++(entry.precharged ? counters.conflicts : entry.activated ? counters.misses : counters.hits);
  if (trace_ != nullptr) {
    Trace(clock, is_write ? DramCommand::Kind::kWrite : DramCommand::Kind::kRead, entry.bank,
          entry.row, entry.column);
  }
  if (!is_write) {
    Finish(entry.request, clock + t.cl + b);
  } else if (!t.posted) {
    Finish(entry.request, clock + t.cwl + b);
    if (entry.has_merged) FinishMerged(index, clock + t.cwl + b);
  }
  queue.opened &= ~(uint64_t{1} << bank);
  // The oldest burst of the open row.
  List& hits = queue.hits[bank];
  hits.first = entry.next_hit;
  if (hits.first == kNone) hits.last = kNone;
  Remove(queue, index);
  SetCandidates(queue, static_cast<int>(bank));
}

void DramChannel::FinishMerged(int8_t index, int64_t clock) {
  std::erase_if(merged_, [&](const MergedWrite& write) {
    if (write.entry != index) return false;
    Finish(write.request, clock);
    return true;
  });
}

void DramChannel::Remove(Queue& queue, int8_t index) {
  auto& entries = queue.entries;
  const Entry& entry = entries[static_cast<size_t>(index)];
  const bool is_oldest = queue.age.first == index;
  queue.overtaken = is_oldest ? 0 : queue.overtaken + 1;
  if (&queue == &queues_[0]) {
    ++passed_;
  } else if (is_oldest) {
    passed_ = 0;
  }
  const auto at = [&](int8_t i) -> Entry& { return entries[static_cast<size_t>(i)]; };
  (entry.older == kNone ? queue.age.first : at(entry.older).newer) = entry.newer;
  (entry.newer == kNone ? queue.age.last : at(entry.newer).older) = entry.older;
  List& list = queue.banks[static_cast<size_t>(entry.bank)];
  (entry.bank_older == kNone ? list.first : at(entry.bank_older).bank_newer) = entry.bank_newer;
  (entry.bank_newer == kNone ? list.last : at(entry.bank_newer).bank_older) = entry.bank_older;
  queue.free[static_cast<size_t>(queue.free_count++)] = index;
  --queue.low_bits[entry.burst & 255];
  --queue.count;
}

void DramChannel::IssueActivate(int64_t clock, Queue& queue, int8_t index) {
  const DramTiming& t = timing_;
  Entry& entry = queue.entries[static_cast<size_t>(index)];
  entry.activated = true;
  const size_t bank = static_cast<size_t>(entry.bank);
  const size_t own_rank = bank >> rank_shift_;
  ++bank_counters_[bank].activates;
  Trace(clock, DramCommand::Kind::kActivate, entry.bank, entry.row, 0);
  open_ |= uint64_t{1} << bank;
  queue.opened |= uint64_t{1} << bank;
  open_row_[bank] = entry.row;
  Raise(ready_[kRead][bank], clock + t.trcd);
  Raise(ready_[kWrite][bank], clock + t.trcd);
  Raise(ready_[kPrecharge][bank], clock + t.tras);
  Raise(ready_[kActivate][bank], clock + t.trc);
  Rank& rank = ranks_[own_rank];
  rank.activates[static_cast<size_t>(rank.oldest)] = clock;
  rank.oldest = (rank.oldest + 1) % 4;
  const int64_t window = rank.activates[static_cast<size_t>(rank.oldest)] + t.tfaw;
  Raise(rank_ready_[kActivate][own_rank], std::max(window, clock + t.trrd_s));
  Raise(group_ready_[kActivate][bank >> group_shift_], clock + t.trrd_l);
  for (Queue& q : queues_) {
    List& hits = q.hits[bank];
    for (int8_t i = q.banks[bank].first; i != kNone;) {
      Entry& candidate = q.entries[static_cast<size_t>(i)];
      if (candidate.row == open_row_[bank]) {
        (hits.last == kNone ? hits.first : q.entries[static_cast<size_t>(hits.last)].next_hit) = i;
        hits.last = i;
        candidate.next_hit = kNone;
      }
      i = candidate.bank_newer;
    }
    SetCandidates(q, static_cast<int>(bank));
  }
}

void DramChannel::IssuePrecharge(int64_t clock, Queue& queue, int8_t index) {
  Entry& entry = queue.entries[static_cast<size_t>(index)];
  entry.precharged = true;
  ++bank_counters_[static_cast<size_t>(entry.bank)].precharges;
  Trace(clock, DramCommand::Kind::kPrecharge, entry.bank, -1, 0);
  Close(clock, entry.bank);
}

void DramChannel::Close(int64_t clock, int bank) {
  const size_t b = static_cast<size_t>(bank);
  open_ &= ~(uint64_t{1} << bank);
  open_row_[b] = kClosed;
  Raise(ready_[kActivate][b], clock + timing_.trp);
  for (Queue& queue : queues_) {
    queue.hits[b] = List();
    queue.opened &= ~(uint64_t{1} << bank);
    SetCandidates(queue, bank);
  }
}

void DramChannel::Finish(int32_t request, int64_t clock) {
  Pending& pending = requests_[static_cast<size_t>(request)];
  if (--pending.bursts > 0) return;
  completions_.push_back({pending.id, clock});
  free_requests_.push_back(request);
}

void DramChannel::Trace(int64_t clock, DramCommand::Kind kind, int bank, int32_t row,
                        int32_t column) {
  if (trace_ != nullptr) trace_->push_back({clock, kind, bank, row, column});
}

}  // namespace polynao::simulator
