// References by plain loops: they share no code with compiler or simulator but the types' rounding.
#ifndef KERNELS_REFERENCE_ELEMENTWISE_H_
#define KERNELS_REFERENCE_ELEMENTWISE_H_

#include "compiler/ir/interpreter.h"

namespace polynao::kernels {

enum class BinaryOp { kAdd, kSub, kMul, kMax, kMin };

// c = a op b, element by element; all of one type and shape. Integers wrap, floats round once.
void ReferenceBinary(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b, ir::Tensor& c);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_ELEMENTWISE_H_
