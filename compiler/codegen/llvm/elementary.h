// Elementary functions of f32 and narrower floats as arithmetic in f64.
//
// A call of the C library's function keeps a loop from becoming vectors; this code does not. It has no branch, no table
// and no integer division, only what vectors of every processor have.
#ifndef COMPILER_CODEGEN_LLVM_ELEMENTARY_H_
#define COMPILER_CODEGEN_LLVM_ELEMENTARY_H_

#include <string_view>

#include "llvm/IR/IRBuilder.h"

namespace polynao::codegen {

// Whether EmitElementary knows the function: exp, sigmoid, tanh.
bool IsElementary(std::string_view name);

// The function's value in f64 for `x`, a float or a vector of floats, emitted at the place of `b`: to be rounded to f32
// or to a narrower type. `native_fma`: the machine rounds a * b + c once by one instruction, which takes the place of
// two here.
//
// The relative error is up to 7e-16 for exp and sigmoid and 2e-15 for tanh, where half a unit in the last place of f32
// is 3e-8. Rounded to f32, f16 or bf16, the values of all arguments are the right ones, with `native_fma` and without
// it: elementary_test.cc compares them with those of the interpreter, which rounds what the C library computes in f64.
// A NaN gives a NaN, an infinity the limit, and tanh(-0) is -0. Beyond some argument the value in f64 is any that
// rounds to the right one: exp(200) gives e^89, which is infinity in f32.
llvm::Value* EmitElementary(llvm::IRBuilder<>& b, std::string_view name, llvm::Value* x,
                            bool native_fma);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_ELEMENTARY_H_
