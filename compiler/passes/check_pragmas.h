// What is checked before passes run: that every pragma of a function has a key that something reads, and
// that the target has the extern functions that the function calls.
#ifndef COMPILER_PASSES_CHECK_PRAGMAS_H_
#define COMPILER_PASSES_CHECK_PRAGMAS_H_

#include "absl/status/status.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// OK if every key is in compiler/ir/pragmas.h or names an instruction family of the target's table
// (of the built-in table for a target without one, as schedules mark nests for all targets). A
// pragma changes no value, so a misspelt key would go unnoticed: the nest would stay a scalar loop.
// The error shows the statement below it.
absl::Status CheckPragmas(const ir::Function& function, const Target& target);

// OK if the function calls no extern function, or the target is one that has them: the card runs
// instructions alone, and kernels for a GPU have no functions from elsewhere.
absl::Status CheckExterns(const ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_CHECK_PRAGMAS_H_
