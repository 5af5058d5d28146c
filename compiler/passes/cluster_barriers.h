// Where the cores of a cluster and its memory core have to meet.
#ifndef COMPILER_PASSES_CLUSTER_BARRIERS_H_
#define COMPILER_PASSES_CLUSTER_BARRIERS_H_

#include <optional>

#include "compiler/ir/ir.h"
#include "compiler/passes/footprints.h"
#include "compiler/passes/sync_state.h"

namespace polynao {

// Returns true if `accesses` of SMEM and GMEM, by the memory core alone or by cores too, need a barrier first. The
// memory core orders its own accesses by its queues; two cores have nothing but the barrier.
bool NeedsBarrier(const Accesses& accesses, bool is_of_memory_core, const SyncState& state,
                  Footprints& footprints);

// A nest of cores that needs a barrier may begin with computation that does not, and copies from GMEM that this
// computation needs: the barrier then goes behind it, in front of the child with the number returned of the sequence in
// the nest. Absent: it begins with something else, or nothing would stand behind the barrier.
std::optional<size_t> BarrierInside(ir::Stmt nest, const SyncState& state, Footprints& footprints);

}  // namespace polynao

#endif  // COMPILER_PASSES_CLUSTER_BARRIERS_H_
