#include "simulator/dram/trace_checker.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace polynao::simulator {
namespace {

using Kind = DramCommand::Kind;

const char* NameOf(Kind kind) {
  constexpr const char* kNames[] = {"RD", "WR", "ACT", "PRE", "PREA", "REF"};
  return kNames[static_cast<size_t>(kind)];
}

class Checker {
 public:
  Checker(const DramTiming& timing, const std::vector<DramCommand>& trace, size_t limit)
      : t_(timing),
        trace_(trace),
        limit_(limit),
        row_(static_cast<size_t>(timing.bank_count()), -1),
        refreshes_(static_cast<size_t>(timing.ranks)) {
    reach_ = std::max(
        {t_.trc, t_.tras, t_.trp, t_.trcd, t_.tfaw, t_.trfc, t_.tccd_l, t_.trrd_l, t_.trtp,
         t_.cwl + t_.burst_clocks() + std::max(t_.twr, t_.twtr_l),
         std::max(t_.cl, t_.cwl) + t_.burst_clocks() + std::max(t_.turnaround, t_.rank_switch)});
  }

  std::vector<DramViolation> Check(int64_t end) {
    size_t oldest = 0;
    for (now_ = 0; now_ < trace_.size() && violations_.size() < limit_; ++now_) {
      const DramCommand& command = trace_[now_];
      if (now_ > 0 && command.clock <= trace_[now_ - 1].clock) {
        Report("bus",
               StrCat("in clock ", command.clock, ", after one in ", trace_[now_ - 1].clock));
      }
      while (trace_[oldest].clock < command.clock - reach_) ++oldest;
      int activates = 0;
      for (size_t i = now_; i-- > oldest;) {
        const DramCommand& before = trace_[i];
        CheckPair(before, command);
        if (before.kind == Kind::kActivate && command.kind == Kind::kActivate &&
            RankOf(before) == RankOf(command) && ++activates == 4) {
          Require("tfaw", before, command, t_.tfaw);
        }
      }
      CheckState(command);
    }
    if (t_.trefi > 0 && violations_.size() < limit_) CheckEnd(end);
    return std::move(violations_);
  }

 private:
  int64_t RankOf(const DramCommand& c) const { return c.bank / t_.banks_per_rank(); }
  int64_t GroupOf(const DramCommand& c) const { return c.bank / t_.banks; }

  void Report(const char* rule, const std::string& what) {
    const DramCommand& c = trace_[std::min(now_, trace_.size() - 1)];
    violations_.push_back(
        {rule, now_, StrCat(rule, ": ", NameOf(c.kind), " of bank ", c.bank, " ", what)});
  }
  void Require(const char* rule, const DramCommand& before, const DramCommand& command,
               int64_t clocks) {
    if (command.clock - before.clock >= clocks) return;
    Report(rule,
           StrCat("in clock ", command.clock, ", ", command.clock - before.clock, " clocks after ",
                  NameOf(before.kind), " of bank ", before.bank, ", not ", clocks));
  }

  void CheckPair(const DramCommand& a, const DramCommand& b) {
    if (IsColumn(a) && IsColumn(b)) CheckColumns(a, b);
    if (RankOf(a) != RankOf(b)) return;
    const bool same_group = GroupOf(a) == GroupOf(b);
    const bool a_is_rank = a.kind == Kind::kPrechargeAll || a.kind == Kind::kRefresh;
    const bool b_is_rank = b.kind == Kind::kPrechargeAll || b.kind == Kind::kRefresh;
    const bool same_bank = a.bank == b.bank || a_is_rank || b_is_rank;
    switch (b.kind) {
      case Kind::kActivate:
        if (a.kind == Kind::kActivate) {
          Require(same_group ? "trrd_l" : "trrd_s", a, b, same_group ? t_.trrd_l : t_.trrd_s);
        }
        [[fallthrough]];
      case Kind::kRefresh:
        if (!same_bank) return;
        if (IsPrecharge(a)) Require("trp", a, b, t_.trp);
        if (a.kind == Kind::kActivate) Require("trc", a, b, t_.trc);
        if (a.kind == Kind::kRefresh) Require("trfc", a, b, t_.trfc);
        return;
      case Kind::kPrecharge:
      case Kind::kPrechargeAll:
        if (!same_bank) return;
        if (a.kind == Kind::kActivate) Require("tras", a, b, t_.tras);
        if (a.kind == Kind::kRead) Require("trtp", a, b, t_.trtp);
        if (a.kind == Kind::kWrite) {
          Require("twr", a, b, t_.cwl + t_.burst_clocks() + t_.twr);
        }
        return;
      case Kind::kRead:
      case Kind::kWrite:
        if (a.kind == Kind::kActivate && same_bank) Require("trcd", a, b, t_.trcd);
        return;
    }
  }

  // Two commands of data: distances between the commands in a rank, and what is left of the data bus.
  void CheckColumns(const DramCommand& a, const DramCommand& b) {
    const bool same_rank = RankOf(a) == RankOf(b), same_group = GroupOf(a) == GroupOf(b);
    const int64_t burst = t_.burst_clocks();
    const auto data = [&](const DramCommand& c) {
      return c.clock + (c.kind == Kind::kRead ? t_.cl : t_.cwl);
    };
    const int64_t idle = data(b) - data(a) - burst;
    const auto gap = [&](const char* rule, int64_t clocks) {
      if (idle < clocks) {
        Report(rule, StrCat("in clock ", b.clock, ": its data come ", idle,
                            " clocks after those of clock ", a.clock, ", not ", clocks));
      }
    };
    if (idle < 0) gap("data bus", 0);
    if (!same_rank) gap("rank_switch", t_.rank_switch);
    if (a.kind == Kind::kRead && b.kind == Kind::kWrite) gap("turnaround", t_.turnaround);
    if (!same_rank) return;
    if (a.kind == b.kind) {
      Require(same_group ? "tccd_l" : "tccd_s", a, b, same_group ? t_.tccd_l : t_.tccd_s);
    } else if (a.kind == Kind::kWrite) {
      Require(same_group ? "twtr_l" : "twtr_s", a, b,
              t_.cwl + burst + (same_group ? t_.twtr_l : t_.twtr_s));
    }
  }

  void CheckState(const DramCommand& c) {
    const int64_t first = RankOf(c) * t_.banks_per_rank(), last = first + t_.banks_per_rank();
    int32_t& row = row_[static_cast<size_t>(c.bank)];
    const auto any_open = [&] {
      return std::any_of(row_.begin() + first, row_.begin() + last,
                         [](int32_t open) { return open >= 0; });
    };
    switch (c.kind) {
      case Kind::kActivate:
        if (row >= 0) Report("state", StrCat("in clock ", c.clock, ": row ", row, " is open"));
        row = c.row;
        return;
      case Kind::kRead:
      case Kind::kWrite:
        if (row != c.row) {
          Report("state", StrCat("in clock ", c.clock, ", row ", c.row, ": ", row, " is open"));
        }
        return;
      case Kind::kPrecharge:
        if (row < 0) Report("state", StrCat("in clock ", c.clock, ": it is closed"));
        row = -1;
        return;
      case Kind::kPrechargeAll:
        if (!any_open()) Report("state", StrCat("in clock ", c.clock, ": all are closed"));
        std::fill(row_.begin() + first, row_.begin() + last, -1);
        return;
      case Kind::kRefresh:
        if (any_open()) Report("state", StrCat("in clock ", c.clock, ": a row is open"));
        CheckRefresh(RankOf(c), c.clock);
        return;
    }
  }

  // The clock in which refresh `n` (from 0) of a rank is due, and how long it may take from then on.
  int64_t Due(int64_t rank, int64_t n) const {
    return t_.trefi * (rank + 1) / t_.ranks + n * t_.trefi;
  }
  int64_t Grace() const {
    return t_.ranks *
           (t_.trfc + t_.trp + t_.trc + t_.cwl + t_.burst_clocks() + t_.twr + t_.trtp + t_.tras);
  }
  void CheckRefresh(int64_t rank, int64_t clock) {
    const int64_t due = Due(rank, refreshes_[static_cast<size_t>(rank)]++);
    if (clock >= due && clock <= due + Grace()) return;
    Report("refresh", StrCat("in clock ", clock, ", due in ", due, " to ", due + Grace()));
  }
  void CheckEnd(int64_t end) {
    for (int64_t rank = 0; rank < t_.ranks; ++rank) {
      const int64_t due = Due(rank, refreshes_[static_cast<size_t>(rank)]);
      if (end <= due + Grace()) continue;
      Report("refresh", StrCat("is the last command: rank ", rank, " had a refresh due in ", due));
    }
  }

  static bool IsColumn(const DramCommand& c) {
    return c.kind == Kind::kRead || c.kind == Kind::kWrite;
  }
  static bool IsPrecharge(const DramCommand& c) {
    return c.kind == Kind::kPrecharge || c.kind == Kind::kPrechargeAll;
  }

  const DramTiming& t_;
  const std::vector<DramCommand>& trace_;
  const size_t limit_;
  int64_t reach_ = 0;  // clocks
  size_t now_ = 0;     // the command under test
  std::vector<int32_t> row_;
  std::vector<int64_t> refreshes_;  // by rank
  std::vector<DramViolation> violations_;
};

}  // namespace

std::vector<DramViolation> CheckDramTrace(const DramTiming& timing,
                                          const std::vector<DramCommand>& trace, int64_t end,
                                          size_t limit) {
  return Checker(timing, trace, limit).Check(end);
}

}  // namespace polynao::simulator
