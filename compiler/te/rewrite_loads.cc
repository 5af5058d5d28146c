#include "compiler/te/rewrite_loads.h"

#include <vector>

namespace polynao::te {

using ir::Expr;
using ir::ExprKind;

Expr RewriteLoads(Expr e, const LoadRewrite& rewrite, absl::flat_hash_map<Expr, Expr>& done) {
  auto it = done.find(e);
  if (it != done.end()) return it->second;
  std::vector<Expr> operands;
  operands.reserve(e.operands().size());
  for (Expr operand : e.operands()) operands.push_back(RewriteLoads(operand, rewrite, done));
  Expr result = e.context().Rebuild(e, operands);
  if (result.Is(ExprKind::kLoad)) result = rewrite(result);
  done.emplace(e, result);
  return result;
}

}  // namespace polynao::te
