// The text of the helper functions that emitted C and CUDA may call.
#ifndef COMPILER_CODEGEN_C_PRELUDE_H_
#define COMPILER_CODEGEN_C_PRELUDE_H_

#include <string>

namespace polynao::codegen {

// The beginning of a C file whose functions are `body`: includes, and the helpers (functions named
// nao_...) that `body` calls directly or through other helpers.
std::string CPrelude(const std::string& body);

// The same for a CUDA file that nvcc and NVRTC compile, and a C++ compiler under the shim
// (compiler/codegen/cuda/shim.h).
std::string CudaPrelude(const std::string& body);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_PRELUDE_H_
