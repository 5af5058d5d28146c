#include "compiler/passes/core_program.h"

#include "compiler/target/control.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

class Projection {
 public:
  Projection(Stmt body, const Target& target, CoreId core)
      : core_(core),
        is_memory_core_(core.core == target.machine->cores_per_cluster()),
        c_(body.context()),
        target_(target),
        roles_(body, target) {}

  Stmt Project(Stmt body) {
    const bool is_idle = (!roles_.Uses(isa::Level::kCluster) && core_.cluster != 0) ||
                         (!roles_.Uses(isa::Level::kCore) && core_.core != 0);
    std::vector<Stmt> top;
    for (Stmt s : CoreRoles::TopStatements(body)) {
      if (!is_idle || IsBarrier(s, target_)) top.push_back(Walk(s, RunsOn::kCore));
    }
    Stmt result = c_.Seq(top);
    if (result.IsEmpty()) return result;
    const std::vector<ir::Buffer> temporaries = CoreRoles::Temporaries(body);
    for (auto it = temporaries.rbegin(); it != temporaries.rend(); ++it) {
      result = c_.Allocate(*it, result);
    }
    return result;
  }

 private:
  // `around`: who runs the statement around `s`.
  Stmt Walk(Stmt s, RunsOn around) {
    const RunsOn runs_on = roles_.Of(s, around);
    if (runs_on == RunsOn::kMemoryCore) return is_memory_core_ ? s : c_.Nop();
    if (IsThreadLoop(s)) {
      if (IsCoreLoop(s) && is_memory_core_) return c_.Seq(roles_.BarriersOfMemoryCore(s));
      return Iterations(s, IsCoreLoop(s) ? core_.core : core_.cluster, runs_on);
    }
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child, runs_on));
    return s.Is(StmtKind::kSeq) ? c_.Seq(children) : c_.Rebuild(s, s.operands(), children);
  }

  // The iterations of a thread loop that the unit with this number runs.
  Stmt Iterations(Stmt loop, int64_t number, RunsOn runs_on) {
    const Stmt body = Walk(loop.body(), roles_.InBody(loop, runs_on));
    if (roles_.RunsAtMostOnce(loop)) {
      if (number >= loop.extent().int_value()) return c_.Nop();
      return c_.LetStmt(loop.var(), loop.min() + number, body);
    }
    const Expr at = (loop.var() - loop.min()) % roles_.Units(loop);
    return c_.For(loop.var(), loop.min(), loop.extent(),
                  c_.If(ir::Eq(at, c_.Int(loop.var().type(), number)), body));
  }

  const CoreId core_;
  const bool is_memory_core_;
  ir::Context& c_;
  const Target& target_;
  const CoreRoles roles_;
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
