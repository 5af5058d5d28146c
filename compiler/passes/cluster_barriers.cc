#include "compiler/passes/cluster_barriers.h"

#include "compiler/ir/visit.h"

namespace polynao {

using ir::Stmt;
using ir::StmtKind;

bool NeedsBarrier(const Accesses& accesses, bool is_of_memory_core, const SyncState& state,
                  Footprints& footprints) {
  return footprints.Conflict(state.since_barrier[0], accesses) ||
         (!is_of_memory_core && footprints.Conflict(state.since_barrier[1], accesses));
}

std::optional<size_t> BarrierInside(Stmt nest, const SyncState& state, Footprints& footprints) {
  Stmt body = nest.body();
  while (body.Is(StmtKind::kAllocate) || body.Is(StmtKind::kPragma)) body = body.body();
  if (!body.Is(StmtKind::kSeq)) return std::nullopt;
  const auto is_free = [&](Stmt child) {
    if (child.Is(StmtKind::kAllocate) || child.Is(StmtKind::kPragma)) return false;
    bool only_computes = true;
    ir::ForEachStmt(child, [&](Stmt s) {
      // A barrier drains the queues, so that a copy in front of it would hold the other cores up.
      const StatementAccesses& own = footprints.Of(s);
      only_computes =
          only_computes && (own.instruction == nullptr || own.queue == isa::Queue::kCompute);
      return only_computes;
    });
    return only_computes &&
           !NeedsBarrier(footprints.Below(child, Footprints::IsShared), false, state, footprints);
  };
  size_t at = 0;
  while (at < body.children().size() && is_free(body.children()[at])) ++at;
  if (at == 0 || at == body.children().size()) return std::nullopt;
  return at;
}

}  // namespace polynao
