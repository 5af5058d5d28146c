#include "compiler/target/core_roles.h"

#include <optional>

#include "compiler/ir/visit.h"
#include "compiler/target/control.h"
#include "isa/levels.h"

namespace polynao {

using ir::Stmt;
using ir::StmtKind;

bool IsThreadLoop(Stmt s) { return s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread; }

bool IsCoreLoop(Stmt s) { return IsThreadLoop(s) && s.name() == isa::kCoreAxis; }

CoreRoles::CoreRoles(Stmt body, const Target& target) : target_(target) { Mark(body); }

void CoreRoles::Mark(Stmt s) {
  if (IsThreadLoop(s)) {
    const std::optional<isa::Level> level = isa::LevelOfAxis(s.name());
    if (level) uses_[static_cast<int>(*level)] = true;
  }
  bool has_core_loop = IsCoreLoop(s);
  bool is_for_all = has_core_loop || IsBarrier(s, target_);
  for (Stmt child : s.children()) {
    Mark(child);
    has_core_loop = has_core_loop || has_core_loop_.contains(child);
    is_for_all = is_for_all || for_all_cores_.contains(child);
  }
  if (has_core_loop) has_core_loop_.insert(s);
  if (is_for_all) for_all_cores_.insert(s);
}

RunsOn CoreRoles::InBody(Stmt loop, RunsOn around) const {
  if (IsCoreLoop(loop)) return RunsOn::kCore;
  const bool is_over_clusters = IsThreadLoop(loop) && loop.name() == isa::kClusterAxis;
  return is_over_clusters && has_core_loop_.contains(loop) ? RunsOn::kCluster : around;
}

int64_t CoreRoles::Units(Stmt loop) const {
  return target_.machine->units(isa::LevelOfAxis(loop.name()).value_or(isa::Level::kCore));
}

bool CoreRoles::RunsAtMostOnce(Stmt loop) const {
  return IsThreadLoop(loop) && loop.extent().Is(ir::ExprKind::kIntImm) &&
         loop.extent().int_value() <= Units(loop);
}

bool CoreRoles::RunsExactlyOnce(Stmt loop) const {
  return IsThreadLoop(loop) && loop.extent().IsInt(Units(loop));
}

std::vector<Stmt> CoreRoles::BarriersOfMemoryCore(Stmt core_loop) const {
  std::vector<Stmt> barriers;
  if (!RunsExactlyOnce(core_loop)) return barriers;
  ir::ForEachStmt(core_loop.body(), [&](Stmt s) {
    const isa::Instruction* const row = InstructionOf(s, target_);
    if (row != nullptr && row->barrier == isa::Instruction::Barrier::kCluster) {
      barriers.push_back(s);
    }
    return !s.Is(StmtKind::kFor) && !s.Is(StmtKind::kIf);
  });
  return barriers;
}

bool CoreRoles::IsTemporary(Stmt s) {
  return s.Is(StmtKind::kAllocate) && s.buffer()->scope == isa::kGmem;
}

std::vector<ir::Buffer> CoreRoles::Temporaries(Stmt body) {
  std::vector<ir::Buffer> buffers;
  for (; IsTemporary(body); body = body.body()) buffers.push_back(body.buffer());
  return buffers;
}

std::vector<Stmt> CoreRoles::TopStatements(Stmt body) {
  while (IsTemporary(body)) body = body.body();
  if (!body.Is(StmtKind::kSeq)) return {body};
  return {body.children().begin(), body.children().end()};
}

}  // namespace polynao
