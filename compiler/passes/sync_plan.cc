#include "compiler/passes/sync_plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/cluster_barriers.h"
#include "compiler/passes/core_waits.h"
#include "compiler/passes/footprints.h"
#include "compiler/passes/sync_state.h"
#include "compiler/target/control.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using isa::Instruction;

// Walks the program in its order with what may be pending. A walk of a statement plans the waits before
// it and before all statements below it anew, so that loops can be walked more than once.
class Planner {
 public:
  Planner(const ControlInstructions& control, const CoreRoles& roles, Footprints& footprints)
      : control_(control), roles_(roles), footprints_(footprints) {}

  SyncPlan Plan(Stmt body) {
    planned_.resize(static_cast<size_t>(Count(body)));
    // Without a loop over cores, core 0 runs everything.
    const bool has_core_loop = roles_.Uses(isa::Level::kCore);
    const RunsOn runs_on = has_core_loop ? RunsOn::kCluster : RunsOn::kCore;
    SyncState state;
    const bool has_thread_loop = has_core_loop || roles_.Uses(isa::Level::kCluster);
    Stmt top = body;
    int64_t at = 0;
    for (; CoreRoles::IsTemporary(top); top = top.body()) ++at;
    if (top.Is(StmtKind::kSeq) && has_thread_loop) {
      WalkNests(top, at, runs_on, state);
    } else {
      Walk(body, 0, state, runs_on);
    }
    SyncPlan plan;
    for (Planned& planned : planned_) plan.before.push_back(std::move(planned.before));
    return plan;
  }

 private:
  struct Planned {
    // A barrier that the nest around decided to put here.
    bool is_behind_barrier = false;
    std::vector<const Instruction*> before;
  };

  // Counts statements.
  int64_t Count(Stmt s) {
    int64_t count = 1;
    for (Stmt child : s.children()) count += Count(child);
    counts_[s] = count;
    return count;
  }

  // Calls visit(child, its number), where `at` is the number of `s`.
  template <typename Visit>
  void ForEachChild(Stmt s, int64_t at, const Visit& visit) {
    ++at;
    for (Stmt child : s.children()) {
      visit(child, at);
      at += counts_.at(child);
    }
  }

  std::vector<const Instruction*>& Before(int64_t at) {
    return planned_[static_cast<size_t>(at)].before;
  }

  // The plan of the statements below number `at`, to be kept or restored.
  std::vector<Planned> SaveBelow(Stmt s, int64_t at) const {
    return {planned_.begin() + at + 1, planned_.begin() + at + counts_.at(s)};
  }
  void RestoreBelow(int64_t at, std::vector<Planned> saved) {
    std::move(saved.begin(), saved.end(), planned_.begin() + at + 1);
  }

  // Nests of thread loops one after another, which run on the same cores but not in step: barriers of
  // the card between them, where one may access GMEM that another writes.
  void WalkNests(Stmt body, int64_t number, RunsOn runs_on, SyncState& state) {
    Accesses since_barrier;
    ForEachChild(body, number, [&](Stmt child, int64_t at) {
      const Instruction* const called = footprints_.Of(child).instruction;
      if (called != nullptr && called->barrier == Instruction::Barrier::kGlobal) since_barrier = {};
      const Accesses gmem = footprints_.Below(child, Footprints::IsGmem);
      const bool needs_barrier = footprints_.Conflict(since_barrier, gmem);
      if (needs_barrier) {
        since_barrier = {};
        state = {};
      }
      since_barrier.Add(gmem);
      Walk(child, at, state, runs_on);
      if (needs_barrier) Before(at).insert(Before(at).begin(), control_.global_barrier);
    });
  }

  // On entry `state` is what may be pending before `s`, on exit behind it.
  void Walk(Stmt s, int64_t at, SyncState& state, RunsOn runs_on) {
    Before(at).clear();
    if (planned_[static_cast<size_t>(at)].is_behind_barrier) AddClusterBarrier(at, state);
    const Instruction* const called = footprints_.Of(s).instruction;
    if (called != nullptr && called->unit == isa::Unit::kControl) {
      if (called->barrier != Instruction::Barrier::kNone) {
        state = {};
        return;
      }
      // Between loops over cid and tid, the memory core runs every wait that is no barrier.
      PendingQueues& queues = state.queues[runs_on == RunsOn::kCore ? 0 : 1];
      for (isa::Queue queue : called->drains) queues[static_cast<int>(queue)] = {};
    } else if (runs_on == RunsOn::kCluster) {
      WalkInCluster(s, at, state);
    } else {
      WalkOnCore(s, at, state, runs_on);
    }
  }

  void WalkOnCore(Stmt s, int64_t at, SyncState& state, RunsOn runs_on) {
    PendingQueues& queues = state.queues[static_cast<int>(runs_on)];
    AddWaits(WaitsBefore(s, queues, footprints_), queues, at);
    if (s.Is(StmtKind::kFor) && !IsThreadLoop(s)) {
      AddWaits(WaitsBeforeLoop(s, queues, footprints_), queues, at);
    }
    const StatementAccesses& own = footprints_.Of(s);
    if (own.queue != isa::Queue::kNone) {
      Accesses& pending = queues[static_cast<int>(own.queue)];
      pending.Add(own.queued);
      if (own.instruction->waits) pending = {};  // and with it everything before it in the queue
    }
    WalkChildren(s, at, state, runs_on);
  }

  void AddWaits(const QueueSet& waits, PendingQueues& queues, int64_t at) {
    const bool for_all = IsForAllQueues(waits, queues);
    if (for_all) Before(at).push_back(control_.wait_for_all);
    for (int q = 0; q < isa::kQueueCount; ++q) {
      if (!waits[q]) continue;
      if (!for_all) Before(at).push_back(control_.wait_for[q]);
      queues[q] = {};
    }
  }

  // A statement between a loop over cid and the loops over tid in it. Conflicts between the cores and
  // the memory core, and between two nests of the cores, get a barrier in front of the second one.
  void WalkInCluster(Stmt s, int64_t at, SyncState& state) {
    const bool is_nest = IsCoreLoop(s);
    const bool is_block =
        s.Is(StmtKind::kSeq) || s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kPragma);
    const bool is_of_memory_core = !roles_.IsForAllCores(s) && !is_block;
    // Cores and memory core evaluate loops and branches around nests; statements below come later.
    const Accesses accesses = is_nest || is_of_memory_core
                                  ? footprints_.Below(s, Footprints::IsShared)
                                  : footprints_.Of(s).scalar;
    if (is_nest) {
      ForEachBelow(s, at, [](Planned& planned) { planned.is_behind_barrier = false; });
    }
    if (NeedsBarrier(accesses, is_of_memory_core, state, footprints_) &&
        !(is_nest && roles_.RunsAtMostOnce(s) && RunsForSure(s) &&
          PlanBarrierInside(s, at, state))) {
      AddClusterBarrier(at, state);
    }
    if (is_nest || is_of_memory_core) {
      WalkOnCore(s, at, state, is_nest ? RunsOn::kCore : RunsOn::kMemoryCore);
    } else if (s.Is(StmtKind::kFor)) {
      WalkClusterLoop(s, at, state);
    } else {
      WalkChildren(s, at, state, RunsOn::kCluster);
    }
    if (!is_of_memory_core) state.since_barrier[0].Add(accesses);
    if (!is_nest) state.since_barrier[1].Add(accesses);
  }

  template <typename Visit>
  void ForEachBelow(Stmt s, int64_t at, const Visit& visit) {
    std::for_each(planned_.begin() + at + 1, planned_.begin() + at + counts_.at(s), visit);
  }

  void AddClusterBarrier(int64_t at, SyncState& state) {
    state = {};
    ++barriers_;
    Before(at).push_back(control_.cluster_barrier);
  }

  // Plans the barrier that a nest of cores needs inside of it, where BarrierInside says. False: in front
  // of the nest is as good.
  bool PlanBarrierInside(Stmt nest, int64_t at, const SyncState& state) {
    const std::optional<size_t> child = BarrierInside(nest, state, footprints_);
    if (!child) return false;
    Stmt body = nest;
    do {
      body = body.body();
      ++at;
    } while (!body.Is(StmtKind::kSeq));
    size_t next = 0;
    ForEachChild(body, at, [&](Stmt, int64_t child_at) {
      if (next++ == *child) planned_[static_cast<size_t>(child_at)].is_behind_barrier = true;
    });
    return true;
  }

  // A loop that cores and memory core run. One barrier in front of it may spare one in each iteration.
  void WalkClusterLoop(Stmt s, int64_t at, SyncState& state) {
    const SyncState entry = state;
    const int count = barriers_;
    WalkChildren(s, at, state, RunsOn::kCluster);
    const int inside = barriers_ - count;
    if (IsThreadLoop(s) || inside == 0 || entry.IsEmpty()) return;
    std::vector<Planned> without_barrier = SaveBelow(s, at);
    SyncState cleared;
    WalkChildren(s, at, cleared, RunsOn::kCluster);
    if (barriers_ - count - inside < inside) {
      Before(at).push_back(control_.cluster_barrier);
      barriers_ -= inside;
      ++barriers_;
      state = std::move(cleared);
    } else {
      RestoreBelow(at, std::move(without_barrier));
      barriers_ = count + inside;
    }
  }

  // Whether every core runs an iteration.
  bool RunsForSure(Stmt loop) const {
    if (!loop.extent().Is(ExprKind::kIntImm)) return false;
    return loop.extent().int_value() >= (IsThreadLoop(loop) ? roles_.Units(loop) : 1);
  }

  void WalkChildren(Stmt s, int64_t at, SyncState& state, RunsOn runs_on) {
    if (s.Is(StmtKind::kFor)) {
      WalkLoop(s, at, state, runs_on);
      return;
    }
    if (s.Is(StmtKind::kIf)) {
      SyncState in_else = state;
      Walk(s.then_case(), at + 1, state, runs_on);
      Walk(s.else_case(), at + 1 + counts_.at(s.then_case()), in_else, runs_on);
      state.Add(in_else);
      return;
    }
    ForEachChild(s, at,
                 [&](Stmt child, int64_t child_at) { Walk(child, child_at, state, runs_on); });
  }

  // The body starts with what may be pending before the loop or behind an iteration. That only grows
  // from one walk of the body to the next, so this ends, as a rule after two walks.
  void WalkLoop(Stmt s, int64_t at, SyncState& state, RunsOn runs_on) {
    const int barriers = barriers_;
    const auto walk_body = [&](SyncState& pending) {
      barriers_ = barriers;
      Walk(s.body(), at + 1, pending, runs_on);
    };
    SyncState entry = state;
    SyncState exit;
    while (true) {
      exit = entry;
      walk_body(exit);
      exit.ForgetVariables();
      SyncState next = entry;
      next.Add(exit);
      if (next == entry || roles_.RunsAtMostOnce(s)) break;
      entry = next;
    }
    // Early walks found more pending than the waits of later walks leave: try with what these leave.
    SyncState smaller = state;
    smaller.Add(exit);
    if (!roles_.RunsAtMostOnce(s) && !(smaller == entry)) {
      std::vector<Planned> found = SaveBelow(s, at);
      const int found_barriers = barriers_;
      SyncState smaller_exit = smaller;
      walk_body(smaller_exit);
      smaller_exit.ForgetVariables();
      SyncState next = smaller;
      next.Add(smaller_exit);
      if (next == smaller) {
        exit = smaller_exit;
      } else {
        RestoreBelow(at, std::move(found));
        barriers_ = found_barriers;
      }
    }
    if (RunsForSure(s)) {
      state = exit;
    } else {
      state.Add(exit);
    }
  }

  const ControlInstructions& control_;
  const CoreRoles& roles_;
  Footprints& footprints_;
  absl::flat_hash_map<Stmt, int64_t> counts_;  // of the statement and all below it
  std::vector<Planned> planned_;
  int barriers_ = 0;  // planned for clusters in what has been walked
};

}  // namespace

absl::StatusOr<SyncPlan> PlanSync(const ir::Function& function, const Target& target) {
  ASSIGN_OR_RETURN(const ControlInstructions control, ControlInstructions::Find(target));
  ASSIGN_OR_RETURN(const std::unique_ptr<Footprints> footprints,
                   Footprints::Compute(function, target));
  const CoreRoles roles(function.body, target);
  return Planner(control, roles, *footprints).Plan(function.body);
}

}  // namespace polynao
