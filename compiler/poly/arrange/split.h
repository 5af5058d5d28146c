// Parts of a statement's instances one after the other, so that each part is parallel.
//
//   for (k, 0, n) for (i, 0, n) for (j, 0, n)           for (k, 0, n) {
//     P[i, j] = min(P[i, j], P[i, k] + P[k, j])           parallel (i, j) with i < k, j < k
//                                                 -->     parallel (i) with i < k, j = k
//                                                         ... nine parts
//                                                       }
//
// Method: index set splitting (Griebl, Feautrier, Lengauer: "Index set splitting", IJPP 2000), here along the
// hyperplanes in which all first or all second instances of a dependence lie.
#ifndef COMPILER_POLY_ARRANGE_SPLIT_H_
#define COMPILER_POLY_ARRANGE_SPLIT_H_

#include <string_view>

#include "compiler/poly/model/dependences.h"

namespace polynao::poly {

// Of a report.
inline constexpr std::string_view kSplitLine =
    "instances split where dependences begin or end, each part parallel";

// `schedule`, which is legal, with bands replaced that lie inside a loop, belong to one statement and carry
// dependences: the first instances of { S[k, i, k] -> S[k, i, j] : j > k } have j = k, so that the parts with j < k, j
// = k and j > k are tried. With at most two such hyperplanes, and if no dependence is left inside of any part, a
// sequence of the parts, in an order that keeps the dependences between them, stands in place of the band. `splits`
// counts them.
//
// Throws isl::exception.
isl::schedule SplitIntoParallel(const Dependences& dependences, const isl::schedule& schedule,
                                int* splits);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_SPLIT_H_
