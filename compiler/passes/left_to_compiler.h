// What licm and cse leave to the compiler that gets their result.
#ifndef COMPILER_PASSES_LEFT_TO_COMPILER_H_
#define COMPILER_PASSES_LEFT_TO_COMPILER_H_

#include <cstdint>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Expressions that the compiler behind this one moves and shares by itself. Binding them brings
// nothing and has a price: LLVM packs neighbouring variables into vectors that it takes apart again,
// and nvcc keeps more registers alive.
enum class Left : uint8_t {
  kNothing,
  // All arithmetic that cannot stop the program, and so may be evaluated anywhere. Not loads, `&&`,
  // `||` and select, whose branches hide what is inside, nor divisions by variables and functions of
  // a library.
  kArithmetic,
};

// LLVM and C compilers ("cpu", "c") and nvcc ("cuda"): kArithmetic. Others: kNothing.
Left LeftTo(const Target& target);

// Whether the operation at the root of `e` is among `left`. A whole expression is left if all of its
// operations are.
bool IsLeft(ir::Expr e, Left left);

}  // namespace polynao

#endif  // COMPILER_PASSES_LEFT_TO_COMPILER_H_
