#include "compiler/target/target.h"

#include "base/check.h"

namespace polynao {

int64_t Target::MemoryBytes(std::string_view scope) const {
  POLYNAO_CHECK(machine != nullptr) << "target " << name << " has no machine";
  if (scope == "nmem") return machine->nmem_bytes();
  if (scope == "wmem") return machine->wmem_bytes();
  if (scope == "smem") return machine->smem_bytes();
  POLYNAO_UNREACHABLE("memory " << scope);
}

bool IsOnChip(std::string_view scope) {
  return scope == "nmem" || scope == "smem" || scope == "wmem";
}

std::vector<std::string_view> TargetNames() { return {"diannao", "cpu", "c", "cuda", "interp"}; }

}  // namespace polynao
