// One expression for all that are equal as integers: the semantic part of cse.
#ifndef COMPILER_PASSES_UNIFY_H_
#define COMPILER_PASSES_UNIFY_H_

#include "compiler/ir/ir.h"

namespace polynao {

// Rewrites integer expressions of `function` that are equal by commutativity, associativity and
// distributivity to the shortest of them, or the first one of those:
//
//   A[0] = (x + y) * z              A[0] = (x + y) * z
//   A[1] = z * x + y * z      -->   A[1] = (x + y) * z
//   A[2] = max(b, a * 2)            A[2] = max(b, a * 2)
//   A[3] = max(a + a, b)            A[3] = max(b, a * 2)
//
// Two expressions are equal if their canonical sums of products (compiler/arith/linear_form.h,
// coefficients modulo 2^bits) over the same parts are, or if they are one operator over equal
// operands; `min`, `max`, `==` and `!=` in any order. Nothing is replaced by what evaluates other
// loads or divisions: sums in which terms cancel count as equal to themselves alone. In an index or
// a condition, where arithmetic must not wrap, an expression is replaced only if that provably does
// not wrap on its way, or does the same operations. Sums of more than 16 terms stay.
//
// Takes time linear in the size of the program. Returns whether anything changed.
bool UnifyEqualIntegers(ir::Function& function);

}  // namespace polynao

#endif  // COMPILER_PASSES_UNIFY_H_
