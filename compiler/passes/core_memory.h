// Memory of single cores, in loops over them, and what instructions access.
#ifndef COMPILER_PASSES_CORE_MEMORY_H_
#define COMPILER_PASSES_CORE_MEMORY_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/instruction_set.h"
#include "isa/levels.h"

namespace polynao {

// Returns true if each core has a copy of the buffer's memory.
inline bool IsOfCore(ir::Buffer buffer) {
  return buffer->scope == isa::kNmem || buffer->scope == isa::kWmem;
}

// Returns true for an allocation, and for a pragma around one.
inline bool IsAllocation(ir::Stmt s) {
  return s.Is(ir::StmtKind::kAllocate) ||
         (s.Is(ir::StmtKind::kPragma) && s.body().Is(ir::StmtKind::kAllocate));
}

// A buffer that an instruction is given the address of.
struct BufferOperand {
  ir::Buffer buffer;
  bool is_read, is_written;
};

// Those of `call`, a statement; none where it is something else, or a call that is in no row of the table.
inline std::vector<BufferOperand> BufferOperands(ir::Stmt call, const Target& target) {
  std::vector<BufferOperand> buffers;
  if (!call.Is(ir::StmtKind::kEvaluate)) return buffers;
  const isa::Instruction* instruction = target.instructions->Find(call.value().name());
  if (instruction == nullptr) return buffers;
  for (const isa::Operand& operand : instruction->operands) {
    if (operand.kind != isa::OperandKind::kAddress) continue;
    const ir::Buffer buffer(call.value().operand(operand.param).buffer());
    buffers.push_back({buffer, operand.is_read, operand.is_written});
  }
  return buffers;
}

// What a statement accesses, all that is in it included.
struct AccessedBuffers {
  absl::flat_hash_set<ir::Buffer> reads, writes;
  bool allocates = false;
  bool is_known = true;  // it has no other effects: it waits for nothing, say
};
AccessedBuffers AccessedBy(ir::Stmt root, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_CORE_MEMORY_H_
