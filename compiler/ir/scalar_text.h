// The value of a scalar parameter as people write and read it.
#ifndef COMPILER_IR_SCALAR_TEXT_H_
#define COMPILER_IR_SCALAR_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/type.h"

namespace polynao::ir {

// "5", "-1.5e3". Errors: "expected an integer of u8, found '300'", "expected a number, found 'x'".
absl::StatusOr<Argument> ParseScalar(Type type, std::string_view text);

std::string ScalarText(Type type, const Argument& value);

}  // namespace polynao::ir

#endif  // COMPILER_IR_SCALAR_TEXT_H_
