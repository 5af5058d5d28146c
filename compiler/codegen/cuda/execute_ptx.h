// Counts the PTX instructions that a kernel's threads execute, without a GPU.
#ifndef COMPILER_CODEGEN_CUDA_EXECUTE_PTX_H_
#define COMPILER_CODEGEN_CUDA_EXECUTE_PTX_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/kernels.h"

namespace polynao::codegen {

struct PtxExecution {
  // Executed instructions by kind, as CountPtx names them, and "all". Extrapolated from the sampled
  // threads to all threads of the grid.
  std::map<std::string, double> counts;
  // This is true if no branch of a sampled thread depended on memory, floats or scalar parameters. Such a branch is not
  // taken.
  bool exact = true;
};

struct PtxExecutionOptions {
  int samples = 16;  // threads to execute, drawn at random; the same for the same grid and block
  int64_t max_steps = int64_t{1} << 26;  // of one thread
};

// Executes the kernel `name` for some of its threads, each alone. Integers and predicates are computed,
// loaded values and floats are unknown, and stores do nothing. (The machine code differs: ptxas merges
// additions, and moves and unrolls a little.)
// Errors: no such kernel; a thread that takes more than max_steps.
absl::StatusOr<PtxExecution> ExecutePtx(std::string_view ptx, std::string_view name,
                                        const Extents& grid, const Extents& block,
                                        const PtxExecutionOptions& options = {});

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_EXECUTE_PTX_H_
