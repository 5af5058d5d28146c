// Estimates what it costs a GPU to run stages in the tiles of another one.
#ifndef COMPILER_POLY_GPU_GROUP_COST_H_
#define COMPILER_POLY_GPU_GROUP_COST_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/poly/fuse/group_cost.h"
#include "compiler/poly/gpu/machine.h"

namespace polynao::poly {

// The model. A tile is a block, of as many threads as are cheapest. Each statement takes as many rounds as the block
// needs to give each of its instances to a thread; loops that depend on themselves are each thread's own. Costs, in
// cycles:
//
//   compute   of a block: operations, loads and stores of all instances, by the lanes of a multiprocessor; in the last warp, threads without
//             an instance count too;
//   latency   of a block: a barrier for each phase, and in each round what its slowest access waits;
//   memory    the sectors that rows of the tile's boxes touch, by the bandwidth of the cache; those of arrays that fill more than half of
//             the cache, and each other array once, by the bandwidth of global memory;
//   a launch.
//
// A multiprocessor runs as many blocks at a time as threads and shared memory allow; they hide each other's latency.
// All wait for the one that has a block more, so that few blocks do not fill the GPU. A group costs a launch, and the
// greater of its memory, and the compute and latency of its blocks. Of small images, whose blocks do not fill the GPU,
// tiles of nearly the same cost differ in how much they compute again; the one with least is taken. Groups that need
// more shared memory than a block may have cost infinitely much.
class GpuGroupModel : public GroupModel {
 public:
  // All outlive this. `shared_bytes`: of a block. `threads`: of a block, 0 for the cheapest number. Throws
  // isl::exception.
  GpuGroupModel(const Scop& scop, const std::vector<Stage>& stages, const CpuMachine& sizes,
                const GpuMachine& gpu, int64_t shared_bytes, int64_t threads);

  GroupCost CostOf(const Group& group) const override;
  // The threads of the group's blocks.
  int64_t ThreadsOf(const Group& group) const;

 protected:
  bool HasRows() const override { return false; }
  std::vector<std::vector<int64_t>> Candidates(int root) const override;

 private:
  // Describes a tile, whatever its threads.
  struct Block {
    Tally tile;
    std::vector<double> parallel;  // of each work of the tile: instances that may run at once
    std::vector<int> phase;        // of each work
    int phases = 1;
    int64_t shared_bytes = 0;
    double tiles = 1;
    double memory_bytes = 0, cache_bytes = 0;  // of all tiles
  };
  Block BlockOf(const Group& group) const;
  double CyclesWith(const Block& block, int64_t threads) const;
  // That a multiprocessor runs at a time.
  double ResidentBlocks(const Block& block, int64_t threads) const;
  // The number of threads with the least cycles.
  int64_t BestThreads(const Block& block) const;

  const std::vector<Stage>& stages_;
  const GpuMachine& gpu_;
  const int64_t shared_bytes_;
  const int64_t threads_;
  // The iterators of each statement along which its instances are independent.
  absl::flat_hash_map<const Statement*, std::vector<ir::Var>> parallel_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_GROUP_COST_H_
