// Conditions as such: their parts, their negation, and what evaluating an expression may do besides
// giving a value. Nothing here needs facts; an Analyzer knows more.
#ifndef COMPILER_ARITH_LOGIC_H_
#define COMPILER_ARITH_LOGIC_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// The operands of the chain of && that `e` is, from left to right, without `true`: {e} if it is none,
// {} for `true`.
std::vector<ir::Expr> Conjuncts(ir::Expr e);
// Adds them to `parts`.
void AppendConjuncts(ir::Expr e, std::vector<ir::Expr>& parts);

// list[0] && list[1] && ...; null for an empty list.
ir::Expr Conjunction(absl::Span<const ir::Expr> list);

// Not `e`, with the negation moved down to comparisons: `!(i < 3 && p)` is `3 <= i || !p`. Evaluates the
// same operands in the same order. Orders of floats have no negation (NaN) and get a `!`.
ir::Expr Negation(ir::Expr e);

// Returns true if evaluating the node `e`, its operands having values, may stop the program other than by wrapping
// around: a load (out of bounds, of memory never stored), a call of an instruction, an integer division unless by a
// constant that is not 0.
bool IsTrap(ir::Expr e);
// Returns true if `e` or anything below it does. Analyzer::CanTrap excludes divisors that facts keep from 0, and
// Effects::MayTrap also indices that facts keep in bounds.
bool CanTrap(ir::Expr e);

// Returns true if evaluating `e` loads from a buffer.
bool ReadsMemory(ir::Expr e);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_LOGIC_H_
