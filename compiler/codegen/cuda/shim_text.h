// The text of shim.h, embedded in the compiler.
#ifndef COMPILER_CODEGEN_CUDA_SHIM_TEXT_H_
#define COMPILER_CODEGEN_CUDA_SHIM_TEXT_H_

#include <string_view>

namespace polynao::codegen {

extern const std::string_view kShimText;

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_SHIM_TEXT_H_
