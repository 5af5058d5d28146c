// From loop IR to kernels: what runs on a grid of blocks of threads, and where threads must wait.
#ifndef COMPILER_CODEGEN_CUDA_KERNELS_H_
#define COMPILER_CODEGEN_CUDA_KERNELS_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// Limits of every CUDA device that has dp4a (compute capability 6.1 and later).
inline constexpr int64_t kMaxBlockThreads = 1024;
inline constexpr int64_t kMaxSharedBytes = 48 << 10;  // that a kernel gets without asking
inline constexpr int64_t kMaxLocalBytes = 512 << 10;  // of one thread

// x, y, z.
using Extents = std::array<int64_t, 3>;

// Whether `s` is a loop over "blockIdx.x" ..., or over "threadIdx.x" ...; its place in Extents.
bool IsBlockLoop(ir::Stmt s);
bool IsThreadLoop(ir::Stmt s);
int AxisNumber(std::string_view thread_axis);

struct Kernel {
  // Its parameters are those of the whole function and the workspaces that its body uses.
  ir::Function function;
  Extents grid = {1, 1, 1};
  Extents block = {1, 1, 1};
  int64_t shared_bytes = 0;
  // Statements that all threads of a block reach, in front of which all wait for one another.
  absl::flat_hash_set<ir::Stmt> barrier_before;
  // Allocations of the block that each thread has its own of, and how many dimensions in front say
  // which thread: acc[threadIdx.y, threadIdx.x, i] has 2.
  absl::flat_hash_map<ir::Buffer, size_t> private_dimensions;
};

struct KernelPlan {
  std::vector<Kernel> kernels;  // run one after the other
  // Allocations around kernels, in global memory; alive all the time.
  std::vector<ir::Buffer> workspaces;
};

// Kernels are the outermost loops over blockIdx, and what stands between them (with one block, and
// with one thread where no loop over threadIdx stands either). Inside, the outermost loops over
// threadIdx are thread regions (compiler/passes/thread_regions.h); the statements around them are
// run by all threads, so that what they branch on must be the same for all threads. Statements
// without thread loops are run by thread 0.
//
// A barrier stands before a region that reads or stores what a thread has stored since the last one
// in shared or global memory, or stores what was read; through loops and branches too.
//
// Errors, naming the place: a loop or a branch on memory around blocks; statements beside a loop
// over blockIdx, or in a region beside one over threadIdx; extents of grids, blocks and allocations
// that are not constant or above the limits; an allocation of a block that no dimensions in front
// give to single threads and that is not "shared".
absl::StatusOr<KernelPlan> PlanKernels(const ir::Function& function);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_KERNELS_H_
