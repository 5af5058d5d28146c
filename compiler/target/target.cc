#include "compiler/target/target.h"

#include <optional>

#include "base/check.h"
#include "base/status.h"
#include "isa/levels.h"

namespace polynao {
namespace {

bool HasKind(std::string_view name, TargetKind kind) {
  const TargetFacts* facts = FindTarget(name);
  return facts != nullptr && facts->kind == kind;
}

}  // namespace

const TargetFacts* FindTarget(std::string_view name) {
  for (const TargetFacts& facts : Targets()) {
    if (facts.name == name) return &facts;
  }
  return nullptr;
}

bool IsCard(std::string_view name) { return HasKind(name, TargetKind::kCard); }
bool IsProcessor(std::string_view name) { return HasKind(name, TargetKind::kProcessor); }
bool IsGpu(std::string_view name) { return HasKind(name, TargetKind::kGpu); }
bool IsInterpreter(std::string_view name) { return HasKind(name, TargetKind::kInterpreter); }

bool HasTiles(std::string_view name) {
  const TargetFacts* facts = FindTarget(name);
  return facts != nullptr && facts->has_tiles;
}

absl::StatusOr<Target> MakeTarget(std::string_view name, const isa::Machine* machine) {
  if (const TargetFacts* facts = FindTarget(name)) {
    Target target{.name = std::string(name)};
    if (facts->instructions != nullptr) {
      target.instructions = &facts->instructions();
      target.machine = machine;
    }
    return target;
  }
  std::string names;
  for (const TargetFacts& facts : Targets()) {
    StrAppend(&names, names.empty() ? "" : ", ", facts.name);
  }
  return InvalidInput("no target is named '", name, "'; there are: ", names);
}

const TargetFacts& Target::facts() const {
  const TargetFacts* facts = FindTarget(name);
  POLYNAO_CHECK(facts != nullptr) << "no target is named '" << name << "'";
  return *facts;
}

int64_t Target::MemoryBytes(std::string_view scope) const {
  POLYNAO_CHECK(machine != nullptr) << "target " << name << " has no machine";
  POLYNAO_CHECK(IsOnChip(scope)) << "memory " << scope;
  return machine->bytes(*isa::ParseSpace(scope));
}

bool IsOnChip(std::string_view scope) {
  const std::optional<isa::Space> space = isa::ParseSpace(scope);
  return space && *space != isa::Space::kGmem;
}

}  // namespace polynao
