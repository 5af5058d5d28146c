#include "simulator/dram/naive_channel.h"

#include <algorithm>

namespace polynao::simulator {

NaiveChannel::NaiveChannel(const DramTiming& timing)
    : t_(timing),
      map_(AddressMap::Make(timing, "NaiveChannel").value()),
      banks_(static_cast<size_t>(timing.bank_count())),
      activates_(static_cast<size_t>(timing.ranks)),
      due_(static_cast<size_t>(timing.ranks)),
      bank_counters_(static_cast<size_t>(timing.bank_count())) {
  for (int64_t r = 0; r < t_.ranks; ++r) due_[r] = t_.trefi * (r + 1) / t_.ranks;
}

void NaiveChannel::Run(int64_t until) {
  for (; clock_ < until; ++clock_) Step(clock_);
}

void NaiveChannel::Step(int64_t t) {
  Enter(t);
  const int64_t reads = static_cast<int64_t>(reads_.size());
  const int64_t writes = static_cast<int64_t>(writes_.size());
  if (!writing_ && (writes >= t_.write_high || (reads == 0 && writes > 0))) {
    writing_ = true;
    ++counters_.drains;
  } else if (writing_ && (writes == 0 || (writes <= t_.write_low && reads > 0))) {
    writing_ = false;
  }
  if (StepRefresh(t)) return;
  std::vector<Burst>& queue = writing_ ? writes_ : reads_;
  if (!StepColumn(t, queue)) StepRow(t, queue);
}

void NaiveChannel::Enter(int64_t t) {
  for (; jobs_seen_ < inbox_.size(); ++jobs_seen_) {
    Job& job = inbox_[jobs_seen_];
    const DramRequest& request = job.request;
    if (request.clock > t) return;
    const int64_t first = request.address / t_.burst_bytes();
    const int64_t last = (request.address + request.bytes - 1) / t_.burst_bytes();
    while (first + job.entered <= last) {
      const int64_t number = first + job.entered;
      const Burst burst{number, map_.Map(number * t_.burst_bytes()), &job, false, false};
      if (request.is_write) {
        if (static_cast<int64_t>(writes_.size()) == t_.write_queue) return;
        if (writes_.empty()) writes_overtaken_ = 0;
        writes_.push_back(burst);
        ++job.entered;
        if (t_.posted) FinishBurst(job, t + t_.cwl + t_.burst_clocks());
        continue;
      }
      if (std::any_of(writes_.begin(), writes_.end(),
                      [&](const Burst& write) { return write.number == number; })) {
        ++counters_.forwarded;
        ++job.entered;
        FinishBurst(job, t + t_.cl + t_.burst_clocks());
        continue;
      }
      if (static_cast<int64_t>(reads_.size()) == t_.read_queue) return;
      if (reads_.empty()) reads_overtaken_ = 0;
      reads_.push_back(burst);
      ++job.entered;
    }
  }
}

void NaiveChannel::FinishBurst(Job& job, int64_t end) {
  job.end = std::max(job.end, end);
  ++job.finished;
  const DramRequest& request = job.request;
  const int64_t bursts = (request.address + request.bytes - 1) / t_.burst_bytes() -
                         request.address / t_.burst_bytes() + 1;
  if (job.finished == bursts) completions_.push_back({request.id, job.end});
}

bool NaiveChannel::IsDue(int64_t bank, int64_t t) const {
  return t_.trefi > 0 && t >= due_[RankOf(bank)];
}

bool NaiveChannel::StepRefresh(int64_t t) {
  for (int64_t rank = 0; rank < t_.ranks; ++rank) {
    const int64_t first = rank * t_.bank_groups * t_.banks;
    const int64_t last = first + t_.bank_groups * t_.banks;
    if (!IsDue(first, t)) continue;
    bool any_open = false, may_precharge = true, may_activate = true;
    for (int64_t b = first; b < last; ++b) {
      const Bank& bank = banks_[b];
      if (bank.row >= 0) {
        any_open = true;
        may_precharge &= IsAllowed(Kind::kPrecharge, b, t);
      }
      may_activate &= t >= bank.pre + t_.trp && t >= bank.act + t_.trc && t >= bank.ref + t_.trfc;
    }
    if (any_open && may_precharge) {
      for (int64_t b = first; b < last; ++b) {
        if (banks_[b].row < 0) continue;
        banks_[b].row = -1;
        banks_[b].pre = t;
        ++bank_counters_[b].precharge_alls;
      }
      ++counters_.precharge_alls;
      Note(t, Kind::kPrechargeAll, first, -1, 0);
      return true;
    }
    if (!any_open && may_activate) {
      for (int64_t b = first; b < last; ++b) {
        banks_[b].ref = t;
        ++bank_counters_[b].refreshes;
      }
      due_[rank] += t_.trefi;
      ++counters_.refreshes;
      Note(t, Kind::kRefresh, first, -1, 0);
      return true;
    }
  }
  return false;
}

bool NaiveChannel::IsStarving(const std::vector<Burst>& queue) const {
  return !queue.empty() &&
         (&queue == &writes_ ? writes_overtaken_ : reads_overtaken_) >= t_.starvation;
}

bool NaiveChannel::StepColumn(int64_t t, std::vector<Burst>& queue) {
  const bool starving = IsStarving(queue);
  for (size_t i = 0; i < queue.size(); ++i) {
    const Burst burst = queue[i];
    const int64_t b = burst.place.bank;
    Bank& bank = banks_[b];
    if (bank.row != burst.place.row) continue;
    if (starving && i > 0) {
      const Burst& oldest = queue[0];
      // It is read or written first once its row is open; before, no other burst of its bank is.
      if (banks_[oldest.place.bank].row == oldest.place.row || oldest.place.bank == b) continue;
    }
    if (IsDue(b, t) || !IsAllowed(writing_ ? Kind::kWrite : Kind::kRead, b, t)) continue;
    (writing_ ? bank.wr : bank.rd) = t;
    DramBankCounters& counters = bank_counters_[b];
    ++(writing_ ? counters.writes : counters.reads);
    ++(burst.was_precharged  ? counters.conflicts
       : burst.was_activated ? counters.misses
                             : counters.hits);
    ++(writing_ ? counters_.writes : counters_.reads);
    ++(burst.was_precharged  ? counters_.conflicts
       : burst.was_activated ? counters_.misses
                             : counters_.hits);
    Note(t, writing_ ? Kind::kWrite : Kind::kRead, b, burst.place.row, burst.place.column);
    int64_t& overtaken = writing_ ? writes_overtaken_ : reads_overtaken_;
    overtaken = i == 0 ? 0 : overtaken + 1;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
    if (!writing_) {
      FinishBurst(*burst.job, t + t_.cl + t_.burst_clocks());
    } else if (!t_.posted) {
      FinishBurst(*burst.job, t + t_.cwl + t_.burst_clocks());
    }
    return true;
  }
  return false;
}

void NaiveChannel::StepRow(int64_t t, std::vector<Burst>& queue) {
  if (queue.empty()) return;
  const bool starving = IsStarving(queue);
  std::vector<bool> seen(banks_.size(), false);
  for (size_t i = 0; i < queue.size(); ++i) {
    Burst& burst = queue[i];
    const int64_t b = burst.place.bank;
    Bank& bank = banks_[b];
    if (seen[b]) continue;  // an older burst of the bank decides
    seen[b] = true;
    if (IsDue(b, t)) continue;
    if (bank.row < 0) {
      if (!IsAllowed(Kind::kActivate, b, t)) continue;
      bank.row = burst.place.row;
      bank.act = t;
      activates_[RankOf(b)].push_back(t);
      burst.was_activated = true;
      ++counters_.activates;
      ++bank_counters_[b].activates;
      Note(t, Kind::kActivate, b, bank.row, 0);
      return;
    }
    const bool is_wanted = std::any_of(queue.begin(), queue.end(), [&](const Burst& other) {
      return other.place.bank == b && other.place.row == bank.row;
    });
    const bool closes = starving && i == 0 ? bank.row != burst.place.row : !is_wanted;
    if (!closes || !IsAllowed(Kind::kPrecharge, b, t)) continue;
    bank.row = -1;
    bank.pre = t;
    burst.was_precharged = true;
    ++counters_.precharges;
    ++bank_counters_[b].precharges;
    Note(t, Kind::kPrecharge, b, -1, 0);
    return;
  }
}

bool NaiveChannel::IsAllowed(Kind kind, int64_t b, int64_t t) const {
  const Bank& bank = banks_[b];
  const int64_t burst = t_.burst_clocks();
  if (kind == Kind::kPrecharge) {
    return t >= bank.act + t_.tras && t >= bank.rd + t_.trtp &&
           t >= bank.wr + t_.cwl + burst + t_.twr;
  }
  if (kind == Kind::kActivate) {
    if (t < bank.pre + t_.trp || t < bank.act + t_.trc || t < bank.ref + t_.trfc) return false;
    const std::vector<int64_t>& activates = activates_[RankOf(b)];
    if (activates.size() >= 4 && t < activates[activates.size() - 4] + t_.tfaw) return false;
  } else if (t < bank.act + t_.trcd) {
    return false;
  }
  for (int64_t o = 0; o < static_cast<int64_t>(banks_.size()); ++o) {
    const Bank& other = banks_[o];
    const bool same_rank = RankOf(o) == RankOf(b);
    const bool same_group = GroupOf(o) == GroupOf(b);
    if (kind == Kind::kActivate) {
      if (same_rank && t < other.act + (same_group ? t_.trrd_l : t_.trrd_s)) return false;
      continue;
    }
    const bool is_read = kind == Kind::kRead;
    const int64_t same_direction = is_read ? other.rd : other.wr;
    if (same_rank && t < same_direction + (same_group ? t_.tccd_l : t_.tccd_s)) return false;
    const int64_t data = t + (is_read ? t_.cl : t_.cwl);
    const int64_t read_end = other.rd + t_.cl + burst, write_end = other.wr + t_.cwl + burst;
    if (!same_rank && data < std::max(read_end, write_end) + t_.rank_switch) return false;
    if (is_read) {
      if (same_rank && t < write_end + (same_group ? t_.twtr_l : t_.twtr_s)) return false;
    } else if (data < read_end + t_.turnaround) {
      return false;
    }
  }
  return true;
}

void NaiveChannel::Note(int64_t t, Kind kind, int64_t bank, int64_t row, int64_t column) {
  trace_.push_back({t, kind, static_cast<int32_t>(bank), static_cast<int32_t>(row),
                    static_cast<int32_t>(column)});
}

}  // namespace polynao::simulator
