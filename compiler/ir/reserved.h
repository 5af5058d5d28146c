// Words of the text form that name no variable, buffer or function.
#ifndef COMPILER_IR_RESERVED_H_
#define COMPILER_IR_RESERVED_H_

#include <string_view>

namespace polynao::ir {

inline bool IsReserved(std::string_view word) {
  for (std::string_view reserved :
       {"func", "for",  "parallel", "unroll", "vectorize", "thread", "if",     "else",
        "let",  "in",   "allocate", "pragma", "true",      "false",  "select", "min",
        "max",  "cast", "sizeof",   "out",    "nan",       "inf"}) {
    if (word == reserved) return true;
  }
  return false;
}

}  // namespace polynao::ir

#endif  // COMPILER_IR_RESERVED_H_
