// Schedules loop nests for a GPU: polyhedral schedule trees as grids of blocks of threads, with shared memory and
// registers (docs/polyhedral_gpu.md).
//
//   for (i, 0, n) for (j, 0, m) for (k, 0, l)       blocks (ib, jb), serial (kt):
//     C[i, j] = C[i, j] + A[i, k] * B[k, j]    -->    threads: copy tiles of A and B to shared memory
//                                                     threads (it, jt): for (k in the tile) C.own = C.own + ..
#ifndef COMPILER_POLY_GPU_GPU_H_
#define COMPILER_POLY_GPU_GPU_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/gpu/machine.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {

struct GpuOptions {
  // As in ScheduleOptions, without "overlap".
  std::string strategy = "auto";
  std::string text = {};
  // Threads of a block along x, y, z where one, two or three loops are mapped. At most 1024 in all.
  std::array<std::vector<int64_t>, 3> block = {{{128}, {32, 8}, {32, 4, 2}}};
  // Iterations of a tile along serial loops of a kernel with shared memory: one such loop, several.
  int64_t serial_tile = 32;
  int64_t serial_tiles = 8;
  int64_t shared_bytes = 48 << 10;  // of a block; 0: no copies
  bool registers = true;
  bool wavefront = true;
  bool reassociate = false;
  int64_t max_operations = 10'000'000;
  // For "fuse": tiles and groups as in ScheduleOptions, and threads of a block; 0: as the model says.
  std::vector<int64_t> group_tile = {};
  bool join_all = false;
  bool inline_stages = true;
  int64_t group_threads = 0;
  GpuMachine machine = {};
};

// Schedules the parts of `function` for a GPU, as poly::Schedule does for a CPU. The new code has loops over blockIdx
// and threadIdx in the form that compiler/codegen/cuda/kernels.h expects. Parts that have no parallel loop stay, and so
// do parts inside of loops or branches that only a kernel can evaluate; the report says why. Errors: those of
// poly::Schedule, and blocks of more than 1024 threads.
//
// "fuse": each group of stages (fuse/fuse.h) is one kernel (gpu_group.h), and so is a stage that is alone; those that
// gpu_fuse.h names go the way of "auto".
absl::StatusOr<ScheduleReport> ScheduleForGpu(ir::Function& function,
                                              const GpuOptions& options = {});

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_GPU_H_
