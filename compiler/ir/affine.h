// Index expressions as linear functions of loop variables.
#ifndef COMPILER_IR_AFFINE_H_
#define COMPILER_IR_AFFINE_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// constant + the sum of coefficients[k] * vars[k]; all are i64 expressions over scalar parameters.
// A null expression is zero: the variable does not occur.
struct Affine {
  Expr constant;
  std::vector<Expr> coefficients;
};

// `e` (an integer) in terms of `vars`, e.g. i*stride + j + 2 over (i, j) has coefficients (stride,
// 1) and constant 2. None if it is not linear in them, or if it loads from memory.
std::optional<Affine> Linearize(Expr e, absl::Span<const Var> vars);

}  // namespace polynao::ir

#endif  // COMPILER_IR_AFFINE_H_
