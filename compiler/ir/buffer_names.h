// The names of a function's buffers.
#ifndef COMPILER_IR_BUFFER_NAMES_H_
#define COMPILER_IR_BUFFER_NAMES_H_

#include <set>
#include <string>

#include "compiler/ir/ir.h"

namespace polynao::ir {

// Of parameters and allocations.
inline std::set<std::string, std::less<>> BufferNames(const Function& function) {
  std::set<std::string, std::less<>> names;
  for (const Param& param : function.params) {
    if (param.buffer) names.insert(param.buffer->name);
  }
  const auto visit = [&names](const auto& self, Stmt s) -> void {
    if (s.Is(StmtKind::kAllocate)) names.insert(s.buffer()->name);
    for (const Stmt child : s.children()) self(self, child);
  };
  if (function.body) visit(visit, function.body);
  return names;
}

}  // namespace polynao::ir

#endif  // COMPILER_IR_BUFFER_NAMES_H_
