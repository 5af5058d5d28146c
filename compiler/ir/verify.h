// Checks that a function is well-formed: whatever Print shows and Parse accepts, and what passes
// must keep true.
#ifndef COMPILER_IR_VERIFY_H_
#define COMPILER_IR_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// OK, or what is wrong and in which statement: a variable or buffer used outside the statement that
// binds it, a variable or buffer bound twice, an i1 that is no condition, a loop bound that is no
// integer, an unknown call in an expression, an address outside a call's arguments, ...
absl::Status Verify(const Function& function);

}  // namespace polynao::ir

#endif  // COMPILER_IR_VERIFY_H_
