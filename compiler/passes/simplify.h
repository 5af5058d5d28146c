// The pass that other passes rely on to tidy up after them.
#ifndef COMPILER_PASSES_SIMPLIFY_H_
#define COMPILER_PASSES_SIMPLIFY_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

// Simplifies every expression with what its place tells (compiler/arith/analyzer.h): ranges of loop
// variables, conditions of enclosing ifs, values of lets, and the conditions in the function's
// `assert` attribute. Then statements:
//
//   if (true) A else B          -->  A               (and for false)
//   if (c) { } else B           -->  if (!c) B
//   if (c) A else A             -->  A               (if c can not trap)
//   if (a) if (b) A             -->  if (a && b) A
//   for (i, 0, 0) A             -->                  (also any loop whose extent is never positive)
//   for (i, m, 1) A             -->  A with m for i  (thread loops stay; a long m becomes a let)
//   let x = 3 A, let x = y A    -->  A with 3 or y for x
//   let x = v A, x unused       -->  A               (if v can not trap)
//   A[i] = A[i]                 -->                  (if the element is certain to exist)
//
// Other lets stay as they are: putting values back would undo common subexpressions.
// Returns whether anything changed; if not, the body is the same node.
absl::StatusOr<bool> Simplify(ir::Function& function);

// The pass by name (registry.h).
PassInfo SimplifyPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_SIMPLIFY_H_
