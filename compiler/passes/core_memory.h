// Memory of single cores, in loops over them.
#ifndef COMPILER_PASSES_CORE_MEMORY_H_
#define COMPILER_PASSES_CORE_MEMORY_H_

#include "compiler/ir/ir.h"
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

}  // namespace polynao

#endif  // COMPILER_PASSES_CORE_MEMORY_H_
