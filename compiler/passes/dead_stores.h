// Stores to buffers that nobody reads.
#ifndef COMPILER_PASSES_DEAD_STORES_H_
#define COMPILER_PASSES_DEAD_STORES_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

// loop_partition makes pieces in which no result is stored, since there is none: the tiles behind a tensor's end. They
// still load what results are computed of:
//
//   for (t, 3, 2) {
//     allocate A: f32[64] @nmem
//     allocate B: f32[64] @nmem
//     for (i, 0, 64) { A[i] = X[t * 64 + i] }     -->     nothing
//     for (i, 0, 64) { B[i] = A[i] * 2.0 }
//   }
//
// A store is taken out if its buffer is an allocation of which no element reaches anything else: it is loaded only by
// stores that are taken out, its address is taken nowhere, and it may overlap no other buffer. So is what is left
// without a body; expressions have no effects. What conditions, bounds and lets load counts as read while they have a
// body. A store that would stop the program (an index outside of its buffer) is a mistake, so that none need stop it.
//
// Linear in the program's size, as often as that takes out what loads further buffers. Returns whether anything
// changed.
absl::StatusOr<bool> DropDeadStores(ir::Function& function);

// The pass by name (registry.h).
PassInfo DeadStoresPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_DEAD_STORES_H_
