// A group of stages as one kernel of a GPU: a tile is a block, and each stage a loop that the block's threads share.
//
//   stage 0: a[i] = ..    stage 1: y[i] = a[i] + a[i + 1]         tiles of 100 of y, blocks of 64 threads:
//
//   thread (bx = "blockIdx.x", (n + 99) / 100) {
//     allocate a.shared: f32[101] @shared
//     thread (tx = "threadIdx.x", 64) {                           stage 0: 101 elements, in two rounds
//       for (r, 0, 2) { let e = r * 64 + tx   if (e < 101) { a.shared[e] = .. } }
//     }
//     thread (tx = "threadIdx.x", 64) {                           stage 1, behind a barrier
//       for (r, 0, 2) { let e = r * 64 + tx   if (e < 100) { y[bx * 100 + e] = a.shared[e] + a.shared[e + 1] } }
//     }
//   }
#ifndef COMPILER_POLY_GPU_GROUP_H_
#define COMPILER_POLY_GPU_GROUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Why a grid cannot have these numbers of tiles, one for each dimension that is cut, outermost first; "" if it can.
std::string GridObstacle(const std::vector<int64_t>& tiles);

struct GpuGroup {
  ir::Stmt code;
  int phases = 1;
  int64_t shared_bytes = 0;
  int registers = 0;  // producers of which each thread keeps its elements
};

struct GpuGroupOptions {
  int64_t threads = 256;  // of a block
  int64_t shared_bytes = 48 << 10;
  bool registers = true;
};

// The kernel of `group`; `part` has its stages alone. Iterators of a stage along which nothing depends on each other,
// and which have a box of constant size in each tile, are numbered together, the one that walks along memory last; but
// not loops of few iterations that all read the same elements of other stages, as over the colours of a pixel. Number e
// is thread e % threads, in round e / threads. Each thread runs the other loops of its instances. What a producer
// stores is in shared memory; if each thread reads only what it has stored itself, in registers.
//
// Errors: FailedPrecondition if there is no such box of what a tile needs of a producer, boxes need more shared memory
// (ResourceExhausted), or there is no such grid. Throws isl::exception.
absl::StatusOr<GpuGroup> GenerateGpuGroup(const Scop& part, const std::vector<Stage>& stages,
                                          const Group& group, const GpuGroupOptions& options);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_GROUP_H_
