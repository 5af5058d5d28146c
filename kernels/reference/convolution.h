// Convolutions by plain loops, for comparison: no code shared with compiler or simulator but the
// types' rounding.
#ifndef KERNELS_REFERENCE_CONVOLUTION_H_
#define KERNELS_REFERENCE_CONVOLUTION_H_

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

// A 2-D convolution as a layer of a network: input (h, w, ci), filter (co, kh, kw, ci / groups), both
// of one type, output (ho, wo, co).
struct ConvLayer {
  int64_t h = 0, w = 0, ci = 0;
  int64_t co = 0, kh = 0, kw = 0;
  int64_t stride = 1, dilation = 1, groups = 1;
  int64_t pad_h = 0, pad_w = 0;  // zeros on each side
  bool bias = false;
  bool relu = false;
  double scale = 1;
  bool is_fused = false;  // a product of floats and its sum are rounded once, as by fma

  int64_t ho() const { return (h + 2 * pad_h - dilation * (kh - 1) - 1) / stride + 1; }
  int64_t wo() const { return (w + 2 * pad_w - dilation * (kw - 1) - 1) / stride + 1; }
  // Input channels of a group.
  int64_t group_ci() const { return ci / groups; }
};

// A dense layer, `rows` x `k` times the transpose of `co` x `k`: a convolution of a row of pixels with filters of one.
inline ConvLayer DenseLayer(int64_t rows, int64_t k, int64_t co) {
  return {.h = 1, .w = rows, .ci = k, .co = co, .kh = 1, .kw = 1};
}

// out = cast(f32(sum + bias) * f32(scale)), then the larger of that and 0 with `relu`. Integers add up in i32, which
// wraps; f16 and f32 in f32, in the order kh, kw, ci; the zeros around the image are factors like its elements. `bias`
// (co) is of the sum's type; null without one. An i32 output is the sum (+ bias) itself, not scaled. Casts to integers
// truncate and saturate.
void ReferenceConv2d(const ConvLayer& layer, const ir::Tensor& input, const ir::Tensor& filter,
                     const ir::Tensor* bias, ir::Tensor& out);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_CONVOLUTION_H_
