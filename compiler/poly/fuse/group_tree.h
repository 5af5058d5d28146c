// The schedule tree of one group of stages: tiles of the last one, and in front of each tile what it needs of the
// others.
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
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/poly/arrange/local_copies.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/generate/generate.h"

namespace polynao::poly {

// Stages that run in the tiles of `root`.
struct Group {
  int root = 0;
  std::vector<int> producers;  // ascending, so each behind those it reads
  // Elements of a tile along each dimension of the root's array; 0: all.
  std::vector<int64_t> sizes;
  // The dimension of which the tiles run in parallel, outermost; -1: none.
  int parallel = -1;
  // The dimension along which a tile runs row by row, with windows of the producers that slide (slide.h); -1: none.
  int slides = -1;
};

// Returns true if there are arrays, all with equally many dimensions.
bool HaveOneRank(const std::vector<ir::Buffer>& buffers);

// The dimensions of the stage's array along which it can be cut into tiles that do not depend on each other; of several
// arrays, which have elements of one index in one tile. Empty if these have different numbers of dimensions. Throws
// isl::exception.
std::vector<bool> TileableDimensions(const Stage& stage);

// The places, in the order of a group's stages, of the one that stores an array and of the last one that reads it.
struct Lifetime {
  int first = 0, last = 0;
};

// Of the array of `producer`, one of `group`.
Lifetime LifetimeOf(const std::vector<Stage>& stages, const Group& group, int producer);

// A tile has a copy of these elements of `buffer`, in a box at a place that depends on the tile.
struct TileLocal {
  ir::Buffer buffer;
  Box box;
  int slides = -1;  // SlidingBox::slides
  Lifetime life;    // if windows slide and rows after read it, from the first stage to the last
};

struct GroupTree {
  MarkedSchedule marked;
  isl::union_map tiles;  // { root[i] -> [t0, t1, ..] }
  isl::union_map rows;   // { root[i] -> [t0, t1, .., x] } if windows slide, or else the tiles
  std::vector<TileLocal> locals;  // of the producers, in their order
  std::map<std::string, isl::map>
      instances;  // of each statement of a producer: { [t.., x] -> S3[i] }, as in `rows`
};

// How a machine runs the loops of a group. Both functions get a node of a tree to which nothing is grafted yet, and
// return one of the new tree. Throw isl::exception.
class GroupLoops {
 public:
  virtual ~GroupLoops() = default;
  // The leaf below the band over tiles, { root[i] -> [t0, t1, ..] }, which `band` is.
  virtual isl::schedule_node BelowTiles(isl::schedule_node band, const isl::union_map& tiles) = 0;
  // The node at the place of `leaf`, which `around` dimensions of other trees are around, with the loops of a stage.
  // `instances`: { [t0, t1, ..] -> S[i] } of a tile.
  virtual isl::schedule_node StageLoops(isl::schedule_node leaf, int around, const Stage& stage,
                                        const isl::union_map& instances) = 0;
};

// The tree of `group`, whose root has a tile size along some tileable dimension. `part`: its stages alone. Its
// producers may be in any order in which each is behind those it reads. The default loops are those for a CPU. Errors:
// FailedPrecondition if the elements that a tile, or a row of it, needs of a producer are in no box of constant size
// (for a CPU, of a size over parameters, which rows do not have), or windows do not slide along. Throws isl::exception.
absl::StatusOr<GroupTree> MakeGroupTree(const Scop& part, const std::vector<Stage>& stages,
                                        const Group& group, GroupLoops* loops = nullptr);

// Gives each tile its local buffers: the mark around what a tile does, and the accesses below.
class TileHandler : public MarkHandler {
 public:
  // `tree` outlives this.
  explicit TileHandler(const GroupTree& tree) : tree_(tree) {}

  bool Handles(const std::string& mark) const override;
  std::vector<isl::ast_expr> Expressions(const std::string& mark,
                                         const isl::ast_build& build) override;
  ir::Stmt Write(const std::string& mark, const std::vector<isl::ast_expr>& expressions,
                 MarkPlace& place) override;
  ir::Expr Load(const Statement& statement, ir::Expr load,
                const std::vector<ir::Expr>& indices) override;
  ir::Stmt Store(const Statement& statement, ir::Buffer buffer,
                 const std::vector<ir::Expr>& indices, ir::Expr value) override;

 protected:
  const GroupTree& tree() const { return tree_; }
  // Of local number `i` of the tree: the extents of its array, if they are constants, by default the box's; the buffer,
  // one for each by default, which several may have in common; and the indices in it of the element at `inside` of the
  // box.
  virtual std::vector<int64_t> SizesOf(size_t i) const { return tree_.locals[i].box.sizes; }
  virtual ir::Buffer BufferFor(size_t i, ir::Context& c);
  virtual std::vector<ir::Expr> IndicesFor(size_t i, std::vector<ir::Expr> inside);

  // A box's places as expressions, each with a name if it is none of its own. Wraps `body` into the lets.
  using Lets = std::vector<std::pair<ir::Var, ir::Expr>>;
  static std::vector<ir::Expr> Named(const std::vector<isl::ast_expr>& values, size_t first,
                                     size_t count, const std::string& name, MarkPlace& place,
                                     Lets& lets);
  static ir::Stmt WithLets(const Lets& lets, ir::Stmt body);

 private:
  struct Local {
    size_t number;
    ir::Buffer buffer;
    std::vector<ir::Expr> first;
    int slides;
    int64_t window;  // elements along that dimension
  };
  std::vector<ir::Expr> Inside(const Local& local, const std::vector<ir::Expr>& indices);

  const GroupTree& tree_;
  absl::flat_hash_map<ir::Buffer, Local> made_;
  std::vector<std::vector<ir::Expr>> extents_;  // of the boxes, at the tile that is written
};

// The code of the tree for a CPU: each tile has local buffers for what its producers store. Those that do not live at
// the same time share memory. Throws isl::exception.
ir::Stmt GenerateGroup(const Scop& part, const GroupTree& tree);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_GROUP_TREE_H_
