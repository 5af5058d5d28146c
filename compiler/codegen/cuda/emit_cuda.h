// The CUDA back end: loop IR as readable CUDA C, for nvcc, for NVRTC and, with the shim, for a CPU.
//
// Loops over blockIdx and threadIdx become the grid and its blocks. Barriers separate thread regions if
// one reads what another stored (kernels.h). Allocations of scope "shared" around thread regions become
// shared memory. Allocations private to a thread become local arrays; the compiler keeps them in
// registers if it can unroll the loops that index them. A vectorize loop of 2, 4, ... elements becomes
// one wide load and store if its accesses are adjacent and aligned. An unroll loop gets
// `#pragma unroll`. A loop of four that adds products of i8 to an i32 becomes dp4a. Other loops stay.
//
// The code agrees with the interpreter on programs that do not stop and whose threads within a region
// are independent, except that nvcc contracts a*b+c unless told not to, and that exp, tanh, ... are
// CUDA's. Buffers must be aligned to 16 bytes.
#ifndef COMPILER_CODEGEN_CUDA_EMIT_CUDA_H_
#define COMPILER_CODEGEN_CUDA_EMIT_CUDA_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/cuda/kernels.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// An argument of kernels.
struct CudaValue {
  enum class Kind {
    kParameter,     // of the function
    kWorkspace,     // only kernels use it
    kHostVariable,  // of a loop around the launch
  };
  ir::Param param;
  Kind kind = Kind::kParameter;
  bool is_workspace() const { return kind == Kind::kWorkspace; }
};

struct CudaKernel {
  std::string name;
  Extents grid = {1, 1, 1};                   // along axes of constant extent
  std::array<ir::Expr, 3> grid_extents = {};  // the others', else null (kernels.h)
  Extents block = {1, 1, 1};
  int64_t shared_bytes = 0;    // static; the launch requests no dynamic shared memory
  int barriers = 0;            // places with __syncthreads
  std::vector<int> arguments;  // numbers of values, in the order of the kernel's parameters
};

struct CudaFunction {
  std::string name;  // as an identifier of C
  std::vector<CudaValue>
      values;  // the function's parameters in their order, then workspaces, then the host's variables
  std::vector<CudaKernel> kernels;
  std::vector<HostStep> host;            // launches them (launches.h)
  std::shared_ptr<ir::Context> context;  // owns what `values` name
};

struct CudaModule {
  std::string source;
  std::vector<CudaFunction> functions;
};

// One CUDA file with the kernels of all functions, `extern "C" __global__ void NAME_kernel(...)`, or
// NAME_kernel0, NAME_kernel1, ... if there are several. Pointers are __restrict__, and const if the kernel
// only reads through them; scalars of f16 and bf16 are float. Errors: those of PlanKernels, a function
// that is not well-formed, a tensor instruction, two functions of one name.
absl::StatusOr<CudaModule> EmitCuda(absl::Span<const ir::Function> functions);
absl::StatusOr<CudaModule> EmitCuda(const ir::Function& function);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_EMIT_CUDA_H_
