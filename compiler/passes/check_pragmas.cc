#include "compiler/passes/check_pragmas.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "isa/instruction_set.h"

namespace polynao {

namespace {

// The keys that something reads.
class KnownKeys {
 public:
  explicit KnownKeys(const Target& target)
      : set_(target.instructions != nullptr ? *target.instructions : isa::DianNao()) {}

  bool Contains(std::string_view key) { return IsListed(key) || IsFamily(key); }

  // The known key that `key` is a spelling of; `key` itself if there is none.
  std::string Resolve(std::string_view key) {
    if (Contains(key)) return std::string(key);
    const std::string lower = absl::AsciiStrToLower(ToAbsl(key));
    if (Contains(lower)) return lower;
    // A T for tensor stands in front of instructions, not of the other keys.
    const bool has_t = lower.starts_with('t') && IsFamily(std::string_view(lower).substr(1));
    return has_t ? lower.substr(1) : std::string(key);
  }

 private:
  static bool IsListed(std::string_view key) {
    return std::any_of(pragma::kKeys.begin(), pragma::kKeys.end(),
                       [&](const pragma::Key& known) { return known.name == key; });
  }

  bool IsFamily(std::string_view key) {
    if (families_.empty()) {
      for (const isa::Instruction& instruction : set_.instructions()) {
        if (instruction.queue != isa::Queue::kNone) families_.insert(instruction.family);
      }
    }
    return families_.contains(key);
  }

  const isa::InstructionSet& set_;
  absl::flat_hash_set<std::string_view> families_;  // collected when the first is asked for
};

}  // namespace

bool ResolvePragmas(ir::Function& function, const Target& target) {
  KnownKeys known(target);
  const std::function<ir::Stmt(ir::Stmt)> resolve = [&](ir::Stmt s) {
    const ir::Stmt mapped = ir::MapChildren(s, resolve);
    if (!s.Is(ir::StmtKind::kPragma)) return mapped;
    const std::string key = known.Resolve(s.name());
    if (key == s.name()) return mapped;
    return function.context->Pragma(key, s.operands(), mapped.body());
  };
  const ir::Stmt body = resolve(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

absl::Status CheckPragmas(const ir::Function& function, const Target& target) {
  KnownKeys known(target);
  ir::Stmt unknown;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (!unknown && s.Is(ir::StmtKind::kPragma) && !known.Contains(s.name())) unknown = s;
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

}  // namespace polynao
