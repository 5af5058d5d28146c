// About how many elements a set has.
#ifndef COMPILER_POLY_ISL_ESTIMATE_H_
#define COMPILER_POLY_ISL_ESTIMATE_H_

#include <isl/cpp.h>

namespace polynao::poly {

// The elements of `set`, for all values of its parameters, in a time that does not depend on their number: the mean of
// some random walks, each of which chooses one coordinate after the other within its bounds, and multiplies how many it
// had to choose from (Knuth: "Estimating the efficiency of backtrack programs", 1975). Of a union, those of its simple
// hull; quotients in its constraints count as if they could be anything. Infinity if a coordinate has no bounds.
//
//   { [k, i, j] : 0 <= k < 1024 and 0 <= i, j < k }     358 million +- 10 %
//
// The same for each call with the same set. Throws isl::exception.
double EstimateCount(const isl::set& set);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ISL_ESTIMATE_H_
