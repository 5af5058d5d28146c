// The arguments of a call, checked against a function's parameters and laid out for compiled code.
#ifndef COMPILER_CODEGEN_ARGUMENTS_H_
#define COMPILER_CODEGEN_ARGUMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// Every compiled function's raw entry takes the first elements of the buffer parameters and
// the scalar parameters, each list in the order of the parameters. A scalar of an integer type is
// its value; one of a float type is the bit pattern of its value as a double.
using RawEntry = int32_t (*)(void* const* buffers, const int64_t* scalars);

struct RawArguments {
  std::vector<void*> buffers;
  std::vector<int64_t> scalars;
};

// Lays `arguments`, one per parameter, out for a raw entry; scalars are wrapped or rounded to their
// types. Errors name the parameter: a wrong number of arguments, a scalar where a tensor is needed
// or the reverse, another element type, a shape that is not the parameter's extents, one tensor
// given for two parameters, unless they may alias (compiler/ir/aliases.h), or scalars that break what
// the function asserts of them (compiler/ir/assertions.h).
absl::StatusOr<RawArguments> LayOutArguments(const ir::Function& function,
                                             absl::Span<const ir::Argument> arguments);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_ARGUMENTS_H_
