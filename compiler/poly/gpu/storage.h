// Where a block keeps what its stages hand on: in shared memory, or in registers of threads.
#ifndef COMPILER_POLY_GPU_STORAGE_H_
#define COMPILER_POLY_GPU_STORAGE_H_

#include <cstdint>
#include <vector>

#include "compiler/poly/arrange/slots.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/gpu/kernel_loops.h"

namespace polynao::poly {

// Where a tile's arrays are.
struct Storage {
  int slot = -1;               // in shared memory
  bool is_own = false;         // each thread has the elements that it stores
  std::vector<size_t> kept;    // the dimensions of an own array besides thread and round
  std::vector<int64_t> sizes;  // of these
  int64_t rounds = 1;
};

struct StoragePlan {
  std::vector<Storage> arrays;  // of GroupTree::locals
  Slots slots;
  int phases = 1;
};

// The number of each stage's phase: stages of one phase read nothing of each other, so that there is a barrier between
// phases only. `at_end`: each stage is in the last phase in which it may be, and not in the first one.
std::vector<int> PhasesOf(const std::vector<Stage>& stages, const Group& group, bool at_end);

// Blocks of `threads` threads. An array is in registers (if `registers`) where all components that access it number
// their instances in the same way, and each element belongs to one number. The others take slots by the phases of
// `group`, in the order of its producers. Throws isl::exception.
StoragePlan PlanStorage(const std::vector<Stage>& stages, const Group& group, const GroupTree& tree,
                        const KernelLoops& loops, int64_t threads, bool registers);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_STORAGE_H_
