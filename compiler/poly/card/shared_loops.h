// Scalar code of which all cores of a card have a part.
#ifndef COMPILER_POLY_CARD_SHARED_LOOPS_H_
#define COMPILER_POLY_CARD_SHARED_LOOPS_H_

#include "compiler/ir/ir.h"
#include "isa/machine.h"

namespace polynao::poly {

// A function whose statements follow one another, with its outermost loops shared by all cores where no iteration needs
// what another one stores, nor stores what another one reads or stores. What is no such loop runs on one core. The
// function itself if it has no such loop, or is not affine.
//
//   for (i, 0, 64) { for (j, 1, 63) { Y[i, j] = Y[i, j - 1] + X[i, j] } }
//     -->  thread (cid, 4) { thread (tid, 4) {
//            for (i, 0, min(4, 64 - (cid * 4 + tid) * 4)) { .. Y[(cid * 4 + tid) * 4 + i, ..] } } }
ir::Function ShareLoops(const ir::Function& function, const isa::Machine& machine);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_SHARED_LOOPS_H_
