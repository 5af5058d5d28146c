// The CUDA back end: loop IR as readable CUDA C, for nvcc, NVRTC, and, by the shim, for a CPU.
//
// Loops over blockIdx and threadIdx are the grid and its blocks; thread regions have barriers
// between them where one needs what another stored (kernels.h). Allocations of scope "shared" around
// thread regions are shared memory, those that each thread has for itself local arrays, which the
// compiler keeps in registers where it can unroll what indexes them. A vectorize loop of 2, 4, ...
// elements becomes one wide load and store where its accesses are side by side and aligned; an
// unroll loop carries `#pragma unroll`; a loop of four that adds products of i8 to an i32 is dp4a.
// Other loops are those of the program.
//
// Means what the interpreter means for programs that do not stop, where threads of one region do not
// depend on each other; but nvcc contracts a*b+c unless told not to, and its exp, tanh, ... are
// CUDA's. Buffers must be aligned to 16 bytes.
#ifndef COMPILER_CODEGEN_CUDA_EMIT_CUDA_H_
#define COMPILER_CODEGEN_CUDA_EMIT_CUDA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/cuda/kernels.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// What kernels take: a parameter of the function, or memory that only its kernels use.
struct CudaValue {
  ir::Param param;
  bool is_workspace = false;
};

struct CudaKernel {
  std::string name;
  Extents grid = {1, 1, 1};
  Extents block = {1, 1, 1};
  int64_t shared_bytes = 0;    // static; nothing is to be asked for at the launch
  int barriers = 0;            // places with __syncthreads
  std::vector<int> arguments;  // numbers of values, in the order of the kernel's parameters
};

struct CudaFunction {
  std::string name;                 // as an identifier of C
  std::vector<CudaValue> values;    // the function's parameters in their order, then workspaces
  std::vector<CudaKernel> kernels;  // to be run one after the other
  std::shared_ptr<ir::Context> context;  // owns what `values` name
};

struct CudaModule {
  std::string source;
  std::vector<CudaFunction> functions;
};

// One CUDA file with the kernels of all functions, `extern "C" __global__ void NAME_kernel(...)`, or
// NAME_kernel0, NAME_kernel1, ... if there are several. Pointers are __restrict__, those to what a
// kernel only reads const; scalars of f16 and bf16 are float. Errors: those of PlanKernels, a function
// that is not well-formed, a tensor instruction, two functions of one name.
absl::StatusOr<CudaModule> EmitCuda(absl::Span<const ir::Function> functions);
absl::StatusOr<CudaModule> EmitCuda(const ir::Function& function);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_EMIT_CUDA_H_
