// The conditions that a function states of its scalar parameters: `@assert(n % 64 == 0, 0 < n)`.
#ifndef COMPILER_IR_ASSERTIONS_H_
#define COMPILER_IR_ASSERTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// The conditions of all `@assert` attributes.
std::vector<Expr> Assertions(const Function& function);

// The scalar arguments of a call, by parameter. Integers are read in the parameter's type.
using ScalarValues = absl::flat_hash_map<Var, Argument>;

// `arguments`: one for each parameter; those of buffers are left out.
ScalarValues ScalarsOf(const Function& function, absl::Span<const Argument> arguments);

// The value of an integer expression as the interpreter computes it. None: a division by zero, a name without a value,
// a load, a call.
std::optional<int64_t> IntValue(Expr e, const ScalarValues& scalars);

// Says whether a condition holds. Nothing means that it depends on more than `scalars` (a name that is no parameter, a
// call), so that nobody can say. A division by zero does not hold.
std::optional<bool> Holds(Expr condition, const ScalarValues& scalars);

// Checks that a call with these arguments, one for each parameter, keeps what the function asserts. The error names the
// first condition that it breaks: "function 'f': '@assert(n % 64 == 0)' does not hold: n = 5".
absl::Status CheckAssertions(const Function& function, absl::Span<const Argument> arguments);

}  // namespace polynao::ir

#endif  // COMPILER_IR_ASSERTIONS_H_
