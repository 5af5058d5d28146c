#include "compiler/passes/let_values.h"

namespace polynao {

using ir::Expr;
using ir::Type;

bool LetValues::Bind(ir::Stmt let) {
  analyzer_.BindLet(let.var(), let.value());
  const Type type = let.var().type();
  if (type != Type::kI1 && type != Type::kI32 && type != Type::kI64) return false;
  const Expr value = Expand(let.value());
  if (analyzer_.CanTrap(value) || analyzer_.CanOverflow(value)) return false;
  values_[let.var()] = value;
  bound_.push_back(let.var());
  return true;
}

Expr LetValues::Expand(Expr e) const { return values_.empty() ? e : ir::Substitute(e, values_); }

void LetValues::ForgetAfter(size_t bound) {
  for (; bound_.size() > bound; bound_.pop_back()) values_.erase(bound_.back());
}

}  // namespace polynao
