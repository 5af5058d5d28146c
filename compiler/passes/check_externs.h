// Checks that a target has the extern functions that a function calls.
#ifndef COMPILER_PASSES_CHECK_EXTERNS_H_
#define COMPILER_PASSES_CHECK_EXTERNS_H_

#include "absl/status/status.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// OK if the function calls no extern function, or the target is one that has them: the card runs
// instructions alone, and kernels for a GPU have no functions from elsewhere.
absl::Status CheckExterns(const ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_CHECK_EXTERNS_H_
