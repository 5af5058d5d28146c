// Windows that slide along a tile: each row of a tile computes only what the rows before it have not.
//
//   a[x] = ..     b[x] = a[x - 1] + a[x + 1]        a tile of rows 32 t .. 32 t + 31 of b, row by row
//
//   row 32 t of b:  computes a[32 t - 1 .. 32 t + 1]
//   row x after:    computes a[x + 1]; a[x - 1 .. x + 1] are in a[.. mod 4]
//
// So nothing is computed twice in a tile, and of an array only the window of a row is kept, which stays in the nearest
// cache.
#ifndef COMPILER_POLY_FUSE_SLIDE_H_
#define COMPILER_POLY_FUSE_SLIDE_H_

#include <optional>

#include "compiler/poly/arrange/local_copies.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

// { [t0, .., x] -> [t0, .., x'] : x' < x }: the rows of a tile before each of its rows, `rows` = { [t0, .., x] }.
// Throws isl::exception.
isl::map RowsBefore(const isl::set& rows);

// Returns the instances that `window`, { [t0, .., x] -> S[i] }, has for a row and not for those before. Throws
// isl::exception.
isl::map NewIn(const isl::map& window, const isl::map& before);

// Where a tile keeps the windows of its rows.
struct SlidingBox {
  Box box;  // at a place that depends on the tile; along dimension `slides` it has the place 0
  int slides =
      -1;  // element e along this dimension is number e mod box.sizes[slides], a power of two; -1: none slides
};

// For `window`, { [t0, .., x] -> A[a] }. Nothing if it is in no box of constant size, moves along several dimensions,
// or moves back as x grows: then a row could take the place of one that is still read. Throws isl::exception.
std::optional<SlidingBox> SlidingBoxOf(const isl::map& window, const isl::map& before);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_SLIDE_H_
