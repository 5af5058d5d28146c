// Windows with margins that reductions take in, as stages of their own.
#ifndef COMPILER_POLY_CARD_SUM_WINDOWS_H_
#define COMPILER_POLY_CARD_SUM_WINDOWS_H_

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// What a reduction takes in under a condition, computed or a factor of a product, becomes a stage: then each element is
// computed once for all windows, and a product has factors that are loads.
//
//   Y[x] += select(1 <= x + i && x + i < 9, X[x + i - 1], 0) * W[i]     x in [0, 9), i in [0, 3)
//     -->  X.window[p] = select(1 <= p && p < 9, X[p - 1], 0)   p in [0, 11)     Y[x] += X.window[x + i] * W[i]
void TakeWindowsOut(ir::Context& c, NestStages& stages);

// Makes windows that run backwards along an axis run forwards: of all values of `i` in X[x - i] the last one first.
void RunForwards(NestStage& stage);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_SUM_WINDOWS_H_
