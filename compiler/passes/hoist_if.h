// Moves branches that do not vary in a loop out of it.
#ifndef COMPILER_PASSES_HOIST_IF_H_
#define COMPILER_PASSES_HOIST_IF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

struct HoistIfOptions {
  // Where a loop has to stand twice, the second one is a copy. At most this many nodes (statements
  // and expressions) of the function may be such copies, no matter which run made them: whatever
  // stands in the else branch of an if that has loops in both branches counts.
  int max_growth = 256;
};

struct HoistIfStats {
  int nodes_copied = 0;
  // "n < m  out of  for (i, 0, 4) {", inner loops first.
  std::vector<std::string> hoisted;
};

// Moves an if in front of the loop whose body it stands in, as far out as it goes:
//
//   for (i, 0, 4) { if (n < m && i < n) A else B }   -->  if (n < m) { for (i, 0, 4) { if (i < n) A else B } }
//                                                         else { for (i, 0, 4) B }
//   for (i, 0, 4) { A  if (n < m) B }                -->  if (n < m) { for (i, 0, 4) { A B } }
//                                                         else { for (i, 0, 4) A }
//
// It takes those operands of && in a condition that neither vary in the loop nor load memory that the
// loop writes. A condition that a let in the loop binds counts like one in the if. If the if has no
// else, and nothing but lets and allocations stands beside it, no copy of the loop is needed. Other
// copies count against `max_growth`. Loops with instructions (barriers among them) are not copied: all
// threads must meet at the same barrier.
//
// A condition that may stop the program (a division, a load that may be out of bounds, an overflow)
// moves only if the loop is proven to evaluate it, and never past the operand of && or the branch
// that guards it. Nothing moves out of thread loops.
//
// LLVM unswitches loops, too, but knows less about memory and overflow, so that it can evaluate fewer
// conditions early; nvcc does not unswitch by itself.
//
// Returns whether anything changed; if not, the body is the same node.
absl::StatusOr<bool> HoistIf(ir::Function& function, const Target& target,
                             const HoistIfOptions& options = {}, HoistIfStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo HoistIfPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_HOIST_IF_H_
