// Common subexpression elimination on loop IR.
#ifndef COMPILER_PASSES_CSE_H_
#define COMPILER_PASSES_CSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

struct CseOptions {
  // Integer expressions that are equal by commutativity, associativity and distributivity count as
  // equal: (x + y) + z and z + (y + x), x * (y + 1) and x + y * x.
  bool semantic = false;
  // Expressions of operations that the compiler behind this one shares by itself (left_to_compiler.h)
  // are not bound.
  bool leave = false;
  // Tells what instructions read and write (effects.h). Null: an instruction reads and writes every
  // buffer that it gets an address of.
  const ir::Intrinsics* intrinsics = nullptr;
};

// The options for code that `target` gets.
CseOptions CseOptionsFor(const Target& target);

// One binding, for --stats.
struct CseBinding {
  std::string variable;
  std::string value;
  // How many occurrences in the text of the program it replaces.
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
// Longer ones come first; a part of a bound expression is bound only if it is used elsewhere, too. A
// value that a `let` binds already serves later uses. A binding stands right before the first
// statement that needs it, in the innermost block that holds all uses. It stands inside the
// expression if all uses are on one side of a `&&`, `||` or `select`, or use the variable of a let
// inside it. An expression with one use is not bound; uses on sides that exclude one another are one.
//
// What stays as it is:
//  - An expression that some run would not evaluate at the place of the binding: one behind a test
//    that guards it, in branches that may all be passed by, or in a loop that may be empty. So no run
//    evaluates anything more often than before, and none stops that went on.
//  - Loads that a store, an instruction or a new iteration may change in between (effects.h). A load
//    of an allocation is shared only where the program would stop if the element were never stored.
//  - Bounds of thread loops, operands of pragmas, and extents of allocations.
//  - What the compiler behind this one shares by itself (left_to_compiler.h).
//
// Here and not in LLVM or nvcc: they cannot tell that buffers do not overlap, or that an index does
// not wrap, nor do they share across the launches and tensor instructions that this IR has. It
// comes after loop_partition and hoisting, which need conditions where they are used.
//
// Time is linear in the size of the program times the depth of its nests. Returns whether anything
// changed; if not, the body is the same node. `tables` gets the article's log (cse_tables.h) for each place
// in front of which variables are created.
absl::StatusOr<bool> Cse(ir::Function& function, const CseOptions& options = {},
                         std::vector<CseBinding>* bindings = nullptr,
                         std::vector<std::string>* tables = nullptr);

// The pass by name (registry.h).
PassInfo CsePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_CSE_H_
