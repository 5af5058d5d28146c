#include "compiler/passes/check_externs.h"

#include <vector>

#include "base/status.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"

namespace polynao {

absl::Status CheckExterns(const ir::Function& function, const Target& target) {
  if (target.facts().has_externs) return absl::OkStatus();
  const std::vector<const ir::ExternNode*> called = ir::ExternsOf(function);
  if (called.empty()) return absl::OkStatus();
  return InvalidInput("function '", function.name, "' calls the extern function '", called[0]->name,
                      "': the ", target.name,
                      " target has none; expected loops, stores and, on the card, instructions");
}

}  // namespace polynao
