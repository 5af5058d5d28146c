// The schedule tree of one group of stages: tiles of the last one, and in front of each tile what it needs of the others.
//
//   stage 0: a[i] = ..     stage 1: b[i] = a[i] + a[i + 1]          tiles of 32 of b:
//
//   domain { stage 1 }
//   band [floor(i / 32)]
//     extension { [t] -> stage 0 [i] : 32 t <= i <= 32 t + 32 }
//       sequence
//         filter { stage 0 }  band [i]          the element 32 t + 32 is computed again in the next tile
//         filter { stage 1 }  band [i]
//
// Method: Zhao and Di, "Optimizing the Memory Hierarchy by Compositing Automatic Transformations on Computations and
// Data", MICRO 2020, algorithms 1 to 3, in the corrected form of Zhao et al., TOCS 41, 2024: producers in reverse
// topological order, each with the footprints of all its consumers in the group.
#ifndef COMPILER_POLY_FUSE_GROUP_TREE_H_
#define COMPILER_POLY_FUSE_GROUP_TREE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/generate.h"
#include "compiler/poly/local_copies.h"

namespace polynao::poly {

// Stages that run in the tiles of `root`.
struct Group {
  int root = 0;
  std::vector<int> producers;  // ascending, so each behind those it reads
  // Elements of a tile along each dimension of the root's array; 0: all.
  std::vector<int64_t> sizes;
  // The dimension of which the tiles run in parallel, outermost; -1: none.
  int parallel = -1;
};

// The dimensions of the stage's array along which it can be cut into tiles that do not depend on each other. Empty if it stores
// several arrays. Throws isl::exception.
std::vector<bool> TileableDimensions(const Stage& stage);

// What a tile has a copy of: elements of `buffer`, in a box at a place that depends on the tile.
struct TileLocal {
  ir::Buffer buffer;
  Box box;
};

struct GroupTree {
  MarkedSchedule marked;
  isl::union_map tiles;                       // { root[i] -> [t0, t1, ..] }
  std::vector<TileLocal> locals;              // of the producers, in their order
  std::map<std::string, isl::map> instances;  // of each statement of a producer: { [t..] -> S3[i] }
};

// The tree of `group`, whose root has a tile size along some tileable dimension. `part`: its stages alone. Errors:
// FailedPrecondition if the elements that a tile needs of a producer are in no box of constant size. Throws isl::exception.
absl::StatusOr<GroupTree> MakeGroupTree(const Scop& part, const std::vector<Stage>& stages,
                                        const Group& group);

// The code of the tree: each tile has local buffers for what its producers store. Throws isl::exception.
ir::Stmt GenerateGroup(const Scop& part, const GroupTree& tree);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_GROUP_TREE_H_
