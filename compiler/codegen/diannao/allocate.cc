#include "compiler/codegen/diannao/allocate.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/text.h"

namespace polynao::diannao {
namespace {

// The limit of rounds in which values are computed again. Each round shortens many ranges; few
// programs need more than five.
constexpr int kMaxRounds = 64;
// The number of instructions that computing one value again may take.
constexpr int kMaxClone = 16;

// One round: finds the ranges of all registers and shortens some where too many overlap.
class Round {
 public:
  Round(Code& code, int registers)
      : code_(code),
        registers_(registers),
        flow_(code),
        constants_(FindConstants(code)),
        places_(code, flow_, constants_),
        begin_(code.home.size(), -1),
        end_(code.home.size(), -1),
        uses_(code.home.size()),
        insert_(places_.count()) {
    for (Block& block : code_.blocks) {
      for (Op& op : block.ops) ops_.push_back(&op);
    }
    FindRanges();
  }

  // If the ranges fit, writes the registers into the code and returns true. Else computes some
  // values again and returns false; an error if no value can be computed again.
  absl::StatusOr<bool> Run() {
    std::vector<int> assigned(code_.home.size(), -1);
    std::set<std::pair<int, int>> live;  // end, register
    std::vector<int> free;
    for (int r = registers_ - 1; r >= 0; --r) free.push_back(r);
    bool fits = true;
    for (int i = 0; i < places_.count(); ++i) {
      // A register that is read here for the last time is free for the result.
      while (!live.empty() && live.begin()->first <= i) {
        if (fits) free.push_back(assigned[live.begin()->second]);
        live.erase(live.begin());
      }
      const int64_t written = WrittenRegister(*ops_[i]);
      if (written < 0 || begin_[written] != i) continue;
      live.emplace(std::max(end_[written], i + 1), written);
      if (static_cast<int>(live.size()) <= registers_) {
        if (fits) {
          assigned[written] = free.back();
          free.pop_back();
        }
        continue;
      }
      fits = false;
      std::optional<Victim> victim = FindVictim(live, i, /*is_near=*/false);
      if (!victim) victim = FindVictim(live, i, /*is_near=*/true);
      if (!victim) {
        return absl::ResourceExhaustedError(StrCat("function '", code_.name, "': more than ",
                                                   registers_, " values are live at once"));
      }
      live.erase({end_[victim->reg], victim->reg});
      ComputeAgain(*victim);
    }
    if (!fits) {
      Insert();
      return false;
    }
    for (Op* op : ops_) {
      for (size_t f = 0; f < op->fields.size(); ++f) {
        if (op->instruction->operands[f].kind != isa::OperandKind::kImmediate) {
          op->fields[f] = assigned[op->fields[f]];
        }
      }
    }
    for (Block& block : code_.blocks) {
      std::erase_if(block.ops, [mov = code_.set->Find("mov")](const Op& op) {
        return op.instruction == mov && op.fields[0] == op.fields[1];
      });
    }
    return true;
  }

 private:
  void FindRanges() {
    for (int i = 0; i < places_.count(); ++i) {
      ForEachRead(*ops_[i], [&](int64_t reg) {
        if (uses_[reg].empty() || uses_[reg].back() != i) uses_[reg].push_back(i);
      });
      const int64_t written = WrittenRegister(*ops_[i]);
      if (written >= 0 && begin_[written] < 0) begin_[written] = i;
    }
    for (size_t reg = 0; reg < uses_.size(); ++reg) {
      for (int use : uses_[reg]) {
        POLYNAO_CHECK(begin_[reg] >= 0 && begin_[reg] < use)
            << "v" << reg << " is read at " << use << " and written at " << begin_[reg];
        const int loop = LoopOver(use, begin_[reg]);
        end_[reg] = std::max(end_[reg], loop < 0 ? use : LastOf(loop));
      }
    }
  }

  int LastOf(int loop) const { return places_.End(flow_.loops()[loop].last) - 1; }
  int FirstOf(int loop) const { return places_.Begin(flow_.loops()[loop].head); }

  // The outermost loop around `inside` that does not contain `outside`, or -1.
  int LoopOver(int inside, int outside) const {
    int outermost = -1;
    for (int l = flow_.loop(places_.block(inside)); l >= 0; l = flow_.loops()[l].parent) {
      if (FirstOf(l) <= outside && outside <= LastOf(l)) break;
      outermost = l;
    }
    return outermost;
  }

  // A value to compute again.
  struct Victim {
    int reg;
    int full;   // where too many are live
    int until;  // another one ends here: what comes back behind it has made room
    // It comes back right before each use, wherever that is. In a long block of values that are all used before any of
    // them ends there is no better place: where it comes back, another one goes whose next use is further off.
    bool is_near;
  };

  // The place for a copy for `use` to read, or -1 if no place would free a register.
  int PlaceOf(int use, const Victim& victim) const {
    if (victim.is_near) return use;
    if (use > victim.until) return places_.Best(use, victim.until + 1);
    if (use > victim.full) {
      // A copy inside a loop is not live in the whole loop. That helps if `full` is before the
      // loop, or in the same loop while the instruction that writes the register is not.
      const int loop = LoopOver(use, victim.full);
      if (loop >= 0) return places_.Best(use, FirstOf(loop));
      return LoopOver(use, begin_[victim.reg]) < 0 ? -1 : places_.Best(use, victim.full + 1);
    }
    // The next iteration reads it, so its range begins with the innermost loop around both.
    int loop = flow_.loop(places_.block(use));
    while (LastOf(loop) < victim.full) loop = flow_.loops()[loop].parent;
    return places_.Best(use, FirstOf(loop));
  }

  const Op* Writer(int64_t reg) const { return code_.IsValue(reg) ? ops_[begin_[reg]] : nullptr; }

  // The number of instructions that compute `reg` at `place` from registers live there; more than
  // kMaxClone if that is impossible.
  int CloneCost(int64_t reg, int place, int limit = kMaxClone) const {
    const Op* op = Writer(reg);
    if (limit <= 0 || op == nullptr || !Floats(code_, *op, constants_)) return kMaxClone + 1;
    int cost = 1;
    ForEachRead(*op, [&](int64_t operand) {
      if (cost <= limit && !IsLiveAt(operand, place)) {
        cost += CloneCost(operand, place, limit - cost);
      }
    });
    return cost;
  }

  bool IsLiveAt(int64_t reg, int place) const { return begin_[reg] < place && end_[reg] >= place; }

  // The uses that keep a value live at `full`: the uses behind `full`, and the uses that the next
  // iteration of a loop around `full` reaches.
  std::vector<int> UsesBeyond(int reg, int full) const {
    const int loop = LoopOver(full, begin_[reg]);
    std::vector<int> uses;
    for (int use : uses_[reg]) {
      if (use > full || (loop >= 0 && use >= FirstOf(loop))) uses.push_back(use);
    }
    return uses;
  }

  // The value live at `full` that is cheapest to compute again.
  std::optional<Victim> FindVictim(const std::set<std::pair<int, int>>& live, int full,
                                   bool is_near) const {
    const int first_end = live.begin()->first;
    const int second_end = std::next(live.begin())->first;
    std::optional<Victim> best;
    double best_cost = 0;
    for (const auto& [end, reg] : live) {
      if (!code_.IsValue(reg)) continue;
      const std::vector<int> uses = UsesBeyond(reg, full);
      if (uses.empty()) continue;
      const Victim victim{reg, full, end == first_end ? second_end : first_end, is_near};
      // The next use: behind `full`, or in the next iteration.
      const auto behind = std::upper_bound(uses.begin(), uses.end(), full);
      const bool wraps = behind == uses.end();
      const int place = PlaceOf(wraps ? uses.front() : *behind, victim);
      if (place < 0) continue;
      const int count = CloneCost(reg, place);
      if (count > kMaxClone) continue;
      double cost = count * (places_.IsHidden(place) ? 1 : 4);
      for (int d = flow_.Depth(places_.block(place)); d > 0; --d) cost *= 10;
      cost /= wraps ? places_.count() : place - full;
      if (!best || cost < best_cost) {
        best = victim;
        best_cost = cost;
      }
    }
    return best;
  }

  void ComputeAgain(const Victim& victim) {
    const int full = victim.full;
    // A copy before `full` must not serve a use behind it: it would be live at `full` again.
    std::vector<std::pair<int, int>> copies;  // place, register
    bool is_behind = false;
    for (int use : UsesBeyond(victim.reg, full)) {
      if (use > full && !std::exchange(is_behind, true)) copies.clear();
      int copy = -1;
      for (const auto& [place, other] : copies) {
        if (place <= use && flow_.Dominates(places_.block(place), places_.block(use))) copy = other;
      }
      if (copy < 0) {
        const int place = PlaceOf(use, victim);
        if (place < 0 || CloneCost(victim.reg, place) > kMaxClone) continue;
        copy = Clone(victim.reg, place);
        copies.emplace_back(place, copy);
      }
      renames_.push_back({use, victim.reg, copy});
    }
  }

  int Clone(int64_t reg, int place) {
    const auto known = clones_.find({place, reg});
    if (known != clones_.end()) return known->second;
    Op op = *Writer(reg);
    ForEachRead(op, [&](int64_t& operand) {
      if (!IsLiveAt(operand, place)) operand = Clone(operand, place);
    });
    const int clone = code_.NewRegister();
    for (size_t f = 0; f < op.fields.size(); ++f) {
      if (IsWritten(op.instruction->operands[f])) op.fields[f] = clone;
    }
    insert_[place].push_back(std::move(op));
    clones_[{place, reg}] = clone;
    return clone;
  }

  void Insert() {
    for (const Rename& rename : renames_) {
      ForEachRead(*ops_[rename.use], [&](int64_t& read) {
        if (read == rename.from) read = rename.to;
      });
    }
    for (size_t b = 0; b < code_.blocks.size(); ++b) {
      std::vector<Op> ops;
      for (int place = places_.Begin(b); place < places_.End(b); ++place) {
        std::move(insert_[place].begin(), insert_[place].end(), std::back_inserter(ops));
        ops.push_back(std::move(*ops_[place]));
      }
      code_.blocks[b].ops = std::move(ops);
    }
  }

  Code& code_;
  const int registers_;
  const Flow flow_;
  const Constants constants_;
  const Places places_;
  std::vector<Op*> ops_;
  // Of each register: the first instruction that writes it, the last instruction before which it is
  // needed, and all instructions that read it.
  std::vector<int> begin_, end_;
  std::vector<std::vector<int>> uses_;
  // The changes made at the end of the round: new instructions before others, and new operands.
  std::vector<std::vector<Op>> insert_;
  struct Rename {
    int use;
    int from, to;
  };
  std::vector<Rename> renames_;
  absl::flat_hash_map<std::pair<int, int64_t>, int> clones_;
};

}  // namespace

absl::Status AllocateRegisters(Code& code, int registers) {
  for (int round = 0; round < kMaxRounds; ++round) {
    absl::StatusOr<bool> done = Round(code, registers).Run();
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    RemoveDeadCode(code);
  }
  return absl::ResourceExhaustedError(
      StrCat("function '", code.name, "': more than ", registers, " values are live at once"));
}

}  // namespace polynao::diannao
