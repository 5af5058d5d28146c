// Splits a function into kernels and places barriers between their thread regions.
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
inline constexpr int64_t kMaxSharedBytes = 48 << 10;  // available to every kernel by default
inline constexpr int64_t kMaxLocalBytes = 512 << 10;  // of one thread

// x, y, z.
using Extents = std::array<int64_t, 3>;

// Returns true if `s` is a loop over "blockIdx.x" ..., or over "threadIdx.x" ...; its place in
// Extents.
bool IsBlockLoop(ir::Stmt s);
bool IsThreadLoop(ir::Stmt s);
int AxisNumber(std::string_view thread_axis);

struct Kernel {
  // Its parameters are those of the whole function, the workspaces and the variables of the host that its
  // body uses.
  ir::Function function;
  Extents grid = {1, 1, 1};  // along axes of constant extent
  // Extents that the host computes before each launch; null where they are constant.
  std::array<ir::Expr, 3> grid_extents = {};
  Extents block = {1, 1, 1};
  int64_t shared_bytes = 0;
  // These conditions hold at its launches: conditions of branches of the host.
  std::vector<ir::Expr> known = {};
  // Statements with a barrier before them; all threads of the block reach them.
  absl::flat_hash_set<ir::Stmt> barrier_before;
  // Allocations of the block of which each thread has its own part, with the number of leading
  // dimensions that are indexed by the thread: acc[threadIdx.y, threadIdx.x, i] has 2.
  absl::flat_hash_map<ir::Buffer, size_t> private_dimensions;
};

// A step of the host: it launches kernels, in order, in loops and branches.
struct HostStep {
  // A loop, a let, or an if, whose body `steps` is; null: a launch of `kernel`.
  ir::Stmt around = {};
  bool otherwise = false;  // the body is the if's else
  size_t kernel = 0;
  std::vector<HostStep> steps = {};
};

struct KernelPlan {
  std::vector<Kernel> kernels;
  std::vector<HostStep> host;
  // Allocations around kernels, in global memory; alive all the time. Their extents are over the scalar parameters
  // of the function.
  std::vector<ir::Buffer> workspaces;
};

// Each outermost loop over blockIdx becomes a kernel, and so do the statements between such loops (with
// one block, and with one thread if they have no loop over threadIdx). Loops, branches and lets around
// loops over blockIdx are the host's. Extents of loops over blockIdx may depend on the host's variables.
//
//   for (k, 0, n) {                                     host: for (k, 0, n) {
//     A[k] = A[k] / 2.0                                         launch kernel 0 (k), one thread
//     thread (b = "blockIdx.x", n - k) { .. A[k] .. }   -->     launch kernel 1 (k), n - k blocks
//   }                                                         }
//
// A let or branch that reads memory is evaluated by each kernel inside. If one stores what it reads, a kernel of one
// thread evaluates it before and stores the value in a workspace.
//
// Inside a kernel, the outermost
// loops over threadIdx are thread regions (compiler/passes/thread_regions.h). All threads run the
// statements around regions, so conditions there must be equal for all threads. Thread 0 runs
// statements without thread loops.
//
// A region gets a barrier if, since the last barrier, threads have stored elements of shared or global
// memory that it reads or stores, or have read elements that it stores. Paths through loops and branches
// count too.
//
// Errors, naming the place: around blocks, a loop that depends on memory; statements beside a loop over blockIdx, or in
// a region beside a loop over threadIdx; extents of blocks and of allocations in kernels that are not constant; extents
// of grids that depend on memory or blocks, and of allocations around kernels that depend on more than the parameters;
// extents beyond the limits; an allocation of a block that is neither "shared" nor split among threads by its leading
// dimensions.
absl::StatusOr<KernelPlan> PlanKernels(const ir::Function& function);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_KERNELS_H_
