// Walking and rewriting loop IR.
#ifndef COMPILER_IR_VISIT_H_
#define COMPILER_IR_VISIT_H_

#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// Calls `visit` once for each distinct expression below and including `root`, operands first.
void ForEachExpr(Expr root, const std::function<void(Expr)>& visit);

// Calls `visit` for each statement below and including `root`, outer ones first. `visit` returns
// whether to go into the statement's children.
void ForEachStmt(Stmt root, const std::function<bool(Stmt)>& visit);

// Returns true if `matches` holds for a statement below and including `root`. Asks in the order of
// ForEachStmt, until one does.
bool AnyStmt(Stmt root, const std::function<bool(Stmt)>& matches);

// Calls `visit` once for each distinct expression in the statements below `root`.
void ForEachExprIn(Stmt root, const std::function<void(Expr)>& visit);

// The variables that `e` reads and does not bind itself.
absl::flat_hash_set<Var> FreeVars(Expr e);
bool UsesVar(Expr e, Var var);
bool UsesVar(Stmt s, Var var);

// How many statements and distinct expressions stand below `root`: the "program size" that compile
// times are given against.
size_t NodeCount(Stmt root);

// The statement like `s` over what `map` makes of its children, in order.
template <typename Map>
Stmt MapChildren(Stmt s, const Map& map) {
  std::vector<Stmt> children;
  children.reserve(s.children().size());
  for (Stmt child : s.children()) children.push_back(map(child));
  return s.context().Rebuild(s, s.operands(), children);
}

// Rewrites trees bottom-up. Override what a pass changes and call the base for the rest; a tree in
// which nothing changed comes back as the same node.
class Mutator {
 public:
  virtual ~Mutator() = default;
  virtual Expr Mutate(Expr e);
  virtual Stmt Mutate(Stmt s);

 protected:
  // The same node over mutated operands and children.
  Expr MutateOperands(Expr e);
  Stmt MutateChildren(Stmt s);
};

// `e` or `s` with variables and buffers replaced. The bodies of loops keep their own variables:
// a binding of a replaced variable is an error of the caller. Buffers are replaced by buffers of as
// many dimensions.
using VarMap = absl::flat_hash_map<Var, Expr>;
using BufferMap = absl::flat_hash_map<Buffer, Buffer>;
Expr Substitute(Expr e, const VarMap& vars, const BufferMap& buffers = {});
Stmt Substitute(Stmt s, const VarMap& vars, const BufferMap& buffers = {});

// `s` with new variables and buffers for all that it binds, so that it can stand a second time in a
// tree (a binding occurs at most once in a function).
Stmt CloneWithFreshBindings(Stmt s);

// `function` rebuilt in a context of its own, or in `target`.
Function CloneInto(const Function& function, std::shared_ptr<Context> target);

// The extern functions that `function` calls, directly or in the bodies of others. Those that a body
// calls stand in front of it.
std::vector<const ExternNode*> ExternsOf(const Function& function);

// Returns true if two functions are equal up to the names and identities of what they bind.
bool StructurallyEqual(const Function& a, const Function& b);

}  // namespace polynao::ir

#endif  // COMPILER_IR_VISIT_H_
