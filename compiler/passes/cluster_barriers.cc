#include "compiler/passes/cluster_barriers.h"

#include <algorithm>
#include <vector>

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
  // What SMEM and GMEM hold behind the nest is ordered by a barrier in front of all that accesses them, but for inputs.
  const auto is_free = [&](Stmt child) {
    const Accesses shared = footprints.Below(child, Footprints::IsShared);
    const auto is_smem = [](int64_t m) {
      return Footprints::IsShared(m) && !Footprints::IsGmem(m);
    };
    const bool reads_gmem =
        shared.In(is_smem).IsEmpty() && shared.writes == ByteSet() &&
        std::none_of(shared.variable.begin(), shared.variable.end(),
                     [](const VariableBytes* bytes) { return bytes->is_write; });
    return reads_gmem && !NeedsBarrier(shared, false, state, footprints);
  };
  // What instructions of the queue for computation, or of others, access.
  const auto accesses_of = [&](Stmt child, bool is_computation) {
    Accesses all;
    ir::ForEachStmt(child, [&](Stmt s) {
      const StatementAccesses& own = footprints.Of(s);
      if (own.instruction == nullptr) return true;
      if ((own.queue == isa::Queue::kCompute) == is_computation) all.Add(own.queued);
      return true;
    });
    return all;
  };
  // A barrier drains the queues: a copy in front of it would hold the other cores up. It stands there only if
  // computation there needs it.
  size_t at = 0;
  const absl::Span<const Stmt> children = body.children();
  std::vector<Accesses> copies;
  for (size_t i = 0; i < children.size() && is_free(children[i]); ++i) {
    const Accesses computed = accesses_of(children[i], true);
    if (const Accesses copied = accesses_of(children[i], false); !copied.IsEmpty()) {
      copies.push_back(copied);
    }
    if (computed.IsEmpty()) continue;
    const bool are_needed = std::all_of(copies.begin(), copies.end(), [&](const Accesses& copied) {
      return footprints.Conflict(copied, computed);
    });
    if (!are_needed) break;
    copies.clear();
    at = i + 1;
  }
  if (at == 0 || at == children.size()) return std::nullopt;
  return at;
}

}  // namespace polynao
