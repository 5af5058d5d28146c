// The loops of a group's kernel in its schedule tree: blocks over tiles, and loops that the threads of a block share.
#ifndef COMPILER_POLY_GPU_KERNEL_LOOPS_H_
#define COMPILER_POLY_GPU_KERNEL_LOOPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/local_copies.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/stage_loops.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/gpu/map.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Marks around the loops that threads share, and below them, each with the component's number behind it.
inline constexpr const char* kThreadsMark = "threads";
inline constexpr const char* kInThreadsMark = "in_threads";

// The loops of a component (stage_loops.h) that threads share.
struct ThreadLoops {
  const Stage* stage;
  isl::union_map instances;  // { [t..] -> S[i] }
  isl::union_map
      members;    // { S[i] -> [m0, m1, ..] }: the shared loops; of no dimension if there are none
  int depth = 0;  // of the first one
  Box box;        // of [m0, m1, ..] in each tile
  int64_t elements() const { return box.elements(); }
};

// gpu_group.h says which loops those are.
class KernelLoops : public GroupLoops {
 public:
  KernelLoops(const Scop& part, const std::vector<Stage>& stages, const Group& group);

  isl::schedule_node BelowTiles(isl::schedule_node band, const isl::union_map& tiles) override;
  isl::schedule_node StageLoops(isl::schedule_node leaf, int around, const Stage& stage,
                                const isl::union_map& instances) override;

  // Marks of blocks (gpu_emit.h).
  const GpuMapping& mapping() const { return mapping_; }
  // By number.
  const std::map<std::string, ThreadLoops>& components() const { return components_; }

 private:
  isl::schedule_node WithThreads(isl::schedule_node node, int around, const Stage& stage,
                                 const Component& component, const isl::union_map& all);
  bool IsRepetition(const Component& component, int i, int last) const;

  const Scop& part_;
  absl::flat_hash_set<ir::Buffer> handed_on_;  // what producers store
  GpuMapping mapping_;
  std::map<std::string, ThreadLoops> components_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_KERNEL_LOOPS_H_
