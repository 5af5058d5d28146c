// Decides where sync puts which waits, without changing the function.
#ifndef COMPILER_PASSES_SYNC_PLAN_H_
#define COMPILER_PASSES_SYNC_PLAN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct SyncPlan {
  // The waits in front of each statement, in order. Statements are numbered in program order, each
  // before the statements below it; one node in two places has two numbers.
  std::vector<std::vector<const isa::Instruction*>> before;
};

// Errors: an instruction that the target does not have, a table without the waits.
absl::StatusOr<SyncPlan> PlanSync(const ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_SYNC_PLAN_H_
