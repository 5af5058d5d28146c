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

// What an operation costs where it stays in a loop, and when moving it pays. Costs are in cycles of
// a simple operation. The cost of an expression is the sum over its operations (variables and
// constants: 0), without those that move further out by themselves.
struct LicmOptions {
  int simple = 1;  // + - comparisons, logic, min, max, select, cast
  int multiply = 2;
  int divide = 3;            // / % by a constant (1 if that is a power of two), and of floats
  int divide_variable = 10;  // / % of integers by anything else
  int intrinsic = 10;        // exp, sqrt, ...
  int load = 4;
  // The paper's K: what costs less stays. At least 1.
  int threshold = 2;
  // Loops of at most so many iterations, and `unroll` loops of constant extent, are unrolled by the
  // compiler behind us, which then sees what their iterations share: there everything costs 0.
  int unrolled_extent = 4;
  // So many moved values at most are alive in one loop: more would live in memory. Where more could
  // move, those stay behind that spare least: cost times evaluations in an iteration of the loop,
  // where a loop inside of unknown extent counts for 8 iterations. Of equal ones the later ones.
  int max_live = 24;
  // Whether values may leave a thread loop that stands in another one. None leaves the outermost.
  bool leave_inner_threads = false;
};

// The costs for `target`: of a CPU core behind LLVM or a C compiler ("cpu", "c"), of a GPU thread
// behind nvcc ("cuda"), of the accelerator's scalar unit, whose code nothing optimises ("diannao").
// For others every operation counts alike.
LicmOptions LicmOptionsFor(const Target& target);

// What a run moved.
struct LicmStats {
  int expressions = 0;
  int lets = 0;
  int statements = 0;
  // "inv = x * 1024 + y * 32  out of  for (k, 0, 64) {", in the order of the program.
  std::vector<std::string> moved;
};

// Evaluates expressions once in front of the loops that they do not vary in; in one run across as
// many loops as possible, and what is invariant further out from there again:
//
//   for (j, 0, 64) {                             let inv = i * 1024 + 7
//     for (k, 0, 64) {                           for (j, 0, 64) {
//       A[i * 1024 + 7 + j * 32 + k] = 0   -->     let inv_1 = inv + j * 32
//     }                                            for (k, 0, 64) {
//   }                                                A[inv_1 + k] = 0 ...
//
// Lets move with their variable, whatever they cost. Stores and nests of them move from the body of
// a loop to in front of it if they write the same in each iteration: nothing in them varies, nothing
// else in the loop writes what they write or read, and nothing in front of them reads it.
//
// A moved expression may be evaluated where it was not: if the loop has no iteration, or a branch
// is not taken. So what may stop the program (a division by what may be 0, a load that may be out of
// bounds) moves only in front of loops that are proven to evaluate it; anything else does no
// harm, as a let's arithmetic wraps. Loads do not move past a loop that may write their memory.
// Nothing leaves the outermost thread loop, where there is no thread to compute it.
//
// Run normalize before: it makes invariant subtrees. Behind us LLVM and nvcc move what they can
// see, which ends at possible aliases, at what may trap or overflow, and at the branches of `&&`.
// Returns whether anything changed; if not, the body is the same node. Time is linear in the
// program's size and the depth of its loops.
absl::StatusOr<bool> Licm(ir::Function& function, const Target& target, const LicmOptions& options,
                          LicmStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo LicmPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_LICM_H_
