// Reductions in two steps, so that cores share one whose results are few, or one whose elements do not fit NMEM:
//
//   S[a] = sum of X[r, a] over r < 1000    -->   P[c, a] = sum of X[62c + j, a] over j < 62      c < 16
//                                                T[a] = sum of X[992 + j, a] over j < 8
//                                                S[a] = (sum of P[c, a] over c) + T[a]
//
// Of a contraction so clusters share long sums: each loads the weights of its part alone (TileExtras::sum_parts).
#ifndef COMPILER_TE_CARD_SPLIT_REDUCTION_H_
#define COMPILER_TE_CARD_SPLIT_REDUCTION_H_

#include <cstdint>

#include "compiler/te/graph.h"

namespace polynao::te {

struct SplitReduction {
  Tensor output;                       // of a graph of its own, in the same context
  const Operation* partial = nullptr;  // P
};

// The graph of `output` with axis number `axis` of `reduction`, a compute of it, cut into `chunks` parts of `length`
// places and a rest. chunks * length is at most the axis's extent.
SplitReduction Split(const Tensor& output, const Operation& reduction, size_t axis, int64_t chunks,
                     int64_t length);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_SPLIT_REDUCTION_H_
