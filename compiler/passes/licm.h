// Loop invariant code motion: section III-B, algorithm 1, with the cost function of section III-D, of
// "A loop invariant code motion technique for deep learning compiler".
#ifndef COMPILER_PASSES_LICM_H_
#define COMPILER_PASSES_LICM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// Costs and rooms as the target has them (compiler/target/target.h).
struct LicmOptions : MotionCosts {
  // Operations that the compiler behind this one moves by itself (left_to_compiler.h) cost nothing. An
  // expression that has others moves whole.
  bool leave = false;
};

// The costs of `target`.
LicmOptions LicmOptionsFor(const Target& target);

// Counts what a run has moved.
struct LicmStats {
  int expressions = 0;
  int lets = 0;
  int statements = 0;
  // "inv_x_y = x * 1024 + y * 32  out of  for (k, 0, 64) {", in the order of the program.
  std::vector<std::string> moved;
  // "i * 1024 + j * 32  stays in  for (k, 0, 64) {: left to the compiler behind, ...": expressions that
  // do not vary in their loop and did not move, the largest ones, with the reason.
  std::vector<std::string> stayed;
};

// Evaluates expressions in front of the loops that they do not vary in. One run moves an expression
// across as many loops as possible, and its operands further:
//
//   for (j, 0, 64) {                             let inv_i = i * 1024 + 7
//     for (k, 0, 64) {                           for (j, 0, 64) {
//       A[i * 1024 + 7 + j * 32 + k] = 0   -->     let inv_i_j = inv_i + j * 32
//     }                                            for (k, 0, 64) {
//   }                                                A[inv_i_j + k] = 0 ...
//
// Lets move with their variable, whatever they cost. Stores and nests of stores move in front of a loop
// if they store the same in each iteration (invariant_statements.h).
//
// A moved expression may be evaluated where it was not: if the loop has no iteration, or a branch
// is not taken. So an expression that may stop the program (a division by a variable that may be 0, a
// load that may be out of bounds) moves only in front of loops that are proven to evaluate it. Other
// expressions do no harm, since the arithmetic of a let wraps. Loads do not move past a loop that may
// write their memory. Nothing leaves the outermost thread loop: in front of it is no thread.
//
// Run normalize before: it makes invariant subtrees. LLVM and nvcc move what they can see. They stop
// at possible aliases, at operations that may trap or overflow, and at the branches of `&&`.
// Returns whether anything changed; if not, the body is the same node. Time is linear in the
// program's size and the depth of its loops.
absl::StatusOr<bool> Licm(ir::Function& function, const Target& target, const LicmOptions& options,
                          LicmStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo LicmPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_LICM_H_
