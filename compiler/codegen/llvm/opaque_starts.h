// Addresses that innermost loops begin with, as values without a structure.
#ifndef COMPILER_CODEGEN_LLVM_OPAQUE_STARTS_H_
#define COMPILER_CODEGEN_LLVM_OPAQUE_STARTS_H_

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"

namespace polynao::codegen {

// Freezes what addresses of an innermost loop are computed from outside of it:
//
//   start = gep image, (x + s + row) * 64          start = gep image, (x + s + row) * 64
//                                                  hidden = freeze start
//   loop: load gep start, sum                -->   loop: load gep hidden, sum
//
// LLVM's loop strength reduction (LoopStrengthReduce.cpp) considers all ways to split the sum that an address begins
// with; that took half of the time in which a convolution of 56x56x64 by 64x3x3x64 is compiled, a tenth for others, and
// gains nothing where few registers hold the starts. Starts that differ by a constant become one and the constant.
// Loops with many others are left alone. For code that is optimised: `freeze` hinders other passes.
void HideStarts(const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_OPAQUE_STARTS_H_
