// Convolutions and products with all that is elementwise before, between and
// behind them, as one group on a card: a tile of the output is computed from
// what it needs of everything before it, which stays in NMEM.
#ifndef COMPILER_TE_CARD_CONTRACTION_GROUP_H_
#define COMPILER_TE_CARD_CONTRACTION_GROUP_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/estimate.h"
#include "compiler/mapping/layer.h"
#include "compiler/mapping/mapping.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/steps.h"
#include "compiler/te/graph.h"

namespace polynao::te {

// A sum of products with weights: for each element of the output a sum over the
// last axis of an image's window and all axes of one row of weights.
struct Contraction {
  const Operation* sums = nullptr;
  Expr image = {};  // the load of the image in the sum
  const Operation* weights = nullptr;
  std::string family;  // of the tensor instruction
  Type type;           // of what is multiplied
  int64_t filter_elements = 1;
  double macs_per_cycle = 0;  // of a core

  // The image is a select(inside, source, constant) of `source`, or the
  // source itself.
  const Operation* pad = nullptr;
  const Operation* source = nullptr;
};

class ContractionGroup {
 public:
  // Errors: a compute that is no contraction, padding or elementwise; more than
  // one contraction that an elementwise compute reads; a machine without the
  // tensor instruction.
  static absl::StatusOr<ContractionGroup> Create(const Tensor& output,
                                                 const LaneInstructions& instructions,
                                                 const Target& target, const TileExtras& extras);

  // The tilings that fit the memories, and the mappings whose weights stream, that have the choices `wanted`, the
  // cheapest first; or the first of these alone, if it takes no more than `limit`.
  std::vector<CardSchedule> Schedules(const CardChoice& wanted, bool only_first,
                                      double limit = std::numeric_limits<double>::infinity()) const;
  absl::StatusOr<ir::Function> Build(const CardChoice& choice) const;
  // The cost model's parts of such a choice.
  absl::StatusOr<mapping::Estimate> EstimateOf(const CardChoice& choice) const;
  // Why no schedule has the choices `wanted`: a name that there is not, or the schedule with them that comes closest to
  // fitting, and what it lacks; "" if no candidate has them.
  std::string WhyNone(const CardChoice& wanted) const;
  // An error if the smallest tile fits NMEM or WMEM not.
  absl::Status CheckSmallestTile() const;

 private:
  // A tensor of the chain with the elementwise steps that lead to it, and the
  // contraction that these begin with, if any. The first level ends in the
  // output; each further one in the image of the contraction before it.
  struct Level {
    Steps steps;
    int contracted = -1;  // the step that is the contraction
    Contraction contraction = {};
  };
  // How the cores share the output. A cluster takes a run of rows, or a block of the channels. Of its cores
  // `columns_apart` stand side by side, `across` share the channels, the others share rows. A core takes a block of
  // rows and columns, tile by tile, for `block` channels at a time, whose weights stay in WMEM.
  struct Tiling {
    int64_t channel_clusters = 1;  // that share rows
    int64_t columns_apart = 1, across = 1;
    int64_t block = 0;
    int64_t rows = 0, columns = 0;  // of a tile
    // How many products of each sum are added up at a time, where the weights of whole sums do not fit; then each tile
    // loads weights and image part by part. 0: all.
    int64_t depth = 0;
    // How many tiles further on each cluster starts than the one before, so
    // that not all ask the same channel of GMEM.
    int64_t rotation = 0;
    // Tiles whose image comes before it is needed; then a core's image stays in
    // NMEM, and rows that tiles share come once. 0: each tile's image comes by
    // itself, while the tile before is computed.
    int64_t ahead = 0;
    int64_t copies = 2;            // of a tile's result
    bool weights_by_smem = false;  // else each core loads its own
    bool image_by_smem = false;    // each tile, where all cores of a cluster share the channels
    bool pipelined = false;        // the weights of a block come while the block before is computed
    // These follow from the others.
    int64_t cluster_rows = 0, cluster_channels = 0;
    int64_t core_rows = 0, core_columns = 0;
    // Of an image with margins where columns are more than are read, else 0: a core's, and those of all cores.
    int64_t image_columns = 0, padded_columns = 0;
    // Weights stream; then a core has one tile, and the members above say its place, not how it is computed.
    std::optional<mapping::Mapping> stream = std::nullopt;
  };
  // Extents of what a tile of the output needs of each level's result, and of
  // each contraction's image.
  struct Footprint {
    std::vector<Shape> results, images;
  };
  using Needs = mapping::Needs;
  enum class Use : uint8_t { kWhole, kRow, kSpread };
  // The name of the choice, 1, of mappings whose weights stream.
  static constexpr char kStream[] = "stream";
  class Builder;

  ContractionGroup(const Tensor& output, const LaneInstructions& instructions, const Target& target,
                   const TileExtras& extras)
      : output_(output),
        instructions_(&instructions),
        target_(&target),
        extras_(extras),
        card_(*target.machine) {
    // Of clusters that share sums each part has as many, and as much of GMEM's rate.
    card_.clusters /= extras.sum_parts;
    card_.gmem /= static_cast<double>(extras.sum_parts);
  }

  absl::Status AddLevel(const Tensor& result);
  absl::StatusOr<Contraction> ReadContraction(const Operation& operation) const;
  const isa::Machine& machine() const { return *target_->machine; }
  // The dimensions of the output are rows, columns if `channel` is 2, and channels; before them, if there is a `lead`,
  // the parts of the sums.
  size_t lead() const { return extras_.sum_parts > 1 ? 1 : 0; }
  size_t channel() const { return output_.rank() - 1 - lead(); }
  int64_t channels() const { return output_.shape().back(); }
  int64_t rows() const { return output_.shape()[lead()]; }
  int64_t columns() const { return channel() == 2 ? output_.shape()[lead() + 1] : 1; }

  // Returns true if the values differ along the channels at most.
  static bool IsRow(const Step& step);
  std::vector<Use> Uses(const Level& level, size_t step, const isa::Instruction*& form) const;
  std::vector<int> Places(const Level& level) const;
  const Footprint& FootprintOf(int64_t rows, int64_t columns, int64_t depth) const;
  const Footprint& FootprintOf(const Tiling& t) const {
    return FootprintOf(t.rows, t.columns, t.depth);
  }
  // `depth`: of a part of the sums (Tiling::depth).
  static Shape ReadExtents(const Operation& reader, const Shape& extents, Expr load,
                           int64_t depth = 0);
  // Of one row of weights, or of `depth` elements of it: how many these are, and bytes in their bank.
  static int64_t FilterElements(const Contraction& c, int64_t depth) {
    return depth > 0 ? depth : c.filter_elements;
  }
  static int64_t FilterPitch(const Contraction& c, int64_t depth);
  // A part of a sum: one place of the axes before `axis`, `places` of it, all of those behind it; and how many parts
  // there are.
  struct Cut {
    size_t axis = 0;
    int64_t places = 1, parts = 1;
  };
  static Cut CutOf(const std::vector<ReduceAxis>& axes, int64_t depth);
  // How weights that come part by part lie in GMEM: each part of a sum as one piece.
  Cut LayoutOf(const Contraction& c, int64_t depth) const;
  // The depth of the sums' parts where weights stream part by part; 0 if they do not.
  static int64_t StreamDepth(const Tiling& t, const Contraction& c) {
    const bool is_cut = t.stream && t.stream->parts > 1;
    return is_cut ? c.filter_elements / t.stream->parts : 0;
  }
  // Rows of the image by which a tile is further on than the one before.
  int64_t RowStep(const Tiling& t) const;
  bool CanStay(const Tiling& t) const;
  Needs NeedsOf(const Tiling& t) const;
  // A part of a tensor in GMEM that a tile loads or stores: for the pixel (y, x) of the output `rows` x `columns` from
  // (y * row_step, x * column_step) on, `bytes` of each.
  struct Moved {
    int64_t rows, columns, row_step, column_step, bytes;
    bool by_memory_core = false;  // once for all cores of a cluster
  };
  // Cycles for which GMEM serves all tiles of a block of channels.
  double GmemCycles(const Tiling& t, const std::vector<Moved>& moved) const;
  // Cycles by the cost model, exact if they are at most `limit`; else a lower bound.
  mapping::CostParts Cost(const Tiling& t, double limit) const;
  class TileCost;
  struct WeightTimes;
  WeightTimes TimesOfWeights(const Tiling& t) const;
  // No tiling with the same clusters, cores, block and ways of the weights takes less.
  double AtLeast(const Tiling& t) const;
  double VectorCyclesOf(size_t level, const Shape& extents) const;
  // The ways to cut filters at their outer axes: a part has whole rows, or places, of the window. Of weights whose
  // layout is free.
  std::vector<mapping::Layer::Part> PartsOf(const Contraction& c,
                                            const mapping::Layer& layer) const;
  // The group as a search sees it whose weights may stream; none if it has several levels or extras.
  std::optional<mapping::Layer> StreamLayer() const;
  Tiling StreamTiling(const mapping::Layer& layer, const mapping::Mapping& m) const;
  // Bytes of NMEM for the steps of a level on so many pixels and lanes, with several copies of what they load and of
  // their result.
  int64_t StepBytes(size_t level, int64_t pixels, int64_t lanes, int64_t loaded_copies,
                    int64_t result_copies) const;
  std::vector<CardSchedule> Streams(const CardChoice& wanted, bool only_first, double limit) const;
  std::vector<CardSchedule> Tilings(const CardChoice& wanted, bool only_first, double limit) const;
  // The tiling with the choices `wanted` that needs least of what it lacks: how many times what there is, and WhyNone's
  // text; 0 and "" if there is none.
  std::pair<double, std::string> NearestTiling(const CardChoice& wanted) const;
  // The mapping of the choices of a schedule whose weights stream.
  absl::StatusOr<mapping::Mapping> MappingOf(const CardChoice& choice) const;
  // Fills in what follows from the numbers of clusters and cores.
  Tiling Placed(Tiling t) const;
  // Tiling::depth for all tilings: the largest with which the smallest tile fits; 0 if whole sums do, or if nothing
  // fits.
  int64_t Depth() const;
  int64_t LeastCut() const;
  static CardChoice ChoiceOf(const Tiling& t);
  // Errors: a name that lacks or that there is not; numbers that do not divide the cores; what does not fit.
  absl::StatusOr<Tiling> TilingOf(const CardChoice& choice) const;
  // The reason why the tiling is none or does not fit; "" if it does.
  std::string WhyNot(const Tiling& t) const;
  class TilingSearch;
  // Lanes of a block of channels.
  static int64_t Lanes(int64_t block);

  Tensor output_;
  const LaneInstructions* instructions_;
  const Target* target_;
  TileExtras extras_;
  mapping::CardFacts card_;
  std::vector<Level> levels_;
  // Many tilings have these footprints in common.
  mutable std::map<std::tuple<int64_t, int64_t, int64_t>, Footprint> footprints_;
  mutable std::map<std::pair<size_t, Shape>, double> vector_cycles_;
  mutable int64_t step_of_a_row_ = -1;
  mutable std::optional<int64_t> depth_;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_CONTRACTION_GROUP_H_
