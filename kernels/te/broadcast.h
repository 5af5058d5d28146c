// Broadcasting: elementwise operators of two tensors whose shapes differ.
#ifndef KERNELS_TE_BROADCAST_H_
#define KERNELS_TE_BROADCAST_H_

#include <functional>

#include "compiler/ir/ir.h"
#include "kernels/reference/elementwise.h"
#include "kernels/te/operators.h"

namespace polynao::kernels {

// The operator `row`, C = A op B of one shape, which may now be given a shape for B as well. If it
// differs from A's, the two are extended as numpy does: dimensions count from the last one, and those
// that are missing or 1 are repeated. `value` is an element of C from those of A and B, computed by
// the instruction of the operator's name.
Operator WithBroadcasting(Operator row, BinaryOp op,
                          std::function<ir::Expr(ir::Expr a, ir::Expr b)> value);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_BROADCAST_H_
