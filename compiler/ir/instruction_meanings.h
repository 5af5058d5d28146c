// The meanings of tensor instructions, as the interpreter and the passes look them up.
#ifndef COMPILER_IR_INSTRUCTION_MEANINGS_H_
#define COMPILER_IR_INSTRUCTION_MEANINGS_H_

#include <string_view>

namespace polynao::ir {

struct Function;

// Where the meanings of calls that are not pure intrinsics come from.
class Intrinsics {
 public:
  virtual ~Intrinsics() = default;
  // The meaning of `name`: its buffer parameters take addresses, its scalars values, in order.
  // Null if there is no such instruction.
  virtual const Function* FindMeaning(std::string_view name) const = 0;
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_INSTRUCTION_MEANINGS_H_
