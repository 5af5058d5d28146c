// Gives expressions and branches the form in which licm, hoist_if and a back end's compiler find
// most: section III-C and algorithm 2 of "A loop invariant code motion technique for deep learning
// compiler".
#ifndef COMPILER_PASSES_NORMALIZE_H_
#define COMPILER_PASSES_NORMALIZE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

struct NormalizeOptions {
  // Reorders sums and products of floats too, which changes how they round.
  bool floats = false;
};

// Counts what a run changed.
struct NormalizeStats {
  int regrouped = 0;   // chains of an associative operator in another order
  int collapsed = 0;   // selects inside selects that are gone
  int nested_ifs = 0;  // ifs that were all of another if's branch
  int joined_ifs = 0;  // ifs that went into the one before
};

// The rank of an expression is the depth of the deepest loop whose variable it depends on, 0 for a
// constant; memory that the function writes ranks above all loops. With i inside of j:
//
//   i + n + j                           -->  n + j + i        operands in order of rank, so that
//   3 < i && 3 < j && i < 56 && j < 56  -->  (3 < j && j < 56) && (3 < i && i < 56)
//                                            each beginning is one invariant subtree (+ - * && ||
//                                            min max); a constant goes with the first of them
//   a ? (b ? x : y) : y                 -->  a && b ? x : y   (also || and with ! b)
//   if (a) { if (b) S }                 -->  if (a && b) S
//   if (a) S  if (a) T                  -->  if (a) { S T }   if S changes nothing that `a` loads
//
// No compiler behind us may do this where it counts: in an index they must fear overflow on the way,
// and across `&&` a trap, while here ranges of loops exclude both. Without such a proof a chain keeps
// its order. Operands of one rank keep theirs, and so do the two of `sum + a * b` in a stored value,
// which back ends look for.
//
// Returns whether anything changed; if not, the body is the same node. A second run changes nothing
// (but for chains of more than 64 operands, of which the rest is a chain by itself).
absl::StatusOr<bool> Normalize(ir::Function& function, const Target& target,
                               const NormalizeOptions& options = {},
                               NormalizeStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo NormalizePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_NORMALIZE_H_
