// The words of C text: names, types, literals, and expressions with their precedence.
#ifndef COMPILER_CODEGEN_C_C_TEXT_H_
#define COMPILER_CODEGEN_C_C_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// The C identifier for a function, buffer or variable named `name`: "add.f32" is add_f32. Words of
// C, C++ and CUDA, and names that emitted text uses, get an underscore.
std::string CName(std::string_view name);

// The C type of a value, and of an element in memory: f16 and bf16 are computed as float and stored
// as uint16_t.
std::string_view ValueType(ir::Type type);
std::string_view MemoryType(ir::Type type);

// The function's name and parameters as loop IR prints them, "func f(A: f32[8] in, n: i32)", for a
// comment.
std::string SignatureText(const ir::Function& function);

// Literals of a type. A sign or a cast may stand in front of a float's.
std::string FloatLiteral(ir::Type type, double value);
std::string IntLiteral(ir::Type type, int64_t value);

// The suffix of the helpers for a type: C computes smaller integers as int.
std::string_view HelperSuffix(ir::Type type);

// Returns true if values of `type` are computed as float and rounded.
inline bool IsNarrowFloat(ir::Type type) {
  return type == ir::Type::kF16 || type == ir::Type::kBF16;
}

// A C expression and how tightly it binds.
enum Precedence {
  kTernary,
  kOr,
  kAnd,
  kEquality,
  kRelational,
  kAdditive,
  kMultiplicative,
  kUnary,
  kPrimary,
};
struct Text {
  std::string text;
  Precedence precedence = kPrimary;

  // The text as an operand, in parentheses if it binds less tightly than `least`.
  std::string At(Precedence least) const {
    return precedence >= least ? text : StrCat("(", text, ")");
  }
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_C_TEXT_H_
