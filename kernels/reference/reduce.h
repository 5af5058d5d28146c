// Reductions and pooling by plain loops, for comparison: no code shared with compiler or simulator
// but the types' rounding.
#ifndef KERNELS_REFERENCE_REDUCE_H_
#define KERNELS_REFERENCE_REDUCE_H_

#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

enum class ReduceOp { kSum, kMean, kMax, kMin };

// y[o, i] = the sum, mean, largest or smallest of x[o, 0, i] ... x[o, count - 1, i]; both of one type.
// Sums of f16 and bf16 are made in f32, others in their type, in the order of the elements; integers
// wrap. The mean is the sum times 1 / count, rounded to the sum's type, of floats; of i8 the sum of 32 bits,
// as f32, times 1 / count, rounded to the nearest integer, halves to even. Results are rounded to the type
// once. Largest and smallest skip NaNs and are an infinity (-inf, inf) where all elements are NaN. count >= 1.
void ReferenceReduce(ReduceOp op, int64_t outer, int64_t count, int64_t inner, const ir::Tensor& x,
                     ir::Tensor& y);

// Windows of window x window elements, stride apart, on an image (h, w, c) with pad elements around
// it on each side; 0 <= pad < window.
struct PoolLayer {
  int64_t h = 0, w = 0, c = 0;
  int64_t window = 1, stride = 1, pad = 0;
  int64_t ho() const { return (h + 2 * pad - window) / stride + 1; }
  int64_t wo() const { return (w + 2 * pad - window) / stride + 1; }
};

// y (ho, wo, c) = the largest element of each window (kMax; what lies around the image is not looked
// at), or the mean (kMean: zeros around the image count, so that each sum is of window * window
// elements), which is made as ReferenceReduce makes it, row by row of the window.
void ReferencePool2d(ReduceOp op, const PoolLayer& layer, const ir::Tensor& x, ir::Tensor& y);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_REDUCE_H_
