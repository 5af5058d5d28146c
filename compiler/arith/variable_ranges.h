// Ranges of expressions over the variables of a whole function.
#ifndef COMPILER_ARITH_VARIABLE_RANGES_H_
#define COMPILER_ARITH_VARIABLE_RANGES_H_

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// Interval arithmetic from the bounds of loops and the values of lets. An Analyzer knows more (it uses
// conditions and relations between variables), but only where it stands, since its facts leave with
// their Scope. Here a variable keeps its range for good, so that expressions from two places can be
// compared:
//
//   VariableRanges ranges(analyzer);
//   ranges.BindLoop(i, c.I32(0), c.I32(8));     // i is in [0, 7]
//   ranges.BindLet(x, i * 16 + 3);              // x is in [3, 115]
//   ranges.Range(x / 4);                        // [0, 28]
//
// A range holds every value that the expression may have, also where it wraps around: then it is the
// range of the type. Every variable is bound once; parameters and unbound variables may have any value
// of their type.
class VariableRanges {
 public:
  // `analyzer` tells how far two sums are apart. It outlives this.
  explicit VariableRanges(Analyzer& analyzer) : analyzer_(analyzer) {}

  // A loop that runs no iteration gives its variable no value, so its range does not matter.
  void BindLoop(ir::Var var, ir::Expr min, ir::Expr extent);
  void BindLet(ir::Var var, ir::Expr value);

  // The values that the integer expression `e` may have.
  ConstRange Range(ir::Expr e);
  // The same for a sum over mathematical integers, each of its atoms as in Range. Two quotients that
  // are added and subtracted are taken together: (x + 5) / 7 - x / 7 is in [0, 1].
  ConstRange Range(const LinearForm& form);

 private:
  // Returns true if `e`, computed without wrapping in `range`, may leave its type.
  bool MayWrap(ir::Expr e, ConstRange range);

  Analyzer& analyzer_;
  absl::flat_hash_map<ir::Expr, ConstRange> ranges_;
};

// The range of a - b, if both are quotients by the same positive constant and `analyzer` knows the
// difference d of their numerators: floor((x + d) / n) - floor(x / n) is floor(d / n) or, if n does not
// divide d, one more.
std::optional<ConstRange> DifferenceOfQuotients(Analyzer& analyzer, ir::Expr a, ir::Expr b);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_VARIABLE_RANGES_H_
