// Guards as bounds of loops: what the guards of one nest say about its loops.
#ifndef COMPILER_PASSES_GUARD_BOUNDS_H_
#define COMPILER_PASSES_GUARD_BOUNDS_H_

#include "compiler/arith/analyzer.h"
#include "compiler/passes/guarded_nest.h"

namespace polynao {

// The bounds that the guards of a copy or of padding set:
//   for (y, 0, 4) { if (t * 4 + y < n) S }  -->  for (y, 0, min(4, n - t * 4)) S
//   for (i, 0, 8) { for (j, 0, 8) { if (j <= i) S } }  -->  for (i, 0, 8) { for (j, 0, i + 1) S }     (padding)
// `analyzer` knows the facts around the nest and its loops.
GuardBounds FindCopyBounds(const GuardedNest& nest, arith::Analyzer& analyzer);

// The iterations of the outermost loop that the guards of a reducing nest leave
// (GuardBounds::fewer).
GuardBounds FindFewerIterations(const GuardedNest& nest, arith::Analyzer& analyzer);

}  // namespace polynao

#endif  // COMPILER_PASSES_GUARD_BOUNDS_H_
