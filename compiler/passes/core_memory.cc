#include "compiler/passes/core_memory.h"

#include "compiler/ir/visit.h"

namespace polynao {

AccessedBuffers AccessedBy(ir::Stmt root, const Target& target) {
  AccessedBuffers accessed;
  ir::ForEachStmt(root, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kEvaluate)) {
      const isa::Instruction* instruction = target.instructions->Find(s.value().name());
      if (instruction == nullptr || instruction->queue == isa::Queue::kNone) {
        accessed.is_known = false;
      }
      for (const BufferOperand& operand : BufferOperands(s, target)) {
        if (operand.is_read) accessed.reads.insert(operand.buffer);
        if (operand.is_written) accessed.writes.insert(operand.buffer);
      }
    }
    if (s.Is(ir::StmtKind::kStore)) accessed.writes.insert(ir::Buffer(s.buffer()));
    accessed.allocates = accessed.allocates || s.Is(ir::StmtKind::kAllocate);
    return true;
  });
  ir::ForEachExprIn(root, [&](ir::Expr e) {
    if (e.Is(ir::ExprKind::kLoad)) accessed.reads.insert(ir::Buffer(e.buffer()));
  });
  return accessed;
}

}  // namespace polynao
