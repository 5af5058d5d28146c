// Loops over the cores of a cluster, one after the other, with what its memory core does between them.
#ifndef COMPILER_PASSES_CLUSTER_REGIONS_H_
#define COMPILER_PASSES_CLUSTER_REGIONS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// A schedule may compute a tensor in SMEM inside the loop over a cluster's cores, where all cores need the same part
// of it: weights of which one block after the other comes. This pass makes regions of that loop, as thread_regions
// does for a GPU's threads. What fills the memory of the cluster goes outside the cores' loops, to the memory core;
// copies out of it become loops of their own, so that the pass pipeline can give them a stage.
//
//   thread (tid, 4) {                        allocate X: i8[64] @nmem
//     allocate X: i8[64] @nmem               thread (tid, 4) { load X }
//     load X                                 for (b, 0, 8) {
//     for (b, 0, 8) {                          allocate S: i8[4096] @smem
//       allocate S: i8[4096] @smem     -->     allocate W: i8[4096] @wmem
//       allocate W: i8[4096] @wmem             load S
//       load S                                 thread (tid, 4) { copy W from S }
//       copy W from S                          thread (tid, 4) { compute with X and W }
//       compute with X and W                 }
//     }                                      thread (tid, 4) { store }
//     store
//   }
//
// Memory of a core that is allocated outside of a loop over cores is there once for each core, and each iteration sees
// its own (docs/passes.md). Loops without such allocations stay the same nodes.
//
// Before this, what scalar code of cores reads is defined (scalar_code.h); behind it, loops around those over cores are
// arranged (turns.h).
//
// Errors name the statement: a loop, a condition, a value or a copy for the memory core that depends on the core.
absl::StatusOr<bool> ClusterRegions(ir::Function& function, const Target& target);

// The pass by name (registry.h).
PassInfo ClusterRegionsPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_CLUSTER_REGIONS_H_
