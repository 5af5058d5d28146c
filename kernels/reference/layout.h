// Operators that only move elements, by plain loops, for comparison: no code shared with compiler or
// simulator but the types' rounding.
#ifndef KERNELS_REFERENCE_LAYOUT_H_
#define KERNELS_REFERENCE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

// y (before + h + after, before + w + after, c) = x (h, w, c) with `value`, rounded to the type,
// around it.
void ReferencePad(int64_t before, int64_t after, double value, const ir::Tensor& x, ir::Tensor& y);

// x repeated along its axes of extent 1, and along new outer ones, to `shape`, as numpy broadcasts.
ir::Tensor ReferenceBroadcast(const ir::Tensor& x, const std::vector<int64_t>& shape);

// x (n, a.., rest) to out (n / product of block, cropped a * block.., rest): element `i` of the batch,
// counted in out's batches, goes to place i of each block. `begin` elements are cropped before
// each axis, and so many behind it that out's shape is left.
void ReferenceBatchToSpace(const std::vector<int64_t>& block, const std::vector<int64_t>& begin,
                           const ir::Tensor& x, ir::Tensor& out);

// y[.., i_d, ..] = x at the place whose coordinate from[d] is begin[d] + step[d] * i_d, for all dimensions d of y:
// `from` exchanges dimensions, a step of -1 reverses one.
void ReferenceWalk(const std::vector<int64_t>& from, const std::vector<int64_t>& begin,
                   const std::vector<int64_t>& step, const ir::Tensor& x, ir::Tensor& y);

// y = a, then b behind it along `axis`.
void ReferenceConcat(int64_t axis, const ir::Tensor& a, const ir::Tensor& b, ir::Tensor& y);

// y (h * scale, w * scale, c) = x (h, w, c), each pixel as a square of scale rows and columns.
void ReferenceResizeNearest(int64_t scale, const ir::Tensor& x, ir::Tensor& y);

// y (h * 2, w * 2, c) from x (h, w, c), first along rows, then along columns: elements 2i and 2i + 1 are 0.75 * x[i] +
// 0.25 * x[i - 1 or i + 1], with x[i] where x has no such element. Products and sums are rounded to the type; floats.
void ReferenceResizeBilinear(const ir::Tensor& x, ir::Tensor& y);

// y[i, ..] = x[n, ..] for n = numbers[i], or the nearest row that x has.
void ReferenceGather(const ir::Tensor& x, const ir::Tensor& numbers, ir::Tensor& y);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_LAYOUT_H_
