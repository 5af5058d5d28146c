#include "compiler/passes/wait_mutation.h"

#include "base/check.h"
#include "compiler/ir/visit.h"
#include "compiler/target/control.h"

namespace polynao {
namespace {

using ir::Stmt;
using ir::StmtKind;

// A pass may put one node into several places, so that the number counts and not the node.
Stmt Without(Stmt s, const Target& target, int which, int& next) {
  if (IsWait(s, target) && next++ == which) return s.context().Nop();
  std::vector<Stmt> children;
  for (Stmt child : s.children()) children.push_back(Without(child, target, which, next));
  return s.context().Rebuild(s, s.operands(), children);
}

}  // namespace

int CountWaits(const ir::Function& function, const Target& target) {
  int count = 0;
  ir::ForEachStmt(function.body, [&](Stmt s) {
    count += IsWait(s, target);
    return true;
  });
  return count;
}

ir::Function WithoutWait(const ir::Function& function, const Target& target, int which) {
  ir::Function result = function;
  int next = 0;
  result.body = Without(function.body, target, which, next);
  POLYNAO_CHECK(which < next) << which << " of " << next << " waits";
  return result;
}

std::string_view WaitName(const ir::Function& function, const Target& target, int which) {
  std::string_view name;
  int next = 0;
  ir::ForEachStmt(function.body, [&](Stmt s) {
    if (IsWait(s, target) && next++ == which) name = s.value().name();
    return true;
  });
  return name;
}

}  // namespace polynao
