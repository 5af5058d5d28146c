// Computes as one group on a card: reductions, windows, margins, transposed and strided reads, products of rows and
// weights, and what is elementwise around them. Each tensor crosses GMEM once, or once for each tile that needs it;
// everything between stays on chip. Convolutions, and products with weights that all rows share and that stand in
// memory as the tensor unit reads them, are contraction_group.h's.
#ifndef COMPILER_TE_CARD_VECTOR_GROUP_H_
#define COMPILER_TE_CARD_VECTOR_GROUP_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/math.h"
#include "compiler/ir/ir.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/estimate.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/turned_copy.h"
#include "compiler/te/card/vector_nodes.h"
#include "compiler/te/graph.h"
#include "isa/granularity.h"
#include "isa/machine.h"

namespace polynao::te {

class VectorGroup {
 public:
  // Errors: those of CutIntoNodes; a reduction that no instruction computes; a smallest tile that does not fit.
  // `products`: as CutIntoNodes has it; then it is an error if there are none.
  // `reuses`: tilings fit also where computed nodes share NMEM with those that nobody reads any more. That is an
  // estimate of what the pass `storage` finds, so that the first of the schedules may fail: for callers who try others.
  static constexpr int64_t kFew = -1;
  // Of a group with flat windows what tiles have of the output's last three dimensions.
  struct FlatTiles {
    // Cores too have so many. 0: any number; kFew: any, of the ways to share the output the simpler ones alone, since
    // other groups have its windows flat.
    int64_t channels = 0;
    int64_t columns = 0;  // cores too
    int64_t least_rows = 1, most_rows = 1;
  };
  static absl::StatusOr<VectorGroup> Create(const Tensor& output,
                                            const LaneInstructions& instructions,
                                            const isa::Machine& machine, bool products,
                                            const FlatTiles& flat, bool reuses);
  // Whether the tensor unit computes a part of it.
  bool has_products() const { return has_products_; }

  // Whether it is one of Schedules().
  bool Has(const CardChoice& choice) const { return Find(choice) != nullptr; }

  // Cycles of the first of Schedules().
  double LeastCycles() const { return ranked_[0].second.cycles; }

  // The tilings that fit, the cheapest first.
  //
  //   split         the output's dimension of which clusters and cores take runs
  //   core          how long a run is
  //   apart, across the dimension that `across` cores of a cluster share besides; or all of several clusters
  //   smem          1: what a cluster reads and computes crosses GMEM as one piece, by its memory core and SMEM; if its
  //                 cores' runs are a part of what it has, in several turns: one piece comes while another is computed.
  //                 2: what it computes alone; its cores load what they need, in long segments where rows become columns
  //   tile0, ..     extents of a tile along the output's dimensions
  //   along         1: rows of what is reduced stand side by side, and one instruction reduces a row. 0: one instruction
  //                 for each place of the reduced dimensions takes in the elements of all results there
  //   first         1: what is reduced is computed for all these places before, 0: for each place in turn
  //   part          of the first reduced dimension in NMEM at a time
  std::vector<CardSchedule> Schedules() const;
  // What the cost model says of a choice of Schedules().
  absl::StatusOr<mapping::Estimate> EstimateOf(const CardChoice& choice) const;
  // Which tiling with the choices `wanted` comes closest to fitting, and what it needs; "" if none has them.
  std::string WhyNone(const CardChoice& wanted) const;
  // The function under a choice of Schedules().
  absl::StatusOr<ir::Function> Build(const CardChoice& choice) const;

 private:
  struct Tiling {
    size_t split = 0, apart = 0;
    int64_t across = 1;
    int smem = 0;
    Shape core, tile;
    bool along = false;
    bool first = false;
    int64_t part = 0;
  };
  // How a lane reads an operand: an element for each of its own, a row for all rows, or a copy of its own.
  enum class Use : uint8_t { kWhole, kRow, kSpread };
  // Copies in one stretch of memory each.
  struct Runs {
    int64_t count = 1, length = 1;
  };
  // An element is repeated along a row in three copies: this often by itself, then runs of this length up to a group of
  // the vector unit, then groups.
  static constexpr int64_t kFirstRun = 8;
  // A node under a tiling.
  struct Placed {
    Shape box;                // of its storage
    bool is_same = false;     // for all tiles of a core
    bool in_loop = false;     // computed for each place of the reduced dimensions
    bool is_inlined = false;  // a copy that its readers make
    // Such a one in the loops of a reduction, of whose rows longer ones are made before these.
    bool is_repeated_before = false;
    bool is_direct = false;  // a copy that comes from GMEM itself
    bool is_loaded = false;  // an input that has storage of its own
    bool has_copy =
        false;  // a reduction that copies what it reads, or a product that copies its rows
    bool by_parts = false;  // made by all cores of a cluster together, for weights in SMEM
    bool by_smem = false;   // weights that come by way of SMEM, once for all cores of a cluster
    std::optional<Turn> turn = {};  // of a copy that turns rows into columns
    bool loads_turned = false;      // what such a copy turns comes from GMEM itself
    int place = -1;                 // the node whose storage a lane takes
    const isa::Instruction* form = nullptr;
    std::vector<Use> uses = {};
    // Of an operand that is read as a row: the first dimension of the lane along which the row is made longer by
    // copies, until it has whole groups of the vector unit; -1: it has them by itself.
    std::vector<int> repeats = {};
  };
  struct Layout {
    std::vector<Placed> nodes;
    bool spreads_result = false;
    mapping::Needs needs;
    mapping::CostParts cost;
  };
  // Whether it fits the memories.
  bool Fits(const mapping::Needs& needs) const {
    return needs.nmem <= card_.nmem_bytes && needs.wmem <= card_.wmem_bytes &&
           needs.smem <= card_.smem_bytes;
  }
  // Bytes that no memory has: of tilings that are refused.
  static constexpr int64_t kTooMuch = int64_t{1} << 48;
  // Where the rows of operand `i` are that are made longer.
  size_t SourceOfRows(const Layout& layout, size_t i) const {
    return layout.nodes[i].is_repeated_before ? nodes_.list[i].operands[0].node : i;
  }
  class Places;
  class Counter;
  class Builder;

  VectorGroup(const Tensor& output, const LaneInstructions& instructions,
              const isa::Machine& machine, const FlatTiles& flat, bool reuses)
      : output_(output),
        instructions_(&instructions),
        machine_(&machine),
        card_(machine),
        flat_(flat),
        channels_(flat.channels),
        reuses_(reuses) {}

  Layout LayoutOf(const Tiling& t) const;
  void ReadIndices();
  // Which copies may turn rows into columns, and by which instruction.
  void FindTurns();
  // Which of the output's dimensions each node follows, as bits.
  void FindFollowed();
  // The output's dimensions that weights of products follow. Their tiles are the outer loops: the weights of one of
  // these stay in WMEM for all tiles inside.
  void FindOuter();
  bool IsOuter(size_t d) const { return (outer_ >> d & 1) != 0; }
  absl::Status FindReducers();
  // The reduction whose first dimension may be in NMEM part by part; -1: none.
  int FindParted() const;
  // Whether single elements are repeated along the last dimension of a box, where an operand has elements of its own
  // along `has`, so often that it pays to copy them in groups.
  static bool RepeatsElements(const Shape& box, const std::vector<bool>& has) {
    return !has.empty() && !has.back() &&
           (box.back() >= 2 * isa::kVectorGroup || box.back() == isa::kVectorGroup);
  }
  // Whether reductions read computed elements, all of them at the places of their loops.
  bool MayComputeFirst() const;
  // How many runs of the split dimension the cores of a cluster take.
  int64_t RunsOfCluster(const Tiling& t) const {
    const int64_t used = CeilDiv(output_.shape()[t.split], t.core[t.split]);
    return std::min(card_.cores / AcrossInCluster(t), used);
  }
  int64_t AcrossInCluster(const Tiling& t) const { return std::min(t.across, card_.cores); }
  // How often a cluster takes runs, if they go by way of SMEM.
  int64_t Turns(const Tiling& t) const {
    return CeilDiv(CeilDiv(output_.shape()[t.split], t.core[t.split] * RunsOfCluster(t)),
                   card_.clusters);
  }
  // Whether clusters need another part of an input in each turn.
  bool MovesWithTurns(const Tiling& t, size_t input) const {
    return (follows_[input] >> t.split & 1) != 0;
  }
  // Whether nothing is computed, so that no row needs whole groups of the vector unit.
  bool OnlyCopies() const {
    return std::all_of(nodes_.list.begin(), nodes_.list.end(), [](const VectorNode& node) {
      return node.kind == VectorNode::Kind::kInput || node.kind == VectorNode::Kind::kCopy;
    });
  }
  // Whether a core has one tile: nothing of it is moved while another one is computed.
  static bool HasOneTile(const Tiling& t) { return t.tile == t.core && t.part == 0; }
  // How many cores may share another dimension where clusters and cores take runs of `split`.
  std::vector<int64_t> CoresAcross(size_t split) const;
  // Ways to share the output; tiles are not set.
  std::vector<Tiling> SharedOutputs() const;
  // Extents of tiles along dimension d, the largest first.
  std::vector<int64_t> TileSizes(const Tiling& way, size_t d) const;
  // Those that fit NMEM, with their cycles, or those that were tried and do not fit.
  std::vector<std::pair<Tiling, double>> AllTilings(bool fitting = true) const;
  CardChoice ChoiceOf(const Tiling& t) const;
  std::vector<std::pair<Tiling, CardSchedule>> Ranked() const;
  // The tiling of a choice; null if there is none.
  const Tiling* Find(const CardChoice& choice) const;

  Tensor output_;
  const LaneInstructions* instructions_;
  const isa::Machine* machine_;
  mapping::CardFacts card_;
  FlatTiles flat_;
  int64_t channels_;
  bool reuses_;
  VectorNodes nodes_;
  std::vector<std::vector<size_t>> readers_;
  // An index of a copy as constant + coefficients * axes; `is_linear`: it is no more than that.
  struct Index {
    bool is_linear = true;
    int64_t constant = 0;
    std::vector<int64_t> coefficients;
    std::vector<bool> uses;   // each axis
    std::vector<bool> bends;  // each axis other than by a coefficient
    // Of `axis / parts` and `axis % parts`: which axis; -1: it is neither.
    int divides = -1, wraps = -1;
    int64_t parts = 0;
  };
  std::vector<std::vector<Index>> indices_;          // of each node
  std::map<size_t, const isa::Instruction*> turns_;  // FindTurns: by copy
  std::vector<uint64_t> follows_;                    // the output's dimensions, as bits
  std::vector<std::vector<uint64_t>> dimension_follows_;
  uint64_t outer_ = 0;  // FindOuter, as bits
  bool has_products_ = false;
  // Of each reduction the instruction that takes in one more element, and the one that reduces a row, if there is one.
  struct Reducers {
    const isa::Instruction* combine = nullptr;
    const isa::Instruction* row = nullptr;
  };
  std::vector<Reducers> reducers_;
  int parted_ = -1;                                      // FindParted
  std::vector<std::pair<Tiling, CardSchedule>> ranked_;  // the cheapest first
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_VECTOR_GROUP_H_
