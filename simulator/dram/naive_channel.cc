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
  const bool is_late =
      t_.posted == 0 && writes > 0 && writes_passed_ >= std::max<int64_t>(1, 4 * t_.starvation);
  const bool was_late =
      std::any_of(writes_.begin(), writes_.end(), [](const Burst& b) { return b.is_late; });
  if (!writing_ && (writes >= t_.write_high || (reads == 0 && writes > 0) || is_late)) {
    writing_ = true;
    ++counters_.drains;
    for (Burst& burst : writes_) burst.is_late = is_late;
  } else if (writing_ && (writes == 0 || (writes <= t_.write_low && reads > 0 && !was_late))) {
    writing_ = false;
    writes_passed_ = 0;
  }
  if (!StepRefresh(t)) StepCommand(t);
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
      const auto is_same = [&](const Burst& other) { return other.number == number; };
      const auto write = std::find_if(writes_.begin(), writes_.end(), is_same);
      if (write != writes_.end()) {
        ++job.entered;
        if (!request.is_write) {
          ++counters_.forwarded;
          FinishBurst(job, t + t_.cl + t_.burst_clocks());
        } else {
          ++counters_.merged;
          if (t_.posted) {
            FinishBurst(job, t + t_.cwl + t_.burst_clocks());
          } else {
            write->merged.push_back(&job);
          }
        }
        continue;
      }
      if (request.is_write && std::any_of(reads_.begin(), reads_.end(), is_same)) return;
      std::vector<Burst>& queue = request.is_write ? writes_ : reads_;
      if (static_cast<int64_t>(queue.size()) ==
          (request.is_write ? t_.write_queue : t_.read_queue)) {
        return;
      }
      if (queue.empty()) (request.is_write ? writes_overtaken_ : reads_overtaken_) = 0;
      if (request.is_write && queue.empty()) writes_passed_ = 0;
      queue.push_back({.number = number,
                       .place = map_.Map(number * t_.burst_bytes()),
                       .job = &job,
                       .age = entered_++,
                       .was_activated = false,
                       .was_precharged = false,
                       .is_opened = false,
                       .is_late = false,
                       .merged = {}});
      ++job.entered;
      if (request.is_write && t_.posted) FinishBurst(job, t + t_.cwl + t_.burst_clocks());
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
        CloseBank(t, b);
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

bool NaiveChannel::HasOpened(const std::vector<Burst>& queue) const {
  return std::any_of(queue.begin(), queue.end(),
                     [](const Burst& burst) { return burst.is_opened; });
}

std::vector<NaiveChannel::Offer> NaiveChannel::ColumnOffers(std::vector<Burst>& queue) {
  std::vector<Offer> offers;
  for (size_t i = 0; i < queue.size(); ++i) {
    if (IsInOpenRow(queue[i])) {
      offers.push_back({&queue, i, &queue == &writes_ ? Kind::kWrite : Kind::kRead});
    }
  }
  return offers;
}

std::vector<NaiveChannel::Offer> NaiveChannel::RowOffers(std::vector<Burst>& queue,
                                                         bool may_starve) {
  std::vector<Offer> offers;
  std::vector<bool> seen(banks_.size(), false);
  for (size_t i = 0; i < queue.size(); ++i) {
    const int64_t b = queue[i].place.bank;
    if (seen[b]) continue;  // an older burst of the bank decides
    seen[b] = true;
    if (IsInOpenRow(queue[i])) continue;
    const bool is_closed = banks_[b].row < 0;
    const bool is_wanted = std::any_of(queue.begin(), queue.end(), [&](const Burst& other) {
      return other.place.bank == b && IsInOpenRow(other);
    });
    if (t_.keep_rows != 0 && is_wanted && !(may_starve && i == 0 && IsStarving(queue))) continue;
    offers.push_back({&queue, i, is_closed ? Kind::kActivate : Kind::kPrecharge});
  }
  return offers;
}

void NaiveChannel::StepCommand(int64_t t) {
  std::vector<Burst>& queue = writing_ ? writes_ : reads_;
  std::vector<Burst>& other = writing_ ? reads_ : writes_;
  std::vector<Offer> offers;
  const auto bank_of = [](const Offer& offer) { return (*offer.queue)[offer.index].place.bank; };
  if (HasOpened(other)) {
    offers = ColumnOffers(other);
    std::vector<bool> is_used(banks_.size(), false);
    for (const Offer& offer : offers) is_used[bank_of(offer)] = true;
    for (const Offer& offer : RowOffers(queue, false)) {
      if (!is_used[bank_of(offer)]) offers.push_back(offer);
    }
  } else {
    for (const Offer& offer : ColumnOffers(queue)) {
      if (IsStarving(queue) && offer.index > 0) {
        // The oldest is read or written first once its row is open; before, no other burst of its bank is.
        if (IsInOpenRow(queue[0]) || queue[0].place.bank == bank_of(offer)) continue;
      }
      offers.push_back(offer);
    }
    for (const Offer& offer : RowOffers(queue, true)) offers.push_back(offer);
  }
  const Offer* best = nullptr;
  const auto age_of = [](const Offer& offer) { return (*offer.queue)[offer.index].age; };
  for (const Offer& offer : offers) {
    if (IsDue(bank_of(offer), t) || !IsAllowed(offer.kind, bank_of(offer), t)) continue;
    if (best == nullptr || age_of(offer) < age_of(*best)) best = &offer;
  }
  if (best == nullptr) return;
  Burst& burst = (*best->queue)[best->index];
  if (best->kind == Kind::kActivate) {
    SendActivate(t, burst);
  } else if (best->kind == Kind::kPrecharge) {
    SendPrecharge(t, burst);
  } else {
    SendColumn(t, *best->queue, best->index);
  }
}

void NaiveChannel::SendColumn(int64_t t, std::vector<Burst>& queue, size_t index) {
  const Burst burst = queue[index];
  const bool is_write = &queue == &writes_;
  const int64_t b = burst.place.bank;
  (is_write ? banks_[b].wr : banks_[b].rd) = t;
  DramBankCounters& counters = bank_counters_[b];
  ++(is_write ? counters.writes : counters.reads);
  ++(burst.was_precharged  ? counters.conflicts
     : burst.was_activated ? counters.misses
                           : counters.hits);
  ++(is_write ? counters_.writes : counters_.reads);
  ++(burst.was_precharged  ? counters_.conflicts
     : burst.was_activated ? counters_.misses
                           : counters_.hits);
  Note(t, is_write ? Kind::kWrite : Kind::kRead, b, burst.place.row, burst.place.column);
  int64_t& overtaken = is_write ? writes_overtaken_ : reads_overtaken_;
  overtaken = index == 0 ? 0 : overtaken + 1;
  writes_passed_ = is_write && index == 0 ? 0 : writes_passed_ + (is_write ? 0 : 1);
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
  if (!is_write) {
    FinishBurst(*burst.job, t + t_.cl + t_.burst_clocks());
    return;
  }
  const int64_t end = t + t_.cwl + t_.burst_clocks();
  if (!t_.posted) FinishBurst(*burst.job, end);
  for (Job* job : burst.merged) FinishBurst(*job, end);
}

void NaiveChannel::SendActivate(int64_t t, Burst& burst) {
  const int64_t b = burst.place.bank;
  banks_[b].row = burst.place.row;
  banks_[b].act = t;
  activates_[RankOf(b)].push_back(t);
  burst.was_activated = burst.is_opened = true;
  ++counters_.activates;
  ++bank_counters_[b].activates;
  Note(t, Kind::kActivate, b, burst.place.row, 0);
}

void NaiveChannel::SendPrecharge(int64_t t, Burst& burst) {
  const int64_t b = burst.place.bank;
  CloseBank(t, b);
  burst.was_precharged = true;
  ++counters_.precharges;
  ++bank_counters_[b].precharges;
  Note(t, Kind::kPrecharge, b, -1, 0);
}

void NaiveChannel::CloseBank(int64_t t, int64_t b) {
  banks_[b].row = -1;
  banks_[b].pre = t;
  for (std::vector<Burst>* queue : {&reads_, &writes_}) {
    for (Burst& burst : *queue) {
      if (burst.place.bank == b) burst.is_opened = false;
    }
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
