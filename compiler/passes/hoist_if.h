// Branches that do not vary in a loop, out of it.
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
  // How many nodes (ir::NodeCount) the function may grow by, in all, where a loop has to stand twice.
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
// Of a condition, the operands of && that neither vary in the loop nor load what it writes. Without
// an else, and with nothing but lets and allocations beside it, the if costs no copy; other copies
// count against `max_growth`, and loops with instructions beside the if (barriers among them) have
// none: all threads must meet at the same barrier.
//
// A condition that may stop the program (a division, a load that may be out of bounds, an overflow)
// moves only if the loop is proven to evaluate it, and never past the operand of && or the branch
// that guards it. Nothing moves out of thread loops.
//
// LLVM unswitches loops, too, but only on conditions that it can evaluate early: its dependence on
// memory and overflow is coarser; nvcc does not by itself.
//
// Returns whether anything changed; if not, the body is the same node.
absl::StatusOr<bool> HoistIf(ir::Function& function, const Target& target,
                             const HoistIfOptions& options = {}, HoistIfStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo HoistIfPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_HOIST_IF_H_
