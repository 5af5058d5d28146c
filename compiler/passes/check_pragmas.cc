#include "compiler/passes/check_pragmas.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "isa/instruction_set.h"

namespace polynao {

absl::Status CheckPragmas(const ir::Function& function, const Target& target) {
  const isa::InstructionSet& set =
      target.instructions != nullptr ? *target.instructions : isa::DianNao();
  absl::flat_hash_set<std::string_view> known;
  for (const pragma::Key& key : pragma::kKeys) known.insert(key.name);
  bool has_families = false;
  ir::Stmt unknown;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (unknown || !s.Is(ir::StmtKind::kPragma)) return !unknown;
    if (!has_families && !known.contains(s.name())) {
      for (const isa::Instruction& instruction : set.instructions()) {
        if (instruction.queue != isa::Queue::kNone) known.insert(instruction.family);
      }
      has_families = true;
    }
    if (!known.contains(s.name())) unknown = s;
    return !unknown;
  });
  if (!unknown) return absl::OkStatus();
  std::string keys;
  for (const pragma::Key& key : pragma::kKeys) StrAppend(&keys, keys.empty() ? "" : ", ", key.name);
  return InvalidInput("'", ir::PrintFirstLine(unknown), "' around '",
                      ir::PrintFirstLine(unknown.body()),
                      "': nothing reads this key; expected the name of a queued instruction of the "
                      "table (\"memcpy\", \"conv\", ...) or one of ",
                      keys);
}

absl::Status CheckExterns(const ir::Function& function, const Target& target) {
  if (target.instructions == nullptr && target.name != "cuda") return absl::OkStatus();
  const std::vector<const ir::ExternNode*> called = ir::ExternsOf(function);
  if (called.empty()) return absl::OkStatus();
  return InvalidInput("function '", function.name, "' calls the extern function '", called[0]->name,
                      "': the ", target.name,
                      " target has none; expected loops, stores and, on the card, instructions");
}

}  // namespace polynao
