#include "compiler/passes/core_waits.h"

#include <algorithm>

#include "compiler/ir/visit.h"

namespace polynao {

QueueSet WaitsBefore(ir::Stmt s, const PendingQueues& pending, Footprints& footprints) {
  const StatementAccesses& own = footprints.Of(s);
  QueueSet waits = {};
  for (int q = 0; q < isa::kQueueCount; ++q) {
    // A queue keeps its order, but the scalar unit reads arguments before it queues an instruction.
    const bool is_own = q == static_cast<int>(own.queue);
    waits[q] = footprints.Conflict(pending[q], own.scalar) ||
               (!is_own && footprints.Conflict(pending[q], own.queued));
  }
  return waits;
}

QueueSet WaitsBeforeLoop(ir::Stmt loop, const PendingQueues& pending, Footprints& footprints) {
  QueueSet used = {};
  Accesses lead;  // up to and with the first instruction
  bool is_leading = true;
  ir::ForEachStmt(loop.body(), [&](ir::Stmt s) {
    const StatementAccesses& own = footprints.Of(s);
    if (is_leading) {
      lead.Add(own.scalar);
      lead.Add(own.queued);
      is_leading = own.instruction == nullptr;
    }
    if (own.queue != isa::Queue::kNone) used[static_cast<int>(own.queue)] = true;
    return true;
  });
  lead.ForgetVariables();
  QueueSet waits = {};
  for (int q = 0; q < isa::kQueueCount; ++q) {
    waits[q] = !used[q] && footprints.Conflict(pending[q], lead);
  }
  return waits;
}

bool IsForAllQueues(const QueueSet& waits, const PendingQueues& pending) {
  if (std::count(waits.begin(), waits.end(), true) < 2) return false;
  for (int q = 0; q < isa::kQueueCount; ++q) {
    if (!waits[q] && !pending[q].IsEmpty()) return false;
  }
  return true;
}

}  // namespace polynao
