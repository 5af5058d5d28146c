// Broadcasting: elementwise operators of two tensors whose shapes differ.
#ifndef KERNELS_TE_BROADCAST_H_
#define KERNELS_TE_BROADCAST_H_

#include <functional>

#include "compiler/ir/ir.h"
#include "kernels/reference/elementwise.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// The operator `row`, C = A op B, extended to operands of two shapes. If B's shape differs from A's, both are broadcast
// as in numpy: dimensions are aligned at the last one, and a dimension that is missing or 1 is repeated. `value` is an
// element of C from those of A and B, computed by the instruction of the operator's name.
Operator WithBroadcasting(Operator row, BinaryOp op,
                          std::function<ir::Expr(ir::Expr a, ir::Expr b)> value);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_BROADCAST_H_
