// The keys of pragmas: in the spelling that passes read, and known to something that reads them.
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

}  // namespace polynao

#endif  // COMPILER_PASSES_CHECK_PRAGMAS_H_
