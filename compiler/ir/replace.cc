#include "compiler/ir/replace.h"

#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

class Replacer : public Mutator {
 public:
  explicit Replacer(const absl::flat_hash_map<Expr, Expr>& by) : done_(by) {}
  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (const auto it = done_.find(e); it != done_.end()) return it->second;
    const Expr result = MutateOperands(e);
    return done_[e] = result;
  }

 private:
  absl::flat_hash_map<Expr, Expr> done_;
};

}  // namespace

Expr Replace(Expr e, const absl::flat_hash_map<Expr, Expr>& by) { return Replacer(by).Mutate(e); }

bool UsesBuffer(Expr e, Buffer buffer) {
  bool uses = false;
  ForEachExpr(e, [&](Expr part) {
    const bool names = part.Is(ExprKind::kLoad) || part.Is(ExprKind::kAddress);
    uses |= names && Buffer(part.buffer()) == buffer;
  });
  return uses;
}

bool UsesBuffer(Stmt s, Buffer buffer) {
  return AnyStmt(s, [&](Stmt part) {
    if (part.Is(StmtKind::kStore) && part.buffer() == buffer) return true;
    for (Expr operand : part.operands()) {
      if (UsesBuffer(operand, buffer)) return true;
    }
    return false;
  });
}

}  // namespace polynao::ir
