#include "compiler/ir/scalar_text.h"

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::ir {

absl::StatusOr<Argument> ParseScalar(Type type, std::string_view text) {
  Argument value;
  if (IsFloat(type)) {
    if (absl::SimpleAtod(ToAbsl(text), &value.float_value)) return value;
    return InvalidInput("expected a number, found '", text, "'");
  }
  uint64_t large = 0;
  if (type == Type::kU64 && absl::SimpleAtoi(ToAbsl(text), &large)) {
    return Argument::Int(static_cast<int64_t>(large));
  }
  if (absl::SimpleAtoi(ToAbsl(text), &value.int_value) && FitsInt(type, value.int_value)) {
    return value;
  }
  return InvalidInput("expected an integer of ", TypeName(type), ", found '", text, "'");
}

std::string ScalarText(Type type, const Argument& value) {
  return IsFloat(type) ? StrCat(value.float_value) : IntText(type, WrapInt(type, value.int_value));
}

}  // namespace polynao::ir
