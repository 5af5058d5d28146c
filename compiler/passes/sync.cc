#include "compiler/passes/sync.h"

#include "base/status.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/sync_plan.h"
#include "compiler/target/control.h"

namespace polynao {
namespace {

using ir::Stmt;

// Puts the planned waits in front of the statements, in the order in which the
// plan numbers them.
class Rewriter {
 public:
  explicit Rewriter(const SyncPlan& plan) : plan_(plan) {}

  Stmt Rewrite(Stmt s) {
    ir::Context& c = s.context();
    std::vector<Stmt> result;
    for (const isa::Instruction* wait : plan_.before[next_++]) result.push_back(CallOf(c, *wait));
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Rewrite(child));
    result.push_back(c.Rebuild(s, s.operands(), children));
    return c.Seq(result);
  }

 private:
  const SyncPlan& plan_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<bool> Sync(ir::Function& function, const Target& target) {
  ASSIGN_OR_RETURN(const SyncPlan plan, PlanSync(function, target));
  const Stmt body = Rewriter(plan).Rewrite(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo SyncPass() {
  return {.name = "sync",
          .doc = "orders queues where one needs what another does",
          .run = [](ir::Function& function, const PassEnvironment& environment,
                    const OptionValues&) { return Sync(function, environment.target); }};
}

}  // namespace polynao
