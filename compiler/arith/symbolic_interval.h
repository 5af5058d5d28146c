// Intervals of integer expressions with a symbolic lower end and a constant size: what bounds
// inference needs to place and size the part of a tensor that a loop body reads.
//
//   for (xo, 0, 4) for (xi, 0, 4): IntervalOf(xo*4 + xi - 1) with xi relaxed = {xo*4 - 1, 4}
//
// Every answer is an over-approximation: values never leave the interval or range given. Indices do not
// wrap (ir.h), so i32 and i64 expressions are mathematical integers here. An Analyzer gives ranges with
// constant ends only.
#ifndef COMPILER_ARITH_SYMBOLIC_INTERVAL_H_
#define COMPILER_ARITH_SYMBOLIC_INTERVAL_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// Values that loop variables take. A variable without an entry has any value.
using VarRanges = absl::flat_hash_map<ir::Expr, ConstRange>;

// `e`, an integer, as a linear form over what is no sum, difference or product with a constant: a
// variable, a division, a min. A part with a coefficient that leaves int64_t is an atom.
LinearForm Decompose(ir::Expr e);

// `form` as an expression of `type`: what is added, older atoms first, then what is subtracted, then
// the constant.
ir::Expr ToExpr(const LinearForm& form, ir::Context& context, ir::Type type);

// The values that `e` or `form` takes, atoms taken as independent of one another.
ConstRange RangeOf(ir::Expr e, const VarRanges& ranges);
ConstRange RangeOf(const LinearForm& form, const VarRanges& ranges);

// The values of a - b. Knows that min, max and division by a constant do not stretch differences:
// max(0, x + 2) - max(0, x) is in [0, 2] for any x.
ConstRange DifferenceRange(const LinearForm& a, const LinearForm& b, const VarRanges& ranges);

// The integers min ... min + size - 1.
struct SymbolicInterval {
  LinearForm min;
  int64_t size = 1;
};

// The values of the integer `e` while the variables with a range that are not in `fixed` run over
// their ranges; `min` uses other variables only and can be evaluated wherever these are known
// (nothing in it traps or loads). Nothing if no constant size is known, as for A[B[i]].
std::optional<SymbolicInterval> IntervalOf(ir::Expr e, const VarRanges& ranges,
                                           const absl::flat_hash_set<ir::Expr>& fixed);

// An interval around both, nothing if its size is not known. `type` is the expressions' type.
std::optional<SymbolicInterval> Union(const SymbolicInterval& a, const SymbolicInterval& b,
                                      const VarRanges& ranges, ir::Context& context, ir::Type type);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_SYMBOLIC_INTERVAL_H_
