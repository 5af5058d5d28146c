// Common subexpression elimination on loop IR.
#ifndef COMPILER_PASSES_CSE_H_
#define COMPILER_PASSES_CSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

struct CseOptions {
  // Takes integer expressions for equal that are so by commutativity, associativity and
  // distributivity: (x + y) + z and z + (y + x), x * (y + 1) and x + y * x.
  bool semantic = false;
  // What instructions read and write (effects.h); null: all that they are given addresses of.
  const ir::Intrinsics* intrinsics = nullptr;
};

// One binding, for --stats.
struct CseBinding {
  std::string variable;
  std::string value;
  // How many evaluations in the text of the program the variable stands for.
  int64_t uses = 0;
};

// Binds expressions that are evaluated more than once to variables (after "TVM TIR Pass - CSE",
// sections on candidates, scopes, and creation of variables):
//
//   B[i1] = (x + y) + z        let cse_var_2: i32 = x + y
//   B[i2] = (x + y) + z   -->  let cse_var_1: i32 = cse_var_2 + z
//   B[i3] = x + y              B[i1] = cse_var_1  B[i2] = cse_var_1  B[i3] = cse_var_2
//
// Candidates are all expressions but constants, variables, addresses and calls of instructions.
// Longer ones come first; what they contain is bound only if it is used apart from them. A value
// that a `let` binds already serves later uses. A binding stands right before the first statement
// that needs it, in the innermost block that holds all uses, or inside the expression if they are
// all on one side of a `&&`, `||` or `select`, or use the variable of a let inside it. Sides that exclude one another count as one use, and
// what is used once is not bound.
//
// What is left as it is:
//  - An expression that may stop the program is evaluated only where it was evaluated anyway: not
//    before a test that guards it, nor before a loop that may be empty. Loads, too, are not
//    evaluated where they were not.
//  - Loads are shared as far as no store, instruction or new iteration can change them in between
//    (effects.h). A load of an allocation is shared only where the program would stop if the element
//    were never stored.
//  - Bounds of thread loops, operands of pragmas, and extents of allocations.
//
// Here and not in LLVM or nvcc: they cannot tell that buffers do not overlap, or that an index does
// not wrap, nor do they share across the launches and tensor instructions that this IR has. It
// comes after loop_partition and hoisting, which need conditions where they are used.
//
// Time is linear in the size of the program times the depth of its nests. Returns whether anything
// changed; if not, the body is the same node.
absl::StatusOr<bool> Cse(ir::Function& function, const CseOptions& options = {},
                         std::vector<CseBinding>* bindings = nullptr);

// The pass by name (registry.h).
PassInfo CsePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_CSE_H_
