// Reductions over windows of an image as reductions over one run of pixels, so that one vector instruction goes over
// all rows of a tile, and begins where vector instructions may:
//
//   S[y, x, c] = sum of P[y + r, x + s, c] * F[r, s, c] over r, s        P: 8 x 8 x 48 of f32, S: 6 x 6 x 48
//
//     -->   P'[y, x, c]       = P[y, x, c], rows of 12 pixels
//           W[v, k, w, c]     = pixel 2k + v + w of P'                   v, w < 2: 96 elements are 3 times 128 bytes
//           S'[q, h, w, c]    = sum of W[o % 2, 2q + h + o / 2, w, c] * F[r, s, c]       o = 12r + s
//           S[y, x, c]        = S'[3y + x / 4, x / 2 % 2, x % 2, c]      4 pixels are 3 times 64 elements
//
// Between the rows of S, pixels are computed that nobody reads.
//
// Cores may share the columns. Then each of these blocks of columns has an image of its own, with those beside it that
// its windows reach into, and what stands above has one dimension more. Of blocks of 3 columns:
//
//   S[y, x, c] = S of block x / 3 [y, x % 3, c]          P of block b [y, x, c] = P[y, 3b + x, c], x < 3 + 2
#ifndef COMPILER_TE_CARD_FLAT_WINDOWS_H_
#define COMPILER_TE_CARD_FLAT_WINDOWS_H_

#include <optional>

#include "compiler/te/graph.h"

namespace polynao::te {

// The graph of `output` with such reductions rewritten, as a graph of its own in the same context; nothing if none of
// its computes is one: windows of the last dimensions but one of a tensor, with one element of the last for each of the
// result's. Strides: the image is taken apart into its rows and columns by their remainders first.
// `channels`: of the last dimension those that a core has; they divide it. `shifts`: with a copy of the image for each
// distance from where vector instructions may begin; nothing if there is one such distance. Without, places of a window
// that begin elsewhere are copied for themselves.
// `columns`: of the last dimension but one those of a block; they divide it, else the result is nothing. `one_row`: for
// tiles of one row. Rows of the image are not taken apart then, so that it has none but those that are read; between
// rows of results so far apart whole rows would be computed that nobody reads. Nothing where they are side by side.
std::optional<Tensor> FlattenWindows(const Tensor& output, int64_t channels, bool shifts,
                                     int64_t columns, bool one_row);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_FLAT_WINDOWS_H_
