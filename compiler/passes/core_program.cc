#include "compiler/passes/core_program.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/visit.h"
#include "compiler/target/control.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

class Projection {
 public:
  Projection(Stmt body, const Target& target, CoreId core)
      : target_(target), core_(core), c_(body.context()) {
    MarkShared(body);
  }

  Stmt Project(Stmt body) {
    const bool is_idle = (!uses_cid_ && core_.cluster != 0) || (!uses_tid_ && core_.core != 0);
    return is_idle ? c_.Nop() : Walk(body, false);
  }

 private:
  static bool IsLoopOver(Stmt s, std::string_view axis) {
    return s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread && s.name() == axis;
  }
  bool IsMemoryCore() const { return core_.core == target_.machine->cores_per_cluster(); }

  // Notes which statements contain a loop over tid or a barrier, and which axes are in use.
  bool MarkShared(Stmt s) {
    uses_cid_ = uses_cid_ || IsLoopOver(s, isa::kClusterAxis);
    uses_tid_ = uses_tid_ || IsLoopOver(s, isa::kCoreAxis);
    bool is_shared = IsLoopOver(s, isa::kCoreAxis) || IsBarrier(s, target_);
    for (Stmt child : s.children()) is_shared |= MarkShared(child);
    if (is_shared) shared_.insert(s);
    return is_shared;
  }

  static bool HasCoreLoop(Stmt root) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found || IsLoopOver(s, isa::kCoreAxis);
      return !found;
    });
    return found;
  }

  // `in_cluster`: between a loop over cid and the loops over tid in it.
  Stmt Walk(Stmt s, bool in_cluster) {
    if (in_cluster && !shared_.contains(s)) return IsMemoryCore() ? s : c_.Nop();
    if (IsLoopOver(s, isa::kClusterAxis)) {
      return Iterations(s, core_.cluster, target_.machine->clusters(),
                        in_cluster || HasCoreLoop(s.body()));
    }
    if (IsLoopOver(s, isa::kCoreAxis)) {
      const int64_t count = target_.machine->cores_per_cluster();
      return IsMemoryCore() ? BarriersOf(s, count) : Iterations(s, core_.core, count, false);
    }
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child, in_cluster));
    return s.Is(StmtKind::kSeq) ? c_.Seq(children) : c_.Rebuild(s, s.operands(), children);
  }

  // The iterations of a thread loop that number `number` of `count` runs.
  Stmt Iterations(Stmt loop, int64_t number, int64_t count, bool in_cluster) {
    const Stmt body = Walk(loop.body(), in_cluster);
    const bool is_constant = loop.extent().Is(ExprKind::kIntImm);
    if (is_constant && loop.extent().int_value() <= count) {
      if (number >= loop.extent().int_value()) return c_.Nop();
      return c_.LetStmt(loop.var(), loop.min() + number, body);
    }
    const Stmt mine =
        c_.If(ir::Eq((loop.var() - loop.min()) % count, c_.Int(loop.var().type(), number)), body);
    return c_.For(loop.var(), loop.min(), loop.extent(), mine);
  }

  // The barriers that each core meets once in a loop that every core enters: the memory core meets
  // them too, although it runs no iteration.
  Stmt BarriersOf(Stmt loop, int64_t count) {
    std::vector<Stmt> barriers;
    if (loop.min().IsInt(0) && loop.extent().IsInt(count)) {
      ir::ForEachStmt(loop.body(), [&](Stmt s) {
        if (IsBarrier(s, target_)) barriers.push_back(s);
        return !s.Is(StmtKind::kFor) && !s.Is(StmtKind::kIf);
      });
    }
    return c_.Seq(barriers);
  }

  const Target& target_;
  const CoreId core_;
  ir::Context& c_;
  bool uses_cid_ = false;
  bool uses_tid_ = false;
  absl::flat_hash_set<Stmt> shared_;
};

}  // namespace

std::vector<CoreId> AllCores(const Target& target) {
  std::vector<CoreId> cores;
  for (int cluster = 0; cluster < target.machine->clusters(); ++cluster) {
    for (int core = 0; core <= target.machine->cores_per_cluster(); ++core) {
      cores.push_back({cluster, core});
    }
  }
  return cores;
}

ir::Function CoreProgram(const ir::Function& function, const Target& target, CoreId core) {
  ir::Function result = function;
  result.body = Projection(function.body, target, core).Project(function.body);
  return result;
}

}  // namespace polynao
