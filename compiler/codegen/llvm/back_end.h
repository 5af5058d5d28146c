// The target "cpu" (compiler/codegen/back_end.h).
#ifndef COMPILER_CODEGEN_LLVM_BACK_END_H_
#define COMPILER_CODEGEN_LLVM_BACK_END_H_

#include "compiler/codegen/back_end.h"

namespace polynao::codegen {

const BackEnd& LlvmBackEnd();

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_BACK_END_H_
