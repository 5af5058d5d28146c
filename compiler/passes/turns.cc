#include "compiler/passes/turns.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using Buffers = absl::flat_hash_set<Buffer>;

// A statement between allocations, and what it accesses.
struct Item {
  Stmt stmt;
  AccessedBuffers accessed;
};

// One loop around loops over cores, or a statement that is a cluster's only turn.
class Turns {
 public:
  Turns(Stmt loop, const Target& target) : loop_(loop), c_(loop.context()), target_(target) {}

  Stmt Arranged() {
    const Stmt body = is_loop() ? loop_.body() : loop_;
    if (!FindCoreLoops(body) || cores_.empty()) return loop_;
    const AccessedBuffers all = AccessedBy(body, target_);
    if (!all.is_known) return loop_;
    written_ = all.writes;
    std::vector<Stmt> before;
    Buffers kept;
    for (const Stmt& cores : cores_) {
      FindAllocations(cores.body(), {});
      items_ = Items(cores.body());
      std::vector<bool> goes = Invariant();
      if (!is_loop()) {
        // Nothing is spared if it would not have waited for the load.
        if (!ReadsSmem(goes)) return loop_;
        FillsFirst(goes);
      }
      if (const Stmt hoisted = Take(cores, goes, kept)) before.push_back(hoisted);
      if (!is_loop()) continue;
      Fetch fetch;
      fetch.stmt = Take(cores, Fetches(), fetch.buffers);
      if (fetch.stmt) fetches_[cores] = fetch;
    }
    if (gone_.empty()) return loop_;
    before.push_back(is_loop() ? ir::MapChildren(loop_, [this](Stmt s) { return Rest(s); })
                               : Rest(loop_));
    return Around(before, kept);
  }

 private:
  // Memory of a core.
  struct Allocation {
    Stmt pragma;  // null, or that around it, which allows several copies
    Buffer buffer;
  };
  // What stands in front of a loop over cores, and what it fills.
  struct Fetch {
    Stmt stmt;
    Buffers buffers;
  };

  bool is_loop() const { return loop_.Is(StmtKind::kFor); }
  bool ReadsSmem(const std::vector<bool>& goes) const {
    for (size_t i = 0; i < items_.size(); ++i) {
      const Buffers& reads = items_[i].accessed.reads;
      const auto is_smem = [](Buffer b) { return b->scope == isa::kSmem; };
      if (goes[i] && std::any_of(reads.begin(), reads.end(), is_smem)) return true;
    }
    return false;
  }

  // Returns false if something stands around a loop over cores but allocations.
  bool FindCoreLoops(Stmt s) {
    if (IsCoreLoop(s)) {
      cores_.push_back(s);
      return true;
    }
    if (s.Is(StmtKind::kAllocate)) of_turn_.insert(s.buffer());
    if (!s.Is(StmtKind::kSeq) && !IsAllocation(s)) return !ir::AnyStmt(s, IsCoreLoop);
    const auto& children = s.children();
    return std::all_of(children.begin(), children.end(),
                       [this](Stmt child) { return FindCoreLoops(child); });
  }

  void FindAllocations(Stmt s, Stmt pragma) {
    if (!s.Is(StmtKind::kSeq) && !IsAllocation(s)) return;
    if (s.Is(StmtKind::kAllocate) && IsOfCore(s.buffer())) {
      allocations_.push_back({pragma, s.buffer()});
      if (!pragma) kept_once_.insert(s.buffer());
      if (pragma && pragma.name() == pragma::kDoubleBuffer) kept_twice_.insert(s.buffer());
    }
    for (Stmt child : s.children()) {
      FindAllocations(child, s.Is(StmtKind::kPragma) ? s : Stmt());
    }
  }

  std::vector<Item> Items(Stmt s) const {
    if (!s.Is(StmtKind::kSeq) && !IsAllocation(s)) return {ItemOf(s)};
    std::vector<Item> items;
    for (Stmt child : s.children()) {
      for (Item& item : Items(child)) items.push_back(std::move(item));
    }
    return items;
  }

  // What a statement allocates itself goes with it.
  Item ItemOf(Stmt root) const {
    Item item = {root, AccessedBy(root, target_)};
    ir::ForEachStmt(root, [&](Stmt s) {
      if (!s.Is(StmtKind::kAllocate)) return true;
      item.accessed.reads.erase(s.buffer());
      item.accessed.writes.erase(s.buffer());
      return true;
    });
    return item;
  }

  // The largest set of items that hold(item) and write nothing but `buffers`, of which no other item is a writer, and,
  // if `alone`, read nothing that others write in a turn.
  template <typename Holds>
  std::vector<bool> Largest(const Buffers& buffers, bool alone, const Holds& holds) const {
    std::vector<bool> goes;
    for (const Item& item : items_) {
      goes.push_back(!item.accessed.writes.empty() && !gone_.contains(item.stmt) && holds(item) &&
                     std::all_of(item.accessed.writes.begin(), item.accessed.writes.end(),
                                 [&](Buffer b) { return buffers.contains(b); }));
    }
    for (bool changed = true; changed;) {
      changed = false;
      Buffers by_others;
      for (size_t i = 0; i < items_.size(); ++i) {
        if (!goes[i])
          by_others.insert(items_[i].accessed.writes.begin(), items_[i].accessed.writes.end());
      }
      for (size_t i = 0; i < items_.size(); ++i) {
        if (!goes[i]) continue;
        goes[i] = std::none_of(items_[i].accessed.writes.begin(), items_[i].accessed.writes.end(),
                               [&](Buffer b) { return by_others.contains(b); }) &&
                  (!alone || std::none_of(items_[i].accessed.reads.begin(),
                                          items_[i].accessed.reads.end(), [&](Buffer b) {
                                            return by_others.contains(b) ||
                                                   (!buffers.contains(b) && written_.contains(b));
                                          }));
        changed = changed || !goes[i];
      }
    }
    return goes;
  }
  std::vector<bool> Invariant() const {
    return Largest(kept_once_, true, [this](const Item& item) {
      return !is_loop() || !ir::UsesVar(item.stmt, loop_.var());
    });
  }
  // Adds what fills memory before anything else accesses that, and puts it in front of all others: it waits for
  // nothing.
  void FillsFirst(std::vector<bool>& goes) {
    Buffers accessed;
    std::vector<Item> fills, others;
    std::vector<bool> others_go;
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto& [reads, writes, allocates, is_known] = items_[i].accessed;
      const bool fills_first = reads.empty() && !writes.empty() &&
                               std::all_of(writes.begin(), writes.end(), [&](Buffer b) {
                                 return kept_once_.contains(b) && !accessed.contains(b);
                               });
      accessed.insert(reads.begin(), reads.end());
      accessed.insert(writes.begin(), writes.end());
      (fills_first ? fills : others).push_back(items_[i]);
      if (!fills_first) others_go.push_back(goes[i]);
    }
    goes.assign(fills.size(), true);
    goes.insert(goes.end(), others_go.begin(), others_go.end());
    fills.insert(fills.end(), others.begin(), others.end());
    items_ = std::move(fills);
  }
  // A store to the turn's SMEM may stand before a fetch. Margins of what is fetched are filled with it.
  std::vector<bool> Fetches() const {
    Buffers stored, copied;
    for (const Item& item : items_) {
      stored.insert(item.accessed.writes.begin(), item.accessed.writes.end());
      if (item.accessed.reads.empty()) continue;
      copied.insert(item.accessed.writes.begin(), item.accessed.writes.end());
    }
    return Largest(kept_twice_, false, [&](const Item& item) {
      const auto is_copied = [&](Buffer b) { return copied.contains(b); };
      return std::all_of(item.accessed.writes.begin(), item.accessed.writes.end(), is_copied) &&
             std::all_of(item.accessed.reads.begin(), item.accessed.reads.end(), [&](Buffer b) {
               return b->scope == isa::kSmem && of_turn_.contains(b) && !stored.contains(b);
             });
    });
  }

  // The items' statements, which go elsewhere with what they write, `buffers`, in a loop over the same cores; null if
  // there are none.
  Stmt Take(Stmt loop, const std::vector<bool>& goes, Buffers& buffers) {
    std::vector<Stmt> taken;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!goes[i]) continue;
      taken.push_back(items_[i].stmt);
      gone_.insert(items_[i].stmt);
      moved_.insert(items_[i].accessed.writes.begin(), items_[i].accessed.writes.end());
      buffers.insert(items_[i].accessed.writes.begin(), items_[i].accessed.writes.end());
    }
    if (taken.empty()) return {};
    // The loop that stays keeps the variable.
    return ir::CloneWithFreshBindings(
        c_.For(loop.var(), loop.min(), loop.extent(), c_.Seq(taken), loop.for_kind(), loop.name()));
  }
  Stmt Around(const std::vector<Stmt>& stmts, const Buffers& buffers) const {
    Stmt result = c_.Seq(stmts);
    for (size_t i = allocations_.size(); i-- > 0;) {
      const auto& [pragma, buffer] = allocations_[i];
      if (!buffers.contains(buffer)) continue;
      result = c_.Allocate(buffer, result);
      if (pragma) result = c_.Rebuild(pragma, pragma.operands(), {result});
    }
    return result;
  }

  // What only fills memory goes in front of the first computation with what is copied before that: it need not wait
  // for copies.
  std::vector<Stmt> FillsBehindCopies(const std::vector<Stmt>& stmts) const {
    std::vector<Stmt> result;
    Buffers accessed;
    size_t at = 0;  // behind the last copy that computation waits for
    bool has_computation = false;
    for (Stmt s : stmts) {
      const auto& [reads, writes, allocates, is_known] = AccessedBy(s, target_);
      const bool fills = is_known && reads.empty() && !writes.empty() &&
                         std::all_of(writes.begin(), writes.end(), [&](Buffer b) {
                           return IsOfCore(b) && !accessed.contains(b);
                         });
      const isa::Instruction* instruction =
          s.Is(StmtKind::kEvaluate) ? target_.instructions->Find(s.value().name()) : nullptr;
      const bool copies = instruction != nullptr && instruction->queue == isa::Queue::kMove;
      has_computation = has_computation || !(fills || copies);
      accessed.insert(reads.begin(), reads.end());
      accessed.insert(writes.begin(), writes.end());
      if (!has_computation) at = result.size() + 1;
      result.insert(
          fills && has_computation ? result.begin() + static_cast<ptrdiff_t>(at++) : result.end(),
          s);
    }
    return result;
  }

  Stmt Rest(Stmt s) const {
    if (s.Is(StmtKind::kSeq)) {
      std::vector<Stmt> rest;
      for (Stmt child : s.children()) {
        if (!gone_.contains(child)) rest.push_back(Rest(child));
      }
      return c_.Seq(is_loop() ? FillsBehindCopies(rest) : rest);
    }
    if (gone_.contains(s)) return c_.Nop();
    if (IsAllocation(s)) {
      const Stmt allocate = s.Is(StmtKind::kPragma) ? s.body() : s;
      if (moved_.contains(allocate.buffer())) return Rest(allocate.body());
    }
    if (!IsAllocation(s) && !IsCoreLoop(s)) return s;
    const Stmt rest = ir::MapChildren(s, [this](Stmt child) { return Rest(child); });
    const auto fetch = fetches_.find(s);
    return fetch == fetches_.end() ? rest
                                   : Around({fetch->second.stmt, rest}, fetch->second.buffers);
  }

  const Stmt loop_;
  ir::Context& c_;
  const Target& target_;
  std::vector<Stmt> cores_;  // loops over them
  Buffers of_turn_;          // allocated in the loop, outside of those
  Buffers written_;          // in a turn
  std::vector<Allocation> allocations_;
  Buffers kept_once_, kept_twice_;  // of the allocations, those without and with several copies
  std::vector<Item> items_;         // of a loop over cores
  Buffers moved_;                   // whose allocations go elsewhere
  absl::flat_hash_set<Stmt> gone_;
  absl::flat_hash_map<Stmt, Fetch> fetches_;  // by the loop over cores
};

// A cluster's statements from the last one in front of its only loop over cores on, as a turn.
Stmt ArrangeOnlyTurn(Stmt s, const Target& target) {
  if (IsAllocation(s)) {
    return ir::MapChildren(s, [&](Stmt child) { return ArrangeOnlyTurn(child, target); });
  }
  if (!s.Is(StmtKind::kSeq)) return s;
  std::vector<Stmt> children(s.children().begin(), s.children().end());
  const auto has_cores = [](Stmt child) { return ir::AnyStmt(child, IsCoreLoop); };
  const auto cores = std::find_if(children.begin(), children.end(), has_cores);
  if (cores == children.end() ||
      std::find_if(cores + 1, children.end(), has_cores) != children.end()) {
    return s;
  }
  // Where the last load is.
  const Stmt inside = ArrangeOnlyTurn(*cores, target);
  if (inside != *cores || cores == children.begin()) {
    *cores = inside;
    return s.context().Seq(children);
  }
  const Stmt turn = s.context().Seq(std::vector<Stmt>(cores - 1, children.end()));
  const Stmt arranged = Turns(turn, target).Arranged();
  if (arranged == turn) return s;
  children.erase(cores - 1, children.end());
  children.push_back(arranged);
  return s.context().Seq(children);
}

}  // namespace

Stmt ArrangeTurns(Stmt s, const Target& target) {
  if (IsCoreLoop(s) || !ir::AnyStmt(s, IsCoreLoop)) return s;
  s = ir::MapChildren(s, [&](Stmt child) { return ArrangeTurns(child, target); });
  if (IsThreadLoop(s)) {
    return ir::MapChildren(s, [&](Stmt child) { return ArrangeOnlyTurn(child, target); });
  }
  if (!s.Is(StmtKind::kFor) || s.for_kind() != ir::ForKind::kSerial) return s;
  return Turns(s, target).Arranged();
}

}  // namespace polynao
