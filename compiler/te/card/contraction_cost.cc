// Cycles of a tile of a contraction group: sums and elementwise work, what comes and leaves, and how these overlap.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/math.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/tile_cost.h"
#include "isa/granularity.h"

namespace polynao::te {

double ContractionGroup::VectorCyclesOf(size_t k, const Shape& extents) const {
  const auto [it, is_new] = vector_cycles_.try_emplace({k, extents});
  if (!is_new) return it->second;
  const Level& level = levels_[k];
  const int64_t lanes = Lanes(extents.back());
  const int64_t pixels = ElementCount(extents) / std::max<int64_t>(1, extents.back());
  double cycles = 0;
  for (size_t i = 0; i < level.steps.list.size(); ++i) {
    const Step& step = level.steps.list[i];
    if (step.tensor != nullptr || IsRow(step)) continue;
    const isa::Instruction* form;
    for (const Use use : Uses(level, i, form)) {
      if (use == Use::kSpread) cycles += instructions_->CopyCycles(step.type, pixels, lanes);
    }
    cycles += instructions_->Cycles(*form, pixels, lanes);
  }
  if (k == 0) {
    cycles += (extras_.sums + extras_.values) *
              VectorCycles(machine(), pixels * lanes * ir::ByteSize(Type::kF32));
  }
  it->second = cycles;
  return cycles;
}

double ContractionGroup::GmemCycles(const Tiling& t, const std::vector<Moved>& moved) const {
  const int64_t apart = CeilDiv(columns(), t.core_columns);
  const int64_t tiles_across = CeilDiv(t.core_columns, t.columns);
  const int64_t tiles = CeilDiv(t.core_rows, t.rows) * tiles_across;
  int64_t bytes = 0;
  for (int64_t cluster = 0; cluster < card_.clusters; ++cluster) {
    for (int64_t core = 0; core < card_.cores; ++core) {
      const int64_t place = core / t.across;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t first = cluster / t.channel_clusters * t.cluster_rows +
                              place / apart * t.core_rows + tile / tiles_across * t.rows;
        const int64_t x = place % apart * t.core_columns + tile % tiles_across * t.columns;
        if (first >= rows() || x >= columns()) continue;
        for (const Moved& part : moved) {
          if (part.by_memory_core && core > 0) continue;
          bytes += std::min(part.rows, (rows() - first) * part.row_step) *
                   std::min(part.columns, (columns() - x) * part.column_step) * part.bytes;
        }
      }
    }
  }
  // Cores drift apart, so that channels are busy alike in the end.
  return static_cast<double>(bytes) / std::min(card_.gmem, card_.links);
}

// How often a core waits in each tile: for loads, for computation, for stores. With this and kCoresInStep the model's
// choice takes 0.6 % more cycles than the best of 60 random tilings (37 convolutions on mlu270).
constexpr double kWaitsPerTile = 3;

// The time in which the weights of a block come; of sums in parts, those of a part to WMEM.
struct ContractionGroup::WeightTimes {
  double bytes = 0, load = 0;  // to SMEM, or to each core's WMEM; with their latency
  std::string_view by;         // what makes that so long
  double to_core = 0;          // from SMEM, and what that waits for
  double to_core_waits = 0;
};

ContractionGroup::WeightTimes ContractionGroup::TimesOfWeights(const Tiling& t) const {
  const mapping::CardFacts& r = card_;
  double filters = 0, pitches = 0;  // bytes of a core, in GMEM and in WMEM
  double copies = 0;                // from SMEM: whole groups of lanes, and a rest
  for (size_t k = 0; k < levels_.size(); ++k) {
    if (levels_[k].contracted < 0) continue;
    const Contraction& c = levels_[k].contraction;
    const int64_t block = k == 0 ? t.block : levels_[k].steps.domain.back();
    filters +=
        static_cast<double>(block * ir::ByteSize(c.type) *
                            (t.weights_by_smem ? c.filter_elements : FilterElements(c, t.depth)));
    pitches += static_cast<double>(block * FilterPitch(c, t.depth));
    copies += static_cast<double>(mapping::CopiesToBanks(block));
  }
  // Clusters that share rows load other weights, all others the same, which the cache has then.
  const auto cores = static_cast<double>(r.cores);
  const auto clusters = static_cast<double>(r.clusters);
  const auto across = static_cast<double>(t.across);
  const double reads = filters * (t.weights_by_smem ? across : cores);  // of a cluster
  WeightTimes times;
  // Streams of cores meet as those of clusters do.
  const auto consider = [&times](double cycles, std::string_view by) {
    if (cycles > times.bytes) times.bytes = cycles, times.by = by;
  };
  consider(across * filters * static_cast<double>(t.channel_clusters) / r.gmem, mapping::kGmem);
  consider(reads * clusters / (r.has_cache ? r.cached : r.gmem), mapping::kGmem);
  consider(reads * clusters / r.links, mapping::kLink);
  if (t.weights_by_smem) {
    consider(across * filters / r.memory_core_port, mapping::kMemoryCore);
  } else {
    consider(filters / r.io_port, mapping::kIoDma);
  }
  times.load = times.bytes + r.latency;
  if (!t.weights_by_smem) return times;
  times.to_core = pitches * std::max(1 / r.move_port, cores / r.smem);
  times.to_core_waits = copies * (r.move_start + r.smem_latency);
  return times;
}

double ContractionGroup::AtLeast(const Tiling& t) const {
  const Contraction& c = levels_[0].contraction;
  const auto blocks = static_cast<double>(CeilDiv(t.cluster_channels, t.across * t.block));
  const double tensor = blocks *
                        static_cast<double>(t.core_rows * t.core_columns * Lanes(t.block) *
                                            FilterPitch(c, 0) / ir::ByteSize(c.type)) /
                        c.macs_per_cycle;
  const double results = static_cast<double>(extras_.is_stored * ElementCount(output_.shape()) *
                                             ir::ByteSize(output_.type())) /
                         std::min(card_.gmem, card_.links);
  const double weights = blocks * TimesOfWeights(t).load;
  const double tiles = std::max(tensor, results);
  return t.pipelined ? std::max(weights, tiles) : weights + tiles;
}

// A step of the pipeline takes as long as the slowest of the compute queue, the core's IO-DMA and GMEM, which waits out
// latencies, since the cores mostly start their copies at the same time. Weights and one tile are loaded before the
// first step; one tile is computed and stored after the last.
class ContractionGroup::TileCost {
 public:
  TileCost(const ContractionGroup& group, const Tiling& t)
      : group_(group),
        card_(group.card_),
        t_(t),
        footprint_(group.FootprintOf(t)),
        cores_(static_cast<double>(card_.cores)),
        all_cores_(static_cast<double>(card_.clusters * card_.cores)),
        share_(std::min(card_.gmem, card_.links) / all_cores_),
        share_is_(card_.gmem <= card_.links ? mapping::kGmem : mapping::kLink),
        whole_columns_(t.columns >= group.columns()),
        weights_(group.TimesOfWeights(t)) {
    for (size_t k = 0; k < group_.levels_.size(); ++k) {
      CountElementwise(k);
      if (k == 0) CountResults();
      if (group_.levels_[k].contracted >= 0) CountContraction(k);
    }
    CountTiles();
  }

  // The cycles without what GMEM's channels add; `gmem`: what the busiest ones take for the tiles of a block.
  mapping::CostParts Parts(double gmem) {
    cost_ = {};
    cost_.Phase("before", 1), cost_.Lane();
    cost_.Add("program", mapping::kScalarUnit, mapping::kScalarCode);
    const auto blocks = static_cast<double>(CeilDiv(t_.cluster_channels, t_.across * t_.block));
    if (t_.pipelined) {
      AddBlock(1, gmem);
      const mapping::CostParts block = std::exchange(cost_, {});
      cost_.Phase("first weights", 1), cost_.Lane(), AddWeights();
      cost_.Phase("blocks but the last", blocks - 1), cost_.Lane(), AddWeights();
      // GMEM serves the tiles of the block, too.
      if (weights_.by == mapping::kGmem) cost_.Add("loads and stores", mapping::kGmem, gmem);
      cost_.LaneOfLongest(block);
      cost_.Append(block);
    } else {
      cost_.Phase("weights", blocks), cost_.Lane();
      if (t_.depth == 0 || t_.weights_by_smem) AddWeights();
      AddBlock(blocks, gmem);
    }
    return cost_;
  }
  const std::vector<Moved>& moved() const { return moved_; }

 private:
  // Of a tile: cycles of a queue, those in which it waits and those in which bytes move.
  struct Queue {
    double waits = 0, bytes = 0;
  };

  // Of what level `k` computes for a tile.
  Shape ExtentsOf(size_t k) const {
    Shape extents = footprint_.results[k];
    if (k == 0) extents.back() = std::min(t_.block, extents.back());
    return extents;
  }
  static int64_t PixelsOf(const Shape& extents) {
    return ElementCount(extents) / std::max<int64_t>(1, extents.back());
  }
  static double Rounds(bool is_one, int64_t segments, double at_once) {
    return is_one ? 1.0 : std::ceil(static_cast<double>(segments) / at_once);
  }

  // A load or store of a part of a tensor: its bytes on the port, and its segments' latencies.
  void Move(Queue& queue, double bytes, double segments, double port) {
    queue.waits += card_.io_start + segments * card_.latency;
    queue.bytes += bytes / port;
    waits_ += card_.io_start + segments * card_.latency;
  }

  // A tensor of the shape of level `k`'s result, of which a tile loads or stores its part: `at_once` segments together.
  // `in_blocks`: a block's channels lie side by side.
  void MoveTile(Queue& queue, size_t k, Type type, double at_once, bool in_blocks = false) {
    const Shape extents = ExtentsOf(k);
    // Channels of a block are segments of their own.
    const bool is_part = k == 0 && t_.block < group_.channels() && !in_blocks;
    const int64_t blocks = in_blocks ? Lanes(extents.back()) / isa::kTensorLanes : 1;
    const int64_t segments =
        is_part ? PixelsOf(extents) : (whole_columns_ ? 1 : extents[0]) * blocks;
    const auto bytes = static_cast<double>(ElementCount(extents) * ir::ByteSize(type));
    const bool is_one = whole_columns_ && !is_part && blocks == 1;
    Move(queue, bytes, Rounds(is_one, segments, at_once), card_.io_port);
    const bool has_columns = group_.channel() == 2;
    const int64_t columns = has_columns ? extents[1] : 1;
    moved_.push_back({.rows = extents[0],
                      .columns = columns,
                      .row_step = k == 0 ? 1 : std::max<int64_t>(1, group_.RowStep(t_) / t_.rows),
                      .column_step = std::max<int64_t>(1, columns / t_.columns),
                      .bytes = extents.back() * ir::ByteSize(type)});
  }

  void CountElementwise(size_t k) {
    const Level& level = group_.levels_[k];
    const Shape extents = ExtentsOf(k);
    vector_ += group_.VectorCyclesOf(k, extents);
    for (size_t i = 0; i < level.steps.list.size(); ++i) {
      const Step& step = level.steps.list[i];
      const bool is_loaded = step.tensor != nullptr && static_cast<int>(i) != level.contracted;
      if (!is_loaded || IsRow(step)) continue;
      MoveTile(load_, k, step.type, card_.strided_reads);
      first_bytes_ += static_cast<double>(ElementCount(extents) * ir::ByteSize(step.type));
    }
  }

  void CountResults() {
    const Type type = group_.output_.type();
    MoveTile(store_, 0, type, card_.store_segments, group_.extras_.in_blocks);
    last_bytes_ = static_cast<double>(ElementCount(ExtentsOf(0)) * ir::ByteSize(type));
  }

  void CountContraction(size_t k) {
    const Contraction& c = group_.levels_[k].contraction;
    const Shape extents = ExtentsOf(k);
    const int64_t element = ir::ByteSize(c.type);
    const int64_t sums = PixelsOf(extents) * Lanes(extents.back());
    tensor_ += card_.tensor_start +
               static_cast<double>(sums * FilterPitch(c, 0) / element) / c.macs_per_cycle;
    const bool is_leaf = k + 1 == group_.levels_.size();
    const Shape& image = footprint_.images[k];
    if (c.pad != nullptr && !(is_leaf && t_.ahead > 0)) {
      const int64_t elements = ElementCount(image);
      vector_ += card_.vector_start + static_cast<double>(elements * element) / card_.vector_bytes;
      if (!is_leaf) {
        vector_ += group_.instructions_->CopyCycles(c.type, image[0], elements / image[0]);
      }
    }
    if (is_leaf) CountImage(c, image);
  }

  // The image that tiles load: each its own, each the rows that are new, or each part of the sums its part.
  void CountImage(const Contraction& c, const Shape& image) {
    const int64_t element = ir::ByteSize(c.type);
    const int64_t image_bytes = ElementCount(image) * element;
    // Rows and columns that tiles share come from the cache, if there is one.
    const int64_t step = std::min(group_.RowStep(t_), image[0]);
    const int64_t rows = t_.ahead > 0 ? step : image[0];
    const auto bytes = static_cast<double>(rows * (image_bytes / std::max<int64_t>(1, image[0])));
    const double segments = Rounds(whole_columns_ && t_.depth == 0, image[0], card_.strided_reads);
    if (t_.depth > 0) {
      // Each part of the sums loads its own, and waits for it.
      part_load_ = {card_.io_start + segments * card_.latency,
                    bytes * std::max(1 / card_.io_port, 1 / share_)};
      return;
    }
    if (t_.image_by_smem) {
      Move(by_memory_core_, bytes, segments, card_.memory_core_port);
      fetch_ = {card_.move_start + card_.smem_latency,
                bytes * std::max(1 / card_.move_port, cores_ / card_.smem)};
    } else {
      Move(load_, bytes, segments, card_.io_port);
    }
    const bool has_columns = group_.channel() == 2;
    const int64_t columns = has_columns ? image[1] : 1;
    const Shape& source = c.source->shape;
    moved_.push_back({.rows = card_.has_cache ? step : rows,
                      .columns = columns,
                      .row_step = std::max<int64_t>(1, step / t_.rows),
                      .column_step = std::max<int64_t>(1, columns / t_.columns),
                      .bytes = source.back() * element,
                      .by_memory_core = t_.image_by_smem});
    first_bytes_ += static_cast<double>(image_bytes) / (t_.image_by_smem ? cores_ : 1);
  }

  void CountTiles() {
    across_ = static_cast<double>(CeilDiv(t_.core_columns, t_.columns));
    tiles_ = static_cast<double>(CeilDiv(t_.core_rows, t_.rows)) * across_;
    sync_ = kWaitsPerTile * (card_.drain + card_.io_start) + (t_.image_by_smem ? card_.barrier : 0);
  }

  void AddQueue(std::string_view what, std::string_view by, const Queue& queue, double times = 1) {
    cost_.Add(what, mapping::kWaits, times * queue.waits);
    cost_.Add(what, by, times * queue.bytes);
  }
  // The first tile's loads or the last one's stores, `bytes` in all. DRAM has no row open; and few
  // segments in flight keep neither their trips nor GMEM busy all the time.
  void AddAlone(std::string_view what, const Queue& queue, double bytes) {
    const Queue shared = {card_.latency + card_.dram_latency, bytes / share_};
    const Queue own = {queue.waits + card_.dram_latency, queue.bytes};
    const bool has_segments = queue.waits > 2 * (card_.io_start + card_.latency);
    if (!has_segments) {
      cost_.Lane(), AddQueue(what, mapping::kIoDma, own);
      cost_.Lane(), AddQueue(what, share_is_, shared);
      return;
    }
    const double both = std::hypot(own.waits + own.bytes, shared.waits + shared.bytes);
    cost_.Lane(), AddQueue(what, share_is_, {both - shared.bytes, shared.bytes});
  }
  void AddCompute(double times) {
    cost_.Add("sums", mapping::kTensorUnit, times * tensor_);
    cost_.Add("elementwise", mapping::kVectorUnit, times * vector_);
  }
  void AddWeights() {
    cost_.Add("weights", weights_.by, weights_.bytes);
    cost_.Add("weights", mapping::kWaits, card_.latency + card_.dram_latency);
  }

  // Each of `times` blocks of channels, whose weights are there.
  void AddBlock(double times, double gmem) {
    cost_.Phase("first tile", times);
    cost_.Lane(), cost_.Add("weights to WMEM", mapping::kMoveDma, weights_.to_core);
    if (t_.weights_by_smem) {
      cost_.Add("weights to WMEM", mapping::kWaits,
                weights_.to_core_waits + card_.drain + card_.barrier);
    }
    AddAlone("loads", load_, first_bytes_);
    AddQueue("image", mapping::kMoveDma, fetch_);
    cost_.Phase("waits between tiles", times);
    cost_.Lane(), cost_.Add("queues and barriers", mapping::kWaits, tiles_ * sync_);
    AddPartsOfSums(times);
    cost_.Phase("last tile", times), cost_.Lane(), AddCompute(1);
    cost_.Phase("last store", times);
    AddAlone("results", store_, last_bytes_);
    cost_.Phase("column sums", times), cost_.Lane();
    const int64_t pixels = ElementCount(footprint_.results[0]) / group_.channels();
    cost_.Add("rows", mapping::kVectorUnit,
              group_.extras_.RowCycles(group_.machine(), pixels, t_.block));
    AddTiles(times, gmem);
  }

  void AddPartsOfSums(double times) {
    const Operation* sums = group_.levels_.back().contraction.sums;
    const int64_t cuts = t_.depth == 0 ? 0 : CutOf(sums->bodies[0].axes, t_.depth).parts;
    const double parts = tiles_ * static_cast<double>(cuts);
    cost_.Phase("parts of sums", times), cost_.Lane();
    // Parts of weights come from SMEM, which has whole ones, or each time from GMEM, of each filter a segment.
    if (t_.weights_by_smem) {
      AddQueue("weights to WMEM", mapping::kMoveDma, {weights_.to_core_waits, weights_.to_core},
               parts);
    } else {
      const double segments = cuts > 1 ? static_cast<double>(t_.block - 1) : 0;
      const double waits = card_.latency * (1 + segments / card_.strided_reads);
      AddQueue("weights", weights_.by, {waits, weights_.bytes}, parts);
    }
    AddQueue("image", share_ > card_.io_port ? mapping::kIoDma : share_is_, part_load_, parts);
    cost_.Add("queues and barriers", mapping::kWaits, parts * sync_);
  }

  void AddTiles(double times, double gmem) {
    cost_.Phase("tiles", times);
    if (t_.image_by_smem) {
      // The memory core loads images; a core computes and stores one tile after the other.
      cost_.Lane(), AddCompute(tiles_);
      AddQueue("loads", mapping::kIoDma, load_, tiles_);
      AddQueue("results", mapping::kIoDma, store_, tiles_);
    } else {
      // Of the first tile the load, and of the last one the rest, stand by themselves.
      const double rows_in_tiles = static_cast<double>(t_.core_rows) / static_cast<double>(t_.rows);
      cost_.Lane(), AddCompute(std::max(0.0, rows_in_tiles * across_ - 1));
      cost_.Lane(), AddQueue("loads", mapping::kIoDma, load_, tiles_ - 1);
      AddQueue("results", mapping::kIoDma, store_, tiles_ - 1);
    }
    cost_.Lane(), AddQueue("image", mapping::kMemoryCore, by_memory_core_, tiles_ - 1);
    cost_.Lane(), AddQueue("image", mapping::kMoveDma, fetch_, tiles_ - 1);
    // GMEM has served the first tile's loads before, and serves the last one's store behind.
    const double apart = (first_bytes_ + last_bytes_) / share_;
    cost_.Lane(), cost_.Add("loads and stores", mapping::kGmem, std::max(0.0, gmem - apart));
    const double together = std::min(1.0, std::max(kPartInStep, kCoresInStep / all_cores_));
    cost_.Add("segments", mapping::kWaits, (tiles_ - 1) * together * waits_);
  }

  const ContractionGroup& group_;
  const mapping::CardFacts& card_;
  const Tiling& t_;
  const Footprint& footprint_;
  const double cores_, all_cores_;
  const double share_;  // bytes of GMEM a cycle for each core
  const std::string_view share_is_;
  const bool whole_columns_;
  const WeightTimes weights_;
  // Of a tile.
  Queue load_, store_, by_memory_core_, fetch_, part_load_;
  double tensor_ = 0, vector_ = 0, waits_ = 0, first_bytes_ = 0, last_bytes_ = 0;
  std::vector<Moved> moved_;
  // Of a core and a block of channels.
  double tiles_ = 0, across_ = 0, sync_ = 0;
  mapping::CostParts cost_;
};

mapping::CostParts ContractionGroup::Cost(const Tiling& t, double limit) const {
  TileCost cost(*this, t);
  mapping::CostParts parts = cost.Parts(0);
  return parts.cycles() <= limit ? cost.Parts(GmemCycles(t, cost.moved())) : parts;
}

}  // namespace polynao::te
