// Nests of loops around a sum of products as grids of windows and lanes (isa/dot_grid.h).
#ifndef ISA_NATIVE_GRID_H_
#define ISA_NATIVE_GRID_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "compiler/ir/type.h"
#include "isa/dot_grid.h"

namespace polynao::isa::native {

// A loop around dst += a * b: its iterations, and the bytes that one moves each address.
struct GridLoop {
  int64_t count;
  int64_t a_stride, b_stride, dst_stride;
};

struct Grid {
  DotGrid grid;
  // The grid's first operand is b.
  bool is_swapped = false;
};

// The grid of a nest, outermost loop first, over elements of this type (DotGrid::element). None if a loop moves all
// three addresses, if the summed elements do not form rows (of floats in the order of the nest, since each sum is
// rounded), or if two iterations that belong to different sums may store to one result.
std::optional<Grid> FindGrid(absl::Span<const GridLoop> loops, ir::Type element, bool adds);

}  // namespace polynao::isa::native

#endif  // ISA_NATIVE_GRID_H_
