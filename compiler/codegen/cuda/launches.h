// The launches of a function's kernels, for given values of its scalar parameters.
#ifndef COMPILER_CODEGEN_CUDA_LAUNCHES_H_
#define COMPILER_CODEGEN_CUDA_LAUNCHES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/ir/shapes.h"

namespace polynao::codegen {

struct CudaLaunch {
  size_t kernel = 0;
  Extents grid = {1, 1, 1};
  // Of the kernel's arguments that are variables of the host, in their order.
  std::vector<int64_t> host_values;
};

// Calls `visit` for each launch, in order, until it returns an error. A grid without blocks is not launched.
// Errors: those of `visit`; a bound or an extent that cannot be computed (ir::EvaluateInt); a grid beyond
// CUDA's limits.
absl::Status ForEachLaunch(const CudaFunction& function, const ir::IntValues& integers,
                           const std::function<absl::Status(const CudaLaunch&)>& visit);

// How many elements a workspace has.
absl::StatusOr<int64_t> WorkspaceElements(ir::Buffer buffer, const ir::IntValues& integers);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_LAUNCHES_H_
