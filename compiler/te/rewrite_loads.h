// Replaces the loads of an expression.
#ifndef COMPILER_TE_REWRITE_LOADS_H_
#define COMPILER_TE_REWRITE_LOADS_H_

#include <functional>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"

namespace polynao::te {

// A read of a tensor: `load` with its indices already rewritten.
using LoadRewrite = std::function<ir::Expr(ir::Expr load)>;

// `e` with every load replaced, innermost first. `done` remembers what is rewritten.
ir::Expr RewriteLoads(ir::Expr e, const LoadRewrite& rewrite,
                      absl::flat_hash_map<ir::Expr, ir::Expr>& done);

}  // namespace polynao::te

#endif  // COMPILER_TE_REWRITE_LOADS_H_
