// sync: orders instructions of different queues where one needs what another does.
#ifndef COMPILER_PASSES_SYNC_H_
#define COMPILER_PASSES_SYNC_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// The card runs each queue in order and different queues side by side; only a sync orders them.
// This pass walks the program and, in front of an instruction (or scalar access) that touches
// memory which an instruction of another queue may still write, or that it will write while another
// queue may still read it, puts the sync of that queue:
//
//   memcpy.f16.nmem.gmem.async(&L[0], ...)          memcpy.f16.nmem.gmem.async(&L[0], ...)
//   add.f16(&L[0], &L[0], &L[0], 64)        -->     sync.io()
//                                                   add.f16(&L[0], &L[0], &L[0], 64)
//
// Memory is compared by bytes, as many as the instruction's meaning accesses, or its operands' extents
// where counts are not constant; buffers that storage has put on the same bytes meet there. Addresses
// that depend on variables are compared for equal values of these within an iteration, and as all
// that the loops' bounds allow beyond. A loop's body is walked with what may be pending from its previous
// iteration. A wait that each iteration would repeat goes before the loop if the body puts nothing
// into that queue, and has nothing to start before it needs the wait.
//
// In a loop over cid with loops over tid inside (docs/passes.md), the memory core and the cores, and
// two nests of the cores, need a barrier of the cluster where one writes SMEM or GMEM that the other
// touches. It goes in front of the second one, or in front of a loop if that spares one inside:
//
//   memcpy.f16.smem.gmem.async(&S[0], ...)           memcpy.f16.smem.gmem.async(&S[0], ...)
//   thread (tid, 4) { ... &S[0] ... }         -->    barrier.cluster()
//                                                    thread (tid, 4) { ... &S[0] ... }
//
// It stands inside a nest of all cores, behind the computation with which that begins, if none of that
// needs it.
//
// Between two nests of thread loops at the top, of which one may touch what the other writes in
// GMEM, it puts a barrier over the whole card. GMEM that several clusters write or read inside one
// nest is the program's affair: iterations of thread loops are independent. Syncs and barriers that
// the program has count. Runs after storage. Error: an instruction that the target does not have.
absl::StatusOr<bool> Sync(ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_SYNC_H_
