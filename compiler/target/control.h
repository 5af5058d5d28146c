// Instructions that only wait, found by what their rows in the instruction table say.
#ifndef COMPILER_TARGET_CONTROL_H_
#define COMPILER_TARGET_CONTROL_H_

#include <array>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/instruction_set.h"

namespace polynao {

// The waits that passes insert. A row with @drains(io) and no @barrier waits for the io queue of its
// core; one with @barrier(cluster) drains all queues and waits for all cores of the cluster and its
// memory core.
struct ControlInstructions {
  std::array<const isa::Instruction*, isa::kQueueCount> wait_for = {};  // one queue
  const isa::Instruction* wait_for_all = nullptr;
  const isa::Instruction* cluster_barrier = nullptr;
  const isa::Instruction* global_barrier = nullptr;

  // Error: the table lacks one of them, or the target has no table.
  static absl::StatusOr<ControlInstructions> Find(const Target& target);
};

// The row of a statement that calls an instruction; null if it calls none of the target's.
const isa::Instruction* InstructionOf(ir::Stmt s, const Target& target);

// Returns true if the statement only waits: for queues, or at a barrier.
bool IsWait(ir::Stmt s, const Target& target);

// Returns true if the statement waits for other cores.
bool IsBarrier(ir::Stmt s, const Target& target);

// A call of an instruction without operands.
ir::Stmt CallOf(ir::Context& context, const isa::Instruction& instruction);

}  // namespace polynao

#endif  // COMPILER_TARGET_CONTROL_H_
