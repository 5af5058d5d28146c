// Resizing and sampling of images by plain loops, for comparison: no code shared with compiler or
// simulator but the types' rounding. Coordinates are made in f32, as the operators' definition asks
// (a coordinate that rounds to another place reads another element); what is read at them is added
// up in f64.
#ifndef KERNELS_REFERENCE_IMAGE_H_
#define KERNELS_REFERENCE_IMAGE_H_

#include <array>
#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

enum class CoordinateMode { kAlignCorners, kAsymmetric, kHalfPixel };

// An image of `outer` planes of in[0] x in[1] x in[2] places (D, H, W; one place for axes that are
// not there) of `inner` elements each, to out[0] x out[1] x out[2].
struct ResizeProblem {
  int64_t outer = 1, inner = 1;
  std::array<int64_t, 3> in = {1, 1, 1}, out = {1, 1, 1};
  CoordinateMode mode = CoordinateMode::kAsymmetric;
  bool nearest = false;  // or linear
};

// Place o of an axis is at scale * o of the input (align_corners: scale = (in - 1) / (out - 1);
// asymmetric: in / out), or at scale * (o + 0.5) - 0.5 (half_pixel: in / out). Nearest takes the element
// there: rounded (align_corners, halves to the even place), or rounded down after 1e-5 is added.
// Linear weighs its two neighbours on each axis. Places outside are those of the edge.
void ReferenceResize(const ResizeProblem& p, const ir::Tensor& x, ir::Tensor& out);

// A run of boxes (y1, x1, y2, x2 as parts of the image's extents less 1) of images
// (n, h, w, c, or n, c, h, w with `channels_first`), each resized so that corners meet corners.
// Nearest rounds. Places outside the image are `outside`.
void ReferenceCropAndResize(bool channels_first, bool nearest, double outside, const ir::Tensor& x,
                            const ir::Tensor& boxes, const ir::Tensor& box_indices,
                            ir::Tensor& out);

// out (n, 2, h, w) = matrix (n, 2, 3) times (x, y, 1), where x and y run from -1 to 1.
void ReferenceAffineGrid(const ir::Tensor& matrix, ir::Tensor& out);

// Samples x (n, c, h, w) bilinearly at grid (n, 2, h, w), which has x and y from -1 to 1; what lies
// outside is 0.
void ReferenceGridSample(const ir::Tensor& x, const ir::Tensor& grid, ir::Tensor& out);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_IMAGE_H_
