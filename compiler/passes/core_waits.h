// For which queues of its own a core has to wait.
#ifndef COMPILER_PASSES_CORE_WAITS_H_
#define COMPILER_PASSES_CORE_WAITS_H_

#include "compiler/ir/ir.h"
#include "compiler/passes/footprints.h"
#include "compiler/passes/sync_state.h"

namespace polynao {

// The queues that must be empty before `s`, without the statements below it: those whose pending
// accesses conflict with what `s` accesses at once, or with what its instruction accesses in another
// queue.
QueueSet WaitsBefore(ir::Stmt s, const PendingQueues& pending, Footprints& footprints);

// The queues to wait for before a loop instead of in each iteration: nothing in the body uses the
// queue, and the body needs the wait before it can start its first instruction.
QueueSet WaitsBeforeLoop(ir::Stmt loop, const PendingQueues& pending, Footprints& footprints);

// Returns true if one wait for all queues does: several queues have to be empty, and the others are. Every wait costs
// some cycles, however short it is.
bool IsForAllQueues(const QueueSet& waits, const PendingQueues& pending);

}  // namespace polynao

#endif  // COMPILER_PASSES_CORE_WAITS_H_
