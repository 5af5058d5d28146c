#include "compiler/target/target.h"

#include <optional>

#include "base/check.h"
#include "isa/levels.h"

namespace polynao {

int64_t Target::MemoryBytes(std::string_view scope) const {
  POLYNAO_CHECK(machine != nullptr) << "target " << name << " has no machine";
  POLYNAO_CHECK(IsOnChip(scope)) << "memory " << scope;
  return machine->bytes(*isa::ParseSpace(scope));
}

bool IsOnChip(std::string_view scope) {
  const std::optional<isa::Space> space = isa::ParseSpace(scope);
  return space && *space != isa::Space::kGmem;
}

std::vector<std::string_view> TargetNames() { return {"diannao", "cpu", "c", "cuda", "interp"}; }

}  // namespace polynao
