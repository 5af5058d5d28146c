// Runs generated CUDA on the CPU with the shim, for tests and `nao run --target=cuda`.
#ifndef COMPILER_CODEGEN_CUDA_RUN_CUDA_H_
#define COMPILER_CODEGEN_CUDA_RUN_CUDA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/arguments.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// A CUDA file with the shim (shim.h) in front, as C++. Its pointers and arrays, declared one in a line, or as
// parameters, become classes that know what is stored; its lines stay in their order, one for one. nao_shim::Launch
// runs kernels.
//
//   extern "C" __global__ void k(const float* __restrict__ A) {      __global__ void k(nao_shim::Pointer<float> A) {
//     __shared__ __align__(16) float s[8];                      -->    static .. s_array("s"); .. & s = s_array; s.Enter();
//     float x[2];                                                      nao_shim::Array<float[2]> x("x");
std::string ShimmedText(std::string_view cuda);

// Flags of a C++ compiler for such a text, besides its level of optimization.
std::vector<std::string> ShimFlags();

// Kernels compiled with the shim by the machine's C compiler and loaded into this process. In a process
// only one kernel runs at a time, on one CPU; floats round as in the interpreter.
class ShimmedCuda {
 public:
  // Emits `functions` as one CUDA file and compiles it, by default as fast as can be: the kernels of tests run briefly.
  // Errors: those of EmitCuda, no compiler, or the compiler's own messages.
  static absl::StatusOr<std::unique_ptr<ShimmedCuda>> Create(
      absl::Span<const ir::Function> functions, int optimization_level = 0);

  // Runs the kernels of function number `index`. `order` says how threads take turns between barriers
  // (0: by number, 1: backwards, others: drawn from it). Errors: arguments that do not fit
  // (LayOutArguments), those of ForEachLaunch, a barrier that not all threads reach, a load of memory that nothing has
  // stored: `out` parameters (that share no memory with others), workspaces, shared memory and arrays of threads are
  // undefined at first. Threads do not wait at the barrier number `left_out_barrier` of the function, in the order of
  // its text: for tests that a barrier is needed.
  absl::Status Run(size_t index, absl::Span<const ir::Argument> arguments, uint64_t order = 0,
                   std::optional<size_t> left_out_barrier = {}) const;

  // How many barriers the text of function number `index` has.
  size_t BarrierCount(size_t index) const { return barrier_lines_[index].size(); }

  const CudaModule& module() const { return module_; }

 private:
  ShimmedCuda() = default;
  std::vector<ir::Function> functions_;
  CudaModule module_;
  using LaunchEntry = int32_t (*)(void* const* buffers, unsigned char* const* undefined,
                                  const int64_t* scalars, const int64_t* grid);
  std::vector<std::vector<LaunchEntry>> entries_;  // of each function's kernels
  std::vector<std::vector<int>> barrier_lines_;    // of each function
  std::unique_ptr<LoadedCode> code_;
  void (*set_order_)(uint64_t) = nullptr;
  void (*leave_out_)(int) = nullptr;
  const char* (*message_)() = nullptr;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_RUN_CUDA_H_
