// ShrinkProgram of random_program.h.
#include <functional>
#include <vector>

#include "compiler/ir/random_program.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

// Makes the change number `target`, in order of a walk over the statements, to a function body.
class Shrinker {
 public:
  explicit Shrinker(int target) : left_(target) {}

  Stmt Change(Stmt s) {
    Context& c = s.context();
    if (!s.IsEmpty() && Here()) return c.Nop();
    switch (s.kind()) {
      case StmtKind::kFor:
        if (Here()) return c.LetStmt(s.var(), s.min(), s.body());
        if (s.for_kind() != ForKind::kSerial && Here()) {
          return c.For(s.var(), s.min(), s.extent(), s.body());
        }
        break;
      case StmtKind::kIf:
        if (Here()) return s.then_case();
        if (!s.else_case().IsEmpty() && Here()) return s.else_case();
        break;
      case StmtKind::kLet:
        if (!UsesVar(s.body(), s.var()) && Here()) return s.body();
        break;
      case StmtKind::kAllocate:
        // Well-formed only if the body does not use the buffer.
        if (Here()) return s.body();
        break;
      case StmtKind::kPragma:
        if (Here()) return s.body();
        break;
      default:
        break;
    }
    std::vector<Expr> operands;
    for (Expr e : s.operands()) operands.push_back(Change(e));
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Change(child));
    return left_ < 0 ? c.Rebuild(s, operands, children) : s;
  }

  // Whether the walk found the change.
  bool Changed() const { return left_ < 0; }

 private:
  // Whether the next possible change is the one to make.
  bool Here() { return left_-- == 0; }

  Expr Change(Expr e) {
    if (left_ < 0 || e.IsConst()) return e;
    Context& c = e.context();
    if (Here()) return c.Const(e.type(), 0);
    if (Here()) return c.Const(e.type(), 1);
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      if (operand.type() == e.type() && Here()) return operand;
    }
    for (Expr operand : e.operands()) operands.push_back(Change(operand));
    return left_ < 0 ? c.Rebuild(e, operands) : e;
  }

  int left_;
};

}  // namespace

Function ShrinkProgram(const Function& function, const std::function<bool(const Function&)>& fails,
                       int max_calls) {
  Function smallest = function;
  int calls = 0;
  bool progress = true;
  while (progress) {
    progress = false;
    for (int target = 0;; ++target) {
      Shrinker shrinker(target);
      Function candidate = smallest;
      candidate.body = shrinker.Change(smallest.body);
      if (!shrinker.Changed()) break;
      if (candidate.body == smallest.body || !Verify(candidate).ok()) continue;
      if (calls++ >= max_calls) return smallest;
      if (!fails(candidate)) continue;
      smallest = candidate;
      progress = true;
      --target;  // what stands here now may shrink further
    }
  }
  return smallest;
}

}  // namespace polynao::ir
