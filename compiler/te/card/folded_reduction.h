// Reductions of columns in two steps, so that each vector instruction takes in many rows at once:
//
//   S[a] = sum of X[r, a] over r < 1024   -->   T[q, a] = sum of X[32 p + q, a] over p < 32      32 rows an instruction
//                                               S[a]    = sum of T[q, a] over q < 32
//
// Sums of floats are then added in another order.
#ifndef COMPILER_TE_CARD_FOLDED_REDUCTION_H_
#define COMPILER_TE_CARD_FOLDED_REDUCTION_H_

#include <optional>

#include "compiler/te/graph.h"

namespace polynao::te {

// The graph of `output` with such reductions rewritten, as a graph of its own in the same context; nothing if none of
// its computes is one: a reduction over many places whose rows, the elements of a place, stand side by side in memory.
// Of one reduced axis the extent has a divisor; of several the first one is folded.
std::optional<Tensor> FoldReductions(const Tensor& output);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_FOLDED_REDUCTION_H_
