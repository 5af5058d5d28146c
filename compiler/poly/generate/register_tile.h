// Elements that a loop updates, held in registers while it runs.
#ifndef COMPILER_POLY_GENERATE_REGISTER_TILE_H_
#define COMPILER_POLY_GENERATE_REGISTER_TILE_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"

namespace polynao::poly {

// The loop over a tile of `sizes` (each 1 or more; the last one is the vector's), in two forms:
//
//   for (k) for (i, a, m) for (j, b, n) body  -->
//   if (m == 4 && n == 16) for (k) unroll (i, 0, 4) vectorize (j, 0, 16) body   with a + i and b + j
//   else                   rows of at most 16 elements (below)
//
// The first form has constant bounds, so that `promote` keeps the elements that it updates in registers. In the other
// form each row is held in 16 elements of which n count, so that its vectors have constant bounds, too:
//
//   for (i, a, m) if (0 < n) {
//     allocate row: f64[16]
//     vectorize (j, 0, 16) row[j] = select(j < n, C[i, b + j], 0.0)
//     for (k) vectorize (j, 0, 16) row[j] = select(j < n, row[j] + A[i, k] * B[k, b + j], row[j])
//     vectorize (j, 0, 16) if (j < n) C[i, b + j] = row[j]
//   }
//
// Bounds of j may depend on i where they say so at the corners: in a triangle's tiles, 16 iterations for the first and
// the last i are 16 for each. Bounds that depend on k leave the first form to those k where the tile is whole:
//
//   for (k, 0, p) for (i, a, k - a) ...   for (k, p, e - p) unroll (i, 0, 4) ...     with p = min(max(a + 4, 0), e)
//
// The caller has shown that i may be outside of k, that the iterations of j are independent, and that loops have at
// most `sizes` iterations. The loop comes back as it is where bounds depend on others in other ways; rows are not held
// if bounds depend on k, or if the body is not one store whose element stays the same along k.
ir::Stmt WithRegisterTile(ir::Stmt loop, const std::vector<int64_t>& sizes);

// A loop that updates one element, which stands in a local variable meanwhile. As it is where that is not so.
//
//   if (0 < n) { allocate sum: f64[]  sum[] = x[f]  for (k, 0, n) { sum[] = sum[] + e }  x[f] = sum[] }
ir::Stmt WithSum(ir::Stmt loop);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GENERATE_REGISTER_TILE_H_
