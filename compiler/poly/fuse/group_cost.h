// Estimates what it costs to run stages in the tiles of another one.
#ifndef COMPILER_POLY_FUSE_GROUP_COST_H_
#define COMPILER_POLY_FUSE_GROUP_COST_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/const_range.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

struct GroupCost {
  double cycles = 0;        // of the whole group, all cores at work
  double redundancy = 1;    // instances that run, by those that exist
  double memory_bytes = 0;  // to and from memory
  int64_t local_bytes = 0;  // of a tile's local buffers
  // There are fewer tiles than processors run at a time: what others compute again takes no time, but is work all the
  // same.
  bool is_idle = false;
};

// The model. Of a tile in the middle, each stage computes the box of what its readers in the group need (interval
// arithmetic on indices). Costs, in cycles:
//
//   arithmetic, loads and stores of each instance, by the lanes of a vector where the stage's innermost loop is one;
//   starts and remainders of innermost loops, and of runs of elements that come from memory;
//   memory: what tiles read of arrays that are not their own, and store to the root's, by the machine's bandwidth. Along
//   a dimension where what the tiles of one step touch fits into the cache, neighbours find there what they share;
//   its own arrays where they are too large for the nearest cache.
class GroupModel {
 public:
  // All outlive this. Throws isl::exception.
  GroupModel(const Scop& scop, const std::vector<Stage>& stages, const CpuMachine& machine);
  virtual ~GroupModel() = default;

  bool CanBeRoot(int stage) const;
  // Returns true if each element is a sum of so many products, or the like, that tiles of registers, which "auto" makes
  // and the loops of a group do not have, save more than fusion does.
  bool IsContraction(int stage) const;
  // Elements along each dimension of the stage's array that it stores.
  const std::vector<int64_t>& Extents(int stage) const { return info_[At(stage)].extents; }
  virtual GroupCost CostOf(const Group& group) const;
  // To and from memory, when the stage runs alone: all that it reads of each array, and twice what it stores.
  double BytesAlone(int stage) const;
  // That of tiles of these sizes, along tileable dimensions that are longer; the group gets them.
  GroupCost CostWith(Group& group, const std::vector<int64_t>& sizes) const;
  // The tile sizes, the parallel dimension and the one along which windows slide, for which that is least; for a group
  // without producers too. If processors are idle with them, those that compute least twice among all that take little
  // longer.
  GroupCost Best(Group& group, Windows windows = Windows::kByCost) const;
  // The cost with windows that slide along the best dimension, if less than `cost`, that without, or in any case; the
  // group gets it.
  GroupCost Slide(Group& group, GroupCost cost, Windows windows) const;

 protected:
  using Range = arith::ConstRange;
  using Box = std::vector<Range>;
  using Ranges = absl::flat_hash_map<ir::Var, Range>;

  // Index `d` is step * iterator + rest, with `base` where the iterator is at its first value.
  struct Slope {
    ir::Var iterator;
    size_t d;
    int64_t step;
    Range base;
  };
  // A load or store in a statement's code.
  struct Use {
    ir::Buffer buffer;
    std::vector<ir::Expr> indices;
    bool is_write = false;
    Box whole = {};                  // the array's elements
    bool is_along = false;           // the innermost loop goes along it
    std::vector<Slope> slopes = {};  // of a store
  };
  struct StatementInfo {
    const Statement* statement;
    std::vector<Use> uses;
    Ranges domain;  // of its iterators
    double arithmetic = 0;
    int vector = -1;  // the iterator of the innermost loop, if that is a vector
  };
  struct StageInfo {
    std::vector<StatementInfo> statements;
    std::vector<int64_t> extents;
    Box box;  // all that it stores
    std::vector<bool> tileable;
  };
  // The instances of a statement in a tile.
  struct Work {
    int stage;
    const StatementInfo* statement;
    Ranges iterators;
    double instances;
  };
  // A tile's share of the work.
  struct Tally {
    double cycles = 0, instances = 0;
    int64_t local_bytes = 0;
    int64_t passed_bytes = 0;  // of what its producers store in all, of which windows hold a part
    std::vector<Work> work;    // from the last statement to the first
    absl::flat_hash_map<int, int64_t> locals;  // bytes of each producer's array
    absl::flat_hash_map<ir::Buffer, Box>
        read;  // what it reads of other arrays, and stores to the root's
  };
  // Bytes to and from memory of all tiles, and starts of runs of them.
  struct Traffic {
    double bytes = 0, runs = 0;
  };

  static size_t At(int i) { return static_cast<size_t>(i); }
  Box WholeOf(ir::Buffer buffer) const;
  Range RangeOf(ir::Expr e, const Ranges& ranges) const;
  static std::vector<Use> UsesOf(const Statement& statement);
  std::vector<Slope> SlopesOf(const Use& store, const Ranges& domain) const;
  Ranges IteratorsFor(const StatementInfo& info, ir::Buffer buffer, const Box& stored) const;
  void ChooseParallel(Group& group) const;
  // Returns true if a tile can run row by row.
  virtual bool HasRows() const { return true; }
  // Returns true if a tile can have all elements along a dimension of the root's array: what it needs of others is in
  // boxes of constant size.
  bool HasConstantExtent(int stage, size_t d) const;
  // The sizes along each dimension of the root's array that Best tries; 0: all.
  virtual std::vector<std::vector<int64_t>> Candidates(int root) const;
  // Of a tile in the middle, whose arrays are windows if they slide.
  Tally TileOf(const Group& group) const;
  Tally WholeTileOf(const Group& group) const;
  static double BytesOf(ir::Buffer buffer, const Box& box);
  static ir::Buffer StoredBy(const StatementInfo& info);
  int64_t PackedBytes(const Group& group, const Tally& tile) const;
  double TilesAlong(const Group& group, size_t d) const;
  // How many tiles there are, the last ones smaller; instances that run in all, by those that exist.
  double TilesOf(const Group& group) const;
  double RedundancyOf(const Group& group, const Tally& tile) const;
  Traffic TrafficOf(const Group& group, const Tally& tile) const;
  double PlaneCycles(const Group& group) const;

  const std::vector<Stage>& stages_;
  const CpuMachine& machine_;
  const AssumedParameters assumed_;
  std::vector<StageInfo> info_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_GROUP_COST_H_
