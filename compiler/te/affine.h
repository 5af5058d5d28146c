// Intervals of integer expressions with a symbolic lower end and a constant size: what bounds
// inference needs to place and size the part of a tensor that a loop body reads.
//
//   for (xo, 0, 4) for (xi, 0, 4): IntervalOf(xo*4 + xi - 1) with xi relaxed = {xo*4 - 1, 4}
//
// Every answer is an over-approximation: values never leave the interval or range given.
#ifndef COMPILER_TE_AFFINE_H_
#define COMPILER_TE_AFFINE_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"

namespace polynao::te {

// min <= value <= max. Ends saturate at +-kInfinite, which mean "not known".
struct Range {
  static constexpr int64_t kInfinite = int64_t{1} << 61;
  int64_t min = -kInfinite;
  int64_t max = kInfinite;
  bool IsBounded() const { return min > -kInfinite && max < kInfinite; }
  bool operator==(const Range&) const = default;
};

// Values that loop variables take. A variable without an entry has any value.
using VarRanges = absl::flat_hash_map<ir::Expr, Range>;

// constant + sum of coefficient * atom; an atom is an expression that is no sum, difference or
// product with a constant (a variable, a division, a min, ...).
struct Linear {
  int64_t constant = 0;
  // Ordered by the atoms' ids, coefficients nonzero.
  std::vector<std::pair<ir::Expr, int64_t>> terms;

  bool IsConst() const { return terms.empty(); }
  bool operator==(const Linear&) const = default;
  // As an expression of `type`: older atoms first, the constant last, no `* 1` or `+ 0`.
  ir::Expr ToExpr(ir::Context& context, ir::Type type) const;
};

Linear operator+(const Linear& a, const Linear& b);
Linear operator-(const Linear& a, const Linear& b);
Linear operator*(const Linear& a, int64_t factor);

// `e`, an integer, as a linear form.
Linear Decompose(ir::Expr e);

// The values that `e` or `form` takes, atoms taken as independent of one another.
Range RangeOf(ir::Expr e, const VarRanges& ranges);
Range RangeOf(const Linear& form, const VarRanges& ranges);

// The values of a - b. Knows that min, max and division by a constant do not stretch differences:
// max(0, x + 2) - max(0, x) is in [0, 2] for any x.
Range DifferenceRange(const Linear& a, const Linear& b, const VarRanges& ranges);

// The integers min ... min + size - 1.
struct Interval {
  Linear min;
  int64_t size = 1;
};

// The values of the integer `e` while the variables with a range that are not in `fixed` run over
// their ranges; `min` uses other variables only and can be evaluated wherever these are known
// (nothing in it traps or loads). Nothing if no constant size is known, as for A[B[i]].
std::optional<Interval> IntervalOf(ir::Expr e, const VarRanges& ranges,
                                   const absl::flat_hash_set<ir::Expr>& fixed);

// An interval around both, nothing if its size is not known. `type` is the expressions' type.
std::optional<Interval> Union(const Interval& a, const Interval& b, const VarRanges& ranges,
                              ir::Context& context, ir::Type type);

}  // namespace polynao::te

#endif  // COMPILER_TE_AFFINE_H_
