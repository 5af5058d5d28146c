// What is done before passes run: keys of pragmas get the spelling that passes read, and are known to something
// that reads them; the target has the extern functions that the function calls.
#ifndef COMPILER_PASSES_CHECK_PRAGMAS_H_
#define COMPILER_PASSES_CHECK_PRAGMAS_H_

#include "absl/status/status.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Writes every key as pragmas.h or the table spells it, where another spelling names it: without
// regard to case, and a family also with a T, for tensor, in front. "MEMCPY" becomes "memcpy",
// "TADD" becomes "add" (and "TANH" "tanh": the whole word comes first). Keys that name nothing stay.
// Returns whether anything changed.
bool ResolvePragmas(ir::Function& function, const Target& target);

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
