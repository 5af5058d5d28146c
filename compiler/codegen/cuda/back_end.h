// The target "cuda" (compiler/codegen/back_end.h).
#ifndef COMPILER_CODEGEN_CUDA_BACK_END_H_
#define COMPILER_CODEGEN_CUDA_BACK_END_H_

#include "compiler/codegen/back_end.h"

namespace polynao::codegen {

const BackEnd& CudaBackEnd();

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_BACK_END_H_
