// Loops of which all but a few iterations at both ends do the same.
#ifndef COMPILER_POLY_FUSE_INNER_PARTS_H_
#define COMPILER_POLY_FUSE_INNER_PARTS_H_

#include "compiler/ir/ir.h"

namespace polynao::poly {

// Takes loops apart, so that what is left in the middle suits vectors. Iterations keep their order.
//
// Borders: where selects compare the loop's variable with values that do not change in the loop, the iterations for
// which all of them hold come alone.
//
//   for (y, a, n) { u[y] = select(1 <= y && y < 8, d[y - 1], 0) }
//   -->  for (y, a, ..) {..}   for (y, max(a, 1), ..) { u[y] = d[y - 1] }   for (y, .., ..) {..}
//
// A loop around others has two forms of its body, and a test in each iteration which one it is.
//
// Periods: where an innermost loop's variable is divided by two, three or four, so many iterations are taken together.
// Quotients then move on by one each time, and remainders are constants.
//
//   for (y, a, n) { u[y] = d[y / 2] + d[(y + 1) / 2] }
//   -->  for (y, a, ..) {..}                                    up to the first multiple of 2
//        for (k, (a + 1) / 2, ..) { u[2 k] = d[k] + d[k]   u[2 k + 1] = d[k] + d[k + 1] }       after `simplify`
//        for (y, .., ..) {..}
//
// What only the first iteration of a loop around does stays as it is: code for it would be most of a tile's.
//
// A vector of the first form gathers; one of the second loads and stores runs of elements.
ir::Stmt WithInnerParts(ir::Stmt s);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_INNER_PARTS_H_
