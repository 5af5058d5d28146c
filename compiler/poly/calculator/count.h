// Symbolic counting: how many elements a set has, as a function of its parameters; how many images
// each element of a map's domain has.
//
//   { S[i, j] : 0 <= i < n and 0 <= j <= i }          [n] -> { (1/2 * n + 1/2 * n^2) : n > 0 }
//   { [i] -> [j] : i <= j < n }                       [n] -> { [i] -> (n - i) : i < n }
//   { [i] : 0 <= i < n and i mod 3 = 0 }              [n] -> { (1 + floor((-1 + n)/3)) : n > 0 }
//
// The result is exact: a quasi-polynomial (count_polynomial.h) on each of finitely many polyhedral
// chambers of the parameters, 0 elsewhere. Integer divisions, strides, existentially quantified
// variables and unions are exact, too. What cannot be counted is an error, never an estimate.
//
// Method: W. Pugh, "Counting Solutions to Presburger Formulas: How and Why" (PLDI 1994), with
// floors as terms in place of his rational bounds. The set is made disjoint, and every integer
// division becomes a variable of its own, which its definition determines. Then one variable after
// the other is summed over: equations substitute it; otherwise the domain is split by which lower
// bound is the largest and which upper bound the smallest, and Faulhaber's formula gives the sum.
// third_party/isl/README.md says why this is not PolyLib's Ehrhart.
#ifndef COMPILER_POLY_CALCULATOR_COUNT_H_
#define COMPILER_POLY_CALCULATOR_COUNT_H_

#include <isl/cpp.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

struct CountOptions {
  // Partial sums after which counting gives up.
  int max_pieces = 20000;
};

// The number of elements of `set`, on the space of its parameters. Errors:
// FailedPrecondition where a non-empty part has infinitely many elements; ResourceExhausted after
// options.max_pieces or the operations that the context allows.
absl::StatusOr<IslPwQuasiPolynomial> CountElements(const isl::set& set,
                                                   const CountOptions& options = {});

// For each element of the domain of `map`, the number of its images. The same errors.
absl::StatusOr<IslPwQuasiPolynomial> CountImages(const isl::map& map,
                                                 const CountOptions& options = {});

// The sum over all sets; for maps, a function on each domain (maps with the same domain add up).
absl::StatusOr<IslUnionQuasiPolynomial> CountElements(const isl::union_set& set,
                                                      const CountOptions& options = {});
absl::StatusOr<IslUnionQuasiPolynomial> CountImages(const isl::union_map& map,
                                                    const CountOptions& options = {});

// The value of a count of elements, a function of parameters only, where they have these values.
// Error: a parameter of the function has no value. Further values are ignored.
absl::StatusOr<isl::val> ValueAt(const IslPwQuasiPolynomial& count,
                                 const std::map<std::string, isl::val>& parameters);
absl::StatusOr<isl::val> ValueAt(const IslPwQuasiPolynomial& count,
                                 const std::map<std::string, int64_t>& parameters);

// As text: "[n] -> { (n^2) : n > 0 }".
std::string ToString(const IslPwQuasiPolynomial& count);
std::string ToString(const IslUnionQuasiPolynomial& count);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CALCULATOR_COUNT_H_
