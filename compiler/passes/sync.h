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
// Memory is compared by buffer; buffers that storage has put on the same bytes count as one. A
// loop's body is walked with what may be pending from its previous iteration. Between two nests of
// thread loops at the top, of which one may touch what the other writes in GMEM, it puts a barrier
// over the whole card. Runs after storage.
absl::StatusOr<bool> Sync(ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_SYNC_H_
