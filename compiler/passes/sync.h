// sync: waits between instructions of different queues, cores and clusters where one depends on another.
#ifndef COMPILER_PASSES_SYNC_H_
#define COMPILER_PASSES_SYNC_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// The card runs the instructions of one queue in order and different queues side by side; nothing but
// a wait orders them. This pass puts a wait for a queue in front of an instruction or scalar access that
// conflicts with an instruction which may still be in that queue. Two accesses conflict if they share a
// byte and one of them writes it:
//
//   memcpy.f16.nmem.gmem.async(&L[0], ...)          memcpy.f16.nmem.gmem.async(&L[0], ...)
//   add.f16(&L[0], &L[0], &L[0], 64)        -->     sync.io()
//                                                   add.f16(&L[0], &L[0], &L[0], 64)
//
//  - Bytes. Accesses are compared byte by byte at the addresses from storage (footprints.h), so buffers
//    that share bytes conflict. Addresses may depend on variables: inside one iteration they are
//    compared at equal values of the variables, across iterations over all values in the loops' bounds.
//  - Loops. A body starts with what its previous iteration may have left in the queues. A wait that
//    every iteration would repeat goes in front of the loop, if the body does not use that queue and
//    cannot start anything before the wait (core_waits.h).
//  - Waits that the program has already count, and so do instructions that wait by themselves.
//
// In a loop over cid with loops over tid inside (docs/passes.md), SMEM and GMEM are shared by the cores
// of the cluster and its memory core. A barrier of the cluster goes between two nests of the cores, or a
// nest and the memory core, if they conflict there (cluster_barriers.h):
//
//   memcpy.f16.smem.gmem.async(&S[0], ...)           memcpy.f16.smem.gmem.async(&S[0], ...)
//   thread (tid, 4) { ... &S[0] ... }         -->    barrier.cluster()
//                                                    thread (tid, 4) { ... &S[0] ... }
//
// The barrier goes in front of a loop around both if that needs fewer barriers. It goes into a nest that
// begins with computation which does not conflict, behind that computation.
//
// Between two nests of thread loops at the top of the function that conflict in GMEM goes a barrier of
// the whole card. Inside one nest the clusters may not conflict in GMEM: iterations of thread loops are
// independent of each other.
//
// Runs after storage. Plans first (sync_plan.h), then inserts the waits. Time: linear in the program, times
// the depth of its loops. Errors: an instruction that the target does not have, or an instruction table
// without the waits.
absl::StatusOr<bool> Sync(ir::Function& function, const Target& target);

// The pass by name (registry.h).
PassInfo SyncPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_SYNC_H_
