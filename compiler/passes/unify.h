// One expression for all that are equal as integers: the semantic part of cse.
#ifndef COMPILER_PASSES_UNIFY_H_
#define COMPILER_PASSES_UNIFY_H_

#include "compiler/ir/ir.h"

namespace polynao {

// Rewrites integer expressions of `function` that are equal by commutativity, associativity and
// distributivity to the shortest of them (the first, if several are equally short):
//
//   A[0] = (x + y) * z              A[0] = (x + y) * z
//   A[1] = z * x + y * z      -->   A[1] = (x + y) * z
//   A[2] = max(b, a * 2)            A[2] = max(b, a * 2)
//   A[3] = max(a + a, b)            A[3] = max(b, a * 2)
//
// Two expressions are equal if their canonical sums of products (compiler/arith/linear_form.h,
// coefficients modulo 2^bits) are equal, or if they apply one operator to equal operands (`min`, `max`,
// `==` and `!=` in any order). A replacement evaluates the same loads and divisions: a sum in which
// terms cancel is equal only to itself. In an index or a condition, where arithmetic must not wrap,
// an expression is replaced only if the new one provably does not wrap, or does the same
// operations. Sums of more than 16 terms stay.
//
// Takes time linear in the size of the program. Returns whether anything changed.
bool UnifyEqualIntegers(ir::Function& function);

}  // namespace polynao

#endif  // COMPILER_PASSES_UNIFY_H_
