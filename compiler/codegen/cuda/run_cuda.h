// Runs generated CUDA on the CPU with the shim, for tests and `nao run --target=cuda`.
#ifndef COMPILER_CODEGEN_CUDA_RUN_CUDA_H_
#define COMPILER_CODEGEN_CUDA_RUN_CUDA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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

// The text of the shim (shim.h). Placed before a CUDA file it makes the file C++.
std::string ShimText();

// Kernels compiled with the shim by the machine's C compiler and loaded into this process. In a process
// only one kernel runs at a time, on one CPU; floats round as in the interpreter.
class ShimmedCuda {
 public:
  // Emits `functions` as one CUDA file and compiles it. Errors: those of EmitCuda, no compiler, or
  // the compiler's own messages.
  static absl::StatusOr<std::unique_ptr<ShimmedCuda>> Create(
      absl::Span<const ir::Function> functions, int optimization_level = 1);

  // Runs the kernels of function number `index`. `order` says how threads take turns between barriers
  // (0: by number, 1: backwards, others: drawn from it). Errors: arguments that do not fit
  // (LayOutArguments), those of ForEachLaunch, a barrier that not all threads reach. Threads do not wait at the
  // barrier number `left_out_barrier` of the function, in the order of its text: for tests that a barrier is needed.
  absl::Status Run(size_t index, absl::Span<const ir::Argument> arguments, uint64_t order = 0,
                   std::optional<size_t> left_out_barrier = {}) const;

  // How many barriers the text of function number `index` has.
  size_t BarrierCount(size_t index) const { return barrier_lines_[index].size(); }

  const CudaModule& module() const { return module_; }

 private:
  ShimmedCuda() = default;
  std::vector<ir::Function> functions_;
  CudaModule module_;
  using LaunchEntry = int32_t (*)(void* const* buffers, const int64_t* scalars,
                                  const int64_t* grid);
  std::vector<std::vector<LaunchEntry>> entries_;  // of each function's kernels
  std::vector<std::vector<int>> barrier_lines_;    // of each function
  std::unique_ptr<LoadedCode> code_;
  void (*set_order_)(uint64_t) = nullptr;
  void (*leave_out_)(int) = nullptr;
  const char* (*message_)() = nullptr;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_RUN_CUDA_H_
