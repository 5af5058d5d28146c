// Index expressions of an instruction's meaning as linear functions of its loop variables.
#ifndef ISA_AFFINE_H_
#define ISA_AFFINE_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::isa {

// constant + the sum of coefficients[k] * vars[k]; all are i64 expressions over scalar parameters.
// A null expression is zero: the variable does not occur.
struct Affine {
  ir::Expr constant;
  std::vector<ir::Expr> coefficients;
};

// `e` (an integer) in terms of `vars`, e.g. i*stride + j + 2 over (i, j) has coefficients (stride,
// 1) and constant 2. None if it is not linear in them, or if it loads from memory.
std::optional<Affine> Linearize(ir::Expr e, absl::Span<const ir::Var> vars);

}  // namespace polynao::isa

#endif  // ISA_AFFINE_H_
