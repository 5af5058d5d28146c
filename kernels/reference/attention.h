// Attention by plain loops, for comparison: all in f64, rounded once at the end; no code shared with compiler or
// simulator but the types' rounding.
#ifndef KERNELS_REFERENCE_ATTENTION_H_
#define KERNELS_REFERENCE_ATTENTION_H_

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

// y[h] = softmax(scale * q[h] * transpose of k[h]) * v[h], the softmax along each row; q and y (heads, rows, size), k
// and v (heads, keys, size), floats.
void ReferenceAttention(double scale, const ir::Tensor& q, const ir::Tensor& k, const ir::Tensor& v,
                        ir::Tensor& y);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_ATTENTION_H_
