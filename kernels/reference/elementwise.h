// References by plain loops: they share no code with compiler or simulator but the types' rounding.
#ifndef KERNELS_REFERENCE_ELEMENTWISE_H_
#define KERNELS_REFERENCE_ELEMENTWISE_H_

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kMax, kMin };

// c = a op b, element by element; all of one type and shape. Integers wrap, floats round once. kDiv
// is for floats.
void ReferenceBinary(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b, ir::Tensor& c);

// c = a op scalar, the scalar rounded to the type of `a` first.
void ReferenceScalar(BinaryOp op, const ir::Tensor& a, double scalar, ir::Tensor& c);

enum class UnaryOp {
  kRelu,       // the larger of x and 0
  kLeakyRelu,  // the larger of x and x * parameter, the product rounded to the type; floats
  kSigmoid,    // 1 / (1 + exp(-x)); floats, as the following
  kTanh,
  kExp,
  kAbs,
};

// y = op(x), element by element; both of one type and shape. Functions of floats are computed in
// f64 and rounded once. `parameter` is rounded to the type first; most operators have none.
void ReferenceUnary(UnaryOp op, const ir::Tensor& x, double parameter, ir::Tensor& y);

// y = op(x * scale) * out_scale + zero of i8, in f32 but for the function, rounded to the nearest integer, halves to
// even, and saturated. op: kSigmoid or kTanh.
void ReferenceQuantized(UnaryOp op, const ir::Tensor& x, double scale, double out_scale,
                        double zero, ir::Tensor& y);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_ELEMENTWISE_H_
