#include "compiler/target/control.h"

#include "base/status.h"

namespace polynao {

using isa::Instruction;

absl::StatusOr<ControlInstructions> ControlInstructions::Find(const Target& target) {
  if (target.instructions == nullptr) {
    return InvalidInput("target '", target.name, "' has no instruction queues");
  }
  ControlInstructions found;
  for (const Instruction& row : target.instructions->instructions()) {
    if (row.unit != isa::Unit::kControl || !row.operands.empty()) continue;
    if (row.barrier == Instruction::Barrier::kCluster) {
      found.cluster_barrier = &row;
    } else if (row.barrier == Instruction::Barrier::kGlobal) {
      found.global_barrier = &row;
    } else if (row.drains.size() == isa::kQueueCount) {
      found.wait_for_all = &row;
    } else if (row.drains.size() == 1) {
      found.wait_for[static_cast<size_t>(row.drains[0])] = &row;
    }
  }
  const auto lacks = [](std::string_view attributes) {
    return InvalidInput("the instruction table lacks a row with @unit(control) and ", attributes);
  };
  for (int q = 0; q < isa::kQueueCount; ++q) {
    if (found.wait_for[q] != nullptr) continue;
    return lacks(StrCat("@drains(", isa::QueueName(static_cast<isa::Queue>(q)), ")"));
  }
  if (found.wait_for_all == nullptr) return lacks("@drains(all)");
  if (found.cluster_barrier == nullptr) return lacks("@barrier(cluster)");
  if (found.global_barrier == nullptr) return lacks("@barrier(global)");
  return found;
}

const Instruction* InstructionOf(ir::Stmt s, const Target& target) {
  if (!s.Is(ir::StmtKind::kEvaluate) || target.instructions == nullptr) return nullptr;
  return target.instructions->Find(s.value().name());
}

bool IsWait(ir::Stmt s, const Target& target) {
  const Instruction* row = InstructionOf(s, target);
  return row != nullptr && row->unit == isa::Unit::kControl;
}

bool IsBarrier(ir::Stmt s, const Target& target) {
  const Instruction* row = InstructionOf(s, target);
  return row != nullptr && row->barrier != Instruction::Barrier::kNone;
}

ir::Stmt CallOf(ir::Context& context, const Instruction& instruction) {
  return context.Evaluate(context.Call(ir::Type::kI32, instruction.mnemonic, {}));
}

}  // namespace polynao
