// Expressions of isl's syntax trees as expressions of loop IR.
#ifndef COMPILER_POLY_MODEL_AST_VALUE_H_
#define COMPILER_POLY_MODEL_AST_VALUE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

// Sums, differences and products of i64 with constants folded: (x + 3) + -4 is x - 1.
bool IsConstant(ir::Expr e);
ir::Expr Plus(ir::Expr a, int64_t b);
ir::Expr Plus(ir::Expr a, ir::Expr b);
ir::Expr Minus(ir::Expr a, ir::Expr b);
ir::Expr Times(ir::Expr a, ir::Expr b);

// Maps isl's parameters ("n") and loop variables ("c3") to their values, in i64.
using AstNames = absl::flat_hash_map<std::string, ir::Expr>;

// An integer (i64) or a condition of isl's. `names` has all names in it.
ir::Expr AstValue(const isl::ast_expr& e, const AstNames& names, ir::Context& context);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_AST_VALUE_H_
