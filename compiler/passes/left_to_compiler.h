// Decides what licm and cse leave to the compiler that gets their result.
#ifndef COMPILER_PASSES_LEFT_TO_COMPILER_H_
#define COMPILER_PASSES_LEFT_TO_COMPILER_H_

#include "compiler/ir/ir.h"

namespace polynao {

// Returns true if the operation at the root of `e` is one that LLVM, C compilers and nvcc move and share by themselves:
// arithmetic that cannot stop the program, and so may be evaluated anywhere. Not loads, `&&`, `||` and select, whose
// branches hide what is inside, nor divisions by variables and functions of a library. Binding such expressions brings
// nothing there and has a price: LLVM packs neighbouring variables into vectors that it takes apart again, and nvcc
// keeps more registers alive. A whole expression is left if all of its operations are.
bool IsLeftToCompiler(ir::Expr e);

}  // namespace polynao

#endif  // COMPILER_PASSES_LEFT_TO_COMPILER_H_
