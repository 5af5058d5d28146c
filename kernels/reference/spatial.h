// Convolutions of one to three spatial axes in any layout, forward, transposed and backward, by plain
// loops for comparison: no code shared with compiler or simulator but the types' rounding. All from
// the definition, element by element or (transposed and backward) input by input; sums in f64,
// which holds those of 8-bit integers exactly.
#ifndef KERNELS_REFERENCE_SPATIAL_H_
#define KERNELS_REFERENCE_SPATIAL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

struct SpatialAxis {
  int64_t in = 1, kernel = 1, out = 1;  // elements
  int64_t stride = 1, before = 0, dilation = 1;
};

// Layouts name the dimensions of tensors by letters: N batch, C channel, D H W the spatial axes in
// this order; of filters O output and I input channel. Groups: output channel o reads the input
// channels of group o / (co / groups); a filter has ci / groups input channels.
struct SpatialProblem {
  int64_t n = 1, ci = 1, co = 1, groups = 1;
  std::vector<SpatialAxis> axes;  // one to three: W, or H W, or D H W
  std::string layout, kernel_layout;
};

// sum over i, k of x[o * stride + k * dilation - before, i] * w[k, i, o] in row-major order of N O
// D H W, whatever the layout.
std::vector<double> ReferenceSpatial(const SpatialProblem& p, const ir::Tensor& x,
                                     const ir::Tensor& w);
// The transposed one: x[q, i] * w[k, i, o] is added to out[q * stride + k - before, o]. One group;
// the filter has all input channels.
std::vector<double> ReferenceSpatialTransposed(const SpatialProblem& p, const ir::Tensor& x,
                                               const ir::Tensor& w);

// The gradients of a depthwise convolution (out[q, c * m + j] = sum over k of x[q * stride + k -
// before, c] * w[k, c, j]; H and W) with respect to x (N H W C) and to w (H W C M), given that of
// out (N H W C*M).
void ReferenceDepthwiseBackInput(const SpatialProblem& p, const ir::Tensor& w,
                                 const ir::Tensor& out_grad, ir::Tensor& in_grad);
void ReferenceDepthwiseBackWeight(const SpatialProblem& p, const ir::Tensor& x,
                                  const ir::Tensor& out_grad, ir::Tensor& w_grad);

// A 2-D convolution (N C H W, O I H W, one group of channels) that samples x bilinearly at o * stride
// + k * dilation - before + offset; offset has, for each of `deformable_groups` runs of input channels
// and each k, a distance in H and then one in W, at each output place. Samples outside
// [0, extent) are 0, neighbours beyond the last row or column are that one.
void ReferenceDeformable(const SpatialProblem& p, int64_t deformable_groups, const ir::Tensor& x,
                         const ir::Tensor& offset, const ir::Tensor& w, ir::Tensor& out);

// The elements of `tensor`, whose dimensions `layout` names, in row-major order of the dimensions
// that `order` names; letters that `layout` lacks have one element.
std::vector<double> InOrder(const ir::Tensor& tensor, std::string_view layout,
                            std::string_view order);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_SPATIAL_H_
