// What a tile of a contraction group needs and costs: footprints composed through the access maps, bytes of the
// memories, cycles.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/tile_cost.h"
#include "isa/granularity.h"

namespace polynao::te {

// Extents of what `load` reads while the axes of `reader` run over a part of so
// many elements.
Shape ContractionGroup::ReadExtents(const Operation& reader, const Shape& extents, Expr load,
                                    int64_t depth) {
  arith::VarRanges ranges;
  for (size_t d = 0; d < extents.size(); ++d) {
    ranges[reader.axes[d]] = {0, std::max<int64_t>(1, extents[d]) - 1};
  }
  const std::vector<ReduceAxis>& axes = reader.bodies[0].axes;
  const Cut cut = CutOf(axes, depth);
  for (size_t d = 0; d < axes.size(); ++d) {
    const int64_t all = std::max<int64_t>(1, axes[d].extent);
    const int64_t extent = depth == 0 || d > cut.axis ? all : d == cut.axis ? cut.places : 1;
    ranges[axes[d]] = {axes[d].min, axes[d].min + extent - 1};
  }
  Shape result;
  for (Expr index : load.operands()) {
    const auto interval = arith::IntervalOf(index, ranges, {});
    result.push_back(interval ? interval->size : INT64_MAX);
  }
  return result;
}

const ContractionGroup::Footprint& ContractionGroup::FootprintOf(int64_t rows, int64_t columns,
                                                                 int64_t depth) const {
  const auto [it, is_new] = footprints_.try_emplace({rows, columns, depth});
  Footprint& f = it->second;
  if (!is_new) return f;
  Shape extents = {rows};
  if (channel() == 2) extents.push_back(columns);
  extents.push_back(channels());
  for (const Level& level : levels_) {
    f.results.push_back(extents);
    if (level.contracted < 0) break;
    const Contraction& c = level.contraction;
    const Operation& image = c.pad != nullptr ? *c.pad : *c.source;
    Shape of_image = ReadExtents(*c.sums, extents, c.image, depth);
    for (size_t d = 0; d < of_image.size(); ++d)
      of_image[d] = std::min(of_image[d], image.shape[d]);
    f.images.push_back(of_image);
    extents = of_image;
    if (c.pad != nullptr)
      extents = ReadExtents(*c.pad, of_image, c.pad->bodies[0].value.operand(1));
    for (size_t d = 0; d < extents.size(); ++d)
      extents[d] = std::min(extents[d], c.source->shape[d]);
  }
  return f;
}

ContractionGroup::Cut ContractionGroup::CutOf(const std::vector<ReduceAxis>& axes, int64_t depth) {
  Cut cut;
  if (depth == 0) return cut;
  int64_t inner = 1;
  for (size_t d = axes.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(1, axes[d].extent);
    if (cut.parts > 1) {
      cut.parts *= extent;
    } else if (inner * extent > depth) {
      cut = {.axis = d, .places = depth / inner, .parts = CeilDiv(extent, depth / inner)};
    }
    inner *= extent;
  }
  return cut;
}

int64_t ContractionGroup::FilterPitch(const Contraction& c, int64_t depth) {
  return RoundUp(FilterElements(c, depth) * ir::ByteSize(c.type), isa::kTensorUnitAlignment);
}

int64_t ContractionGroup::RowStep(const Tiling& t) const {
  // Two rows of the output, not cut at the image's ends, read one stride more
  // than one row.
  if (step_of_a_row_ < 0) {
    const Contraction& c = levels_[0].contraction;
    Shape one(output_.rank(), 1), two = one;
    two[0] = 2;
    step_of_a_row_ = ReadExtents(*c.sums, two, c.image)[0] - ReadExtents(*c.sums, one, c.image)[0];
  }
  return t.rows * step_of_a_row_;
}

bool ContractionGroup::CanStay(const Tiling& t) const {
  const Contraction& c = levels_[0].contraction;
  if (c.pad == nullptr || levels_.size() > 1 || t.depth > 0) return false;
  const Shape& image = FootprintOf(t).images[0];
  const int64_t row_bytes =
      ElementCount(image) / std::max<int64_t>(1, image[0]) * ir::ByteSize(c.type);
  const int64_t step = RowStep(t);
  return t.columns == t.core_columns && t.rows < t.core_rows && image[0] < c.pad->shape[0] &&
         step <= image[0] && step * row_bytes % isa::kTensorUnitAlignment == 0 &&
         image[0] * row_bytes % isa::kTensorUnitAlignment == 0;
}

int64_t ContractionGroup::StepBytes(size_t k, int64_t pixels, int64_t lanes, int64_t loaded_copies,
                                    int64_t result_copies) const {
  const Level& level = levels_[k];
  const std::vector<Step>& steps = level.steps.list;
  const std::vector<int> places = Places(level);
  std::vector<size_t> room(steps.size());
  std::map<size_t, int64_t> copies;  // of each place
  for (size_t i = 0; i < steps.size(); ++i) {
    room[i] = places[i] >= 0 ? room[places[i]] : i;
    const bool is_loaded = steps[i].tensor != nullptr && static_cast<int>(i) != level.contracted;
    int64_t& count = copies[room[i]];
    count = std::max<int64_t>(count, is_loaded && !IsRow(steps[i]) ? loaded_copies : 1);
    if (i == level.steps.result) count = std::max(count, result_copies);
  }
  int64_t bytes = 0;
  for (const auto& [step, count] : copies) {
    bytes += count * OnChipBytes((IsRow(steps[step]) ? 1 : pixels) * lanes, steps[step].type);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].tensor != nullptr) continue;
    const isa::Instruction* form;
    for (const Use use : Uses(level, i, form)) {
      if (use == Use::kSpread) bytes += OnChipBytes(pixels * lanes, steps[i].type);
    }
  }
  return bytes;
}

std::optional<mapping::Layer> ContractionGroup::StreamLayer() const {
  const Level& level = levels_[0];
  if (levels_.size() > 1 || level.contracted < 0 || extras_.any()) return std::nullopt;
  if (ElementCount(output_.shape()) == 0) return std::nullopt;
  const Contraction& c = level.contraction;
  const bool has_columns = channel() == 2;
  const auto window = [&](size_t d) {
    Shape one(output_.rank(), 1), two = one;
    two[d] = 2;
    const int64_t size = ReadExtents(*c.sums, one, c.image)[d];
    const Operation& image = c.pad != nullptr ? *c.pad : *c.source;
    return mapping::Window{.step = ReadExtents(*c.sums, two, c.image)[d] - size,
                           .size = size,
                           .whole = image.shape[d]};
  };
  mapping::Layer layer;
  layer.rows = rows(), layer.columns = columns(), layer.channels = channels();
  layer.image_rows = window(0);
  if (has_columns) layer.image_columns = window(1);
  layer.input_channels = c.source->shape.back();
  layer.element_bytes = ir::ByteSize(c.type);
  layer.is_padded = c.pad != nullptr;
  layer.filter_bytes = c.filter_elements * layer.element_bytes;
  layer.filter_pitch = FilterPitch(c, 0);
  layer.macs_per_cycle = c.macs_per_cycle;
  for (size_t i = 0; i < level.steps.list.size(); ++i) {
    const Step& step = level.steps.list[i];
    if (step.tensor == nullptr || static_cast<int>(i) == level.contracted) continue;
    if (IsRow(step)) {
      ++layer.channel_vectors;
    } else if (std::all_of(step.varies.begin(), step.varies.end(), [](bool v) { return v; })) {
      layer.loaded.push_back(ir::ByteSize(step.type));
    } else {
      return std::nullopt;
    }
  }
  layer.result_bytes = ir::ByteSize(output_.type());
  // Many mappings ask for the same.
  const auto known = std::make_shared<std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t>>();
  layer.temporaries = [this, known](int64_t pixels, int64_t lanes, int64_t copies) {
    const auto [it, is_new] = known->try_emplace({pixels, lanes, copies});
    if (is_new) it->second = StepBytes(0, pixels, lanes, copies, copies);
    return it->second;
  };
  layer.vector_cycles = [this, has_columns](int64_t pixels, int64_t lanes) {
    return VectorCyclesOf(0, has_columns ? Shape{pixels, 1, lanes} : Shape{pixels, lanes});
  };
  return layer;
}

ContractionGroup::Needs ContractionGroup::NeedsOf(const Tiling& t) const {
  Needs needs;
  const Footprint& f = FootprintOf(t);
  for (size_t k = 0; k < levels_.size(); ++k) {
    const Level& level = levels_[k];
    const int64_t block = k == 0 ? t.block : f.results[k].back();
    const int64_t lanes = Lanes(block);
    const int64_t pixels = ElementCount(f.results[k]) / std::max<int64_t>(1, f.results[k].back());
    if (k == 0) {
      const int tiles = extras_.sums + extras_.values;
      needs.nmem += tiles * OnChipBytes(pixels * lanes, Type::kF32) +
                    extras_.sums * OnChipBytes(lanes, Type::kF32);
    }
    needs.nmem += StepBytes(k, pixels, lanes, 2, k == 0 ? t.copies : 1);
    if (level.contracted < 0) continue;
    const Contraction& c = level.contraction;
    needs.wmem += lanes * FilterPitch(c, t.depth);
    needs.smem += (t.pipelined ? 2 : t.weights_by_smem) * t.across * block * c.filter_elements *
                  ir::ByteSize(c.type);
    // The image: padded, or loaded as it is. A level of its own has made one
    // that is neither.
    const bool is_leaf = k + 1 == levels_.size();
    const bool is_dense = f.images[k].back() % isa::kVectorGroup == 0;
    if (c.pad == nullptr && !is_leaf && is_dense) continue;
    Shape image = f.images[k];
    if (is_leaf && t.ahead > 0) {
      // Where the order of tiles starts over, rows that they share are loaded
      // again.
      const int64_t again = t.rotation > 0 ? std::max<int64_t>(0, image[0] - RowStep(t)) : 0;
      image[0] += RowStep(t) * (CeilDiv(t.core_rows, t.rows) - 1) + again;
    }
    const int64_t bytes = OnChipBytes(ElementCount(image), c.type);
    needs.nmem += (is_leaf && t.ahead == 0 ? 2 : 1) * bytes;
    if (t.image_by_smem) needs.smem += 2 * bytes;
  }
  return needs;
}

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
  const double rate = card_.gmem / static_cast<double>(card_.channel_map.channels());
  const int64_t apart = CeilDiv(columns(), t.core_columns);
  const int64_t tiles_across = CeilDiv(t.core_columns, t.columns);
  const int64_t tiles = CeilDiv(t.core_rows, t.rows) * tiles_across;
  double cycles = 0;
  std::vector<int64_t> bytes(static_cast<size_t>(card_.channel_map.channels()));
  const int64_t interleave = card_.channel_map.interleave();
  for (int64_t step = 0; step < tiles; ++step) {
    std::fill(bytes.begin(), bytes.end(), 0);
    for (int64_t cluster = 0; cluster < card_.clusters; ++cluster) {
      const int64_t tile = (step + cluster * t.rotation) % tiles;
      for (int64_t core = 0; core < card_.cores; ++core) {
        const int64_t place = core / t.across;
        const int64_t first = cluster / t.channel_clusters * t.cluster_rows +
                              place / apart * t.core_rows + tile / tiles_across * t.rows;
        const int64_t x = place % apart * t.core_columns + tile % tiles_across * t.columns;
        if (first >= rows() || x >= columns()) continue;
        for (const Moved& part : moved) {
          if (part.by_memory_core && core > 0) continue;
          const int64_t clipped = std::min(part.rows, (rows() - first) * part.row_step);
          for (int64_t row = 0; row < clipped; ++row) {
            int64_t at = ((first * part.row_step + row) * part.width + x * part.column_step) *
                         part.pixel_bytes;
            int64_t left = std::min(part.columns, (columns() - x) * part.column_step) * part.bytes;
            // A row of a block of channels lies where its pixels are; their
            // gaps do not matter here.
            while (left > 0) {
              const int64_t run = std::min(left, interleave - at % interleave);
              bytes[static_cast<size_t>(card_.channel_map.ChannelOf(at))] += run;
              at += run;
              left -= run;
            }
          }
        }
      }
    }
    const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    cycles += std::max(static_cast<double>(*std::max_element(bytes.begin(), bytes.end())) / rate,
                       static_cast<double>(all) / card_.links);
  }
  return cycles;
}

// How often a core waits in each tile: for loads, for computation, for stores. With this and kCoresInStep the model's
// choice takes 0.6 % more cycles than the best of 60 random tilings (37 convolutions on mlu270).
constexpr double kWaitsPerTile = 3;

// The time in which the weights of a block come; of sums in parts, those of a part to WMEM.
struct ContractionGroup::WeightTimes {
  double bytes = 0, load = 0;  // to SMEM, or to each core's WMEM; with their latency
  std::string_view by;         // what makes that so long
  double to_core = 0;          // from SMEM
};

ContractionGroup::WeightTimes ContractionGroup::TimesOfWeights(const Tiling& t) const {
  const mapping::CardFacts& r = card_;
  double filters = 0;  // bytes of a core
  for (size_t k = 0; k < levels_.size(); ++k) {
    if (levels_[k].contracted < 0) continue;
    const Contraction& c = levels_[k].contraction;
    const int64_t block = k == 0 ? t.block : levels_[k].steps.domain.back();
    filters +=
        static_cast<double>(block * ir::ByteSize(c.type) *
                            (t.weights_by_smem ? c.filter_elements : FilterElements(c, t.depth)));
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
  times.bytes /= mapping::kTogether;
  times.load = times.bytes + r.latency;
  if (!t.weights_by_smem) return times;
  times.to_core = filters * std::max(1 / r.move_port, cores / r.smem);
  if (t.depth > 0) {
    const Contraction& c = levels_[0].contraction;
    times.to_core *= static_cast<double>(t.depth) / static_cast<double>(c.filter_elements);
  }
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

// A step of the pipeline takes as long as the slowest of the compute queue, the
// core's IO-DMA and GMEM, which waits out latencies, since the cores
// mostly start their copies at the same time. Weights and one tile are loaded
// before the first step; one tile is computed and stored after the last.
mapping::CostParts ContractionGroup::Cost(const Tiling& t, double limit) const {
  using mapping::kWaits;
  const mapping::CardFacts& r = card_;
  const Footprint& f = FootprintOf(t);
  const double all_cores = static_cast<double>(r.clusters * r.cores);
  const double cores = static_cast<double>(r.cores);
  const double share = std::min(r.gmem, r.links) / all_cores;
  const double blocks = static_cast<double>(CeilDiv(t.cluster_channels, t.across * t.block));
  const bool whole_columns = t.columns >= columns();
  // Of a tile: cycles of a queue, those in which it waits and those in which bytes move.
  struct Queue {
    double waits = 0, bytes = 0;
  };
  Queue load, store, by_memory_core, fetch, part_load;
  double tensor = 0, vector = 0, waits = 0, first_bytes = 0, last_bytes = 0;
  std::vector<Moved> moved;
  const auto rounds = [&](bool is_one, int64_t segments, double at_once) {
    return is_one ? 1.0 : std::ceil(static_cast<double>(segments) / at_once);
  };
  // A load or store of a part of a tensor: its bytes on the port, and its
  // segments' latencies.
  const auto move = [&](Queue& queue, double bytes, double segments, double port) {
    queue.waits += r.io_start + segments * r.latency;
    queue.bytes += bytes / port;
    waits += r.io_start + segments * r.latency;
  };
  for (size_t k = 0; k < levels_.size(); ++k) {
    const Level& level = levels_[k];
    Shape extents = f.results[k];
    if (k == 0) extents.back() = std::min(t.block, extents.back());
    const Shape& whole = level.steps.domain;
    const int64_t lanes = Lanes(extents.back());
    const int64_t pixels = ElementCount(extents) / std::max<int64_t>(1, extents.back());
    vector += VectorCyclesOf(k, extents);
    // Channels of a block are segments of their own.
    const bool is_part = k == 0 && t.block < channels();
    const int64_t parts = is_part ? pixels : extents[0];
    const bool is_one = whole_columns && !is_part;
    const auto add_moved = [&](Type type) {
      const int64_t columns = channel() == 2 ? extents[1] : 1;
      moved.push_back({.rows = extents[0],
                       .columns = columns,
                       .row_step = k == 0 ? 1 : std::max<int64_t>(1, RowStep(t) / t.rows),
                       .column_step = std::max<int64_t>(1, columns / t.columns),
                       .width = channel() == 2 ? whole[1] : 1,
                       .pixel_bytes = whole.back() * ir::ByteSize(type),
                       .bytes = extents.back() * ir::ByteSize(type)});
    };
    for (size_t i = 0; i < level.steps.list.size(); ++i) {
      const Step& step = level.steps.list[i];
      if (step.tensor == nullptr || static_cast<int>(i) == level.contracted || IsRow(step))
        continue;
      const double bytes = static_cast<double>(ElementCount(extents) * ir::ByteSize(step.type));
      move(load, bytes, rounds(is_one, parts, r.strided_reads), r.io_port);
      add_moved(step.type);
      first_bytes += bytes;
    }
    if (k == 0) {
      last_bytes = static_cast<double>(ElementCount(extents) * ir::ByteSize(output_.type()));
      move(store, last_bytes, rounds(is_one, parts, r.store_segments), r.io_port);
      add_moved(output_.type());
    }
    if (level.contracted < 0) continue;
    const Contraction& c = level.contraction;
    const int64_t element = ir::ByteSize(c.type);
    tensor += r.tensor_start +
              static_cast<double>(pixels * lanes * FilterPitch(c, 0) / element) / c.macs_per_cycle;
    const bool is_leaf = k + 1 == levels_.size();
    const Shape& image = f.images[k];
    const int64_t image_bytes = ElementCount(image) * element;
    if (c.pad != nullptr && !(is_leaf && t.ahead > 0)) {
      vector += r.vector_start + static_cast<double>(image_bytes) / r.vector_bytes;
      if (!is_leaf) {
        vector += instructions_->CopyCycles(c.type, image[0], ElementCount(image) / image[0]);
      }
    }
    if (!is_leaf) continue;
    // Rows and columns that tiles share come from the cache, if there is one.
    const int64_t step = std::min(RowStep(t), image[0]);
    const int64_t rows = r.has_cache || t.ahead > 0 ? step : image[0];
    const int64_t row_bytes = image_bytes / std::max<int64_t>(1, image[0]);
    const double bytes = static_cast<double>((t.ahead > 0 ? step : image[0]) * row_bytes);
    const double segments = rounds(whole_columns && t.depth == 0, image[0], r.strided_reads);
    if (t.depth > 0) {
      // Each part of the sums loads its own, and waits for it.
      part_load = {r.io_start + segments * r.latency, bytes * std::max(1 / r.io_port, 1 / share)};
      continue;
    }
    if (t.image_by_smem) {
      move(by_memory_core, bytes, segments, r.memory_core_port);
      fetch = {r.move_start + r.smem_latency, bytes * std::max(1 / r.move_port, cores / r.smem)};
    } else {
      move(load, bytes, segments, r.io_port);
    }
    const int64_t columns = channel() == 2 ? image[1] : 1;
    const Shape& source = c.source->shape;
    moved.push_back({.rows = rows,
                     .columns = columns,
                     .row_step = std::max<int64_t>(1, step / t.rows),
                     .column_step = std::max<int64_t>(1, columns / t.columns),
                     .width = channel() == 2 ? source[1] : 1,
                     .pixel_bytes = source.back() * element,
                     .bytes = source.back() * element,
                     .by_memory_core = t.image_by_smem});
    first_bytes += static_cast<double>(image_bytes) / (t.image_by_smem ? cores : 1);
  }
  const WeightTimes weights = TimesOfWeights(t);
  const double sync = kWaitsPerTile * (r.drain + r.io_start) + (t.image_by_smem ? r.barrier : 0);
  const double rows_in_tiles = static_cast<double>(t.core_rows) / static_cast<double>(t.rows);
  const double across = static_cast<double>(CeilDiv(t.core_columns, t.columns));
  const double tiles = static_cast<double>(CeilDiv(t.core_rows, t.rows)) * across;
  const double together = std::min(1.0, kCoresInStep / all_cores);
  const Contraction& last = levels_.back().contraction;
  const double parts =
      t.depth == 0 ? 0 : static_cast<double>(CutOf(last.sums->bodies[0].axes, t.depth).parts);
  const std::string_view share_is = r.gmem <= r.links ? mapping::kGmem : mapping::kLink;
  mapping::CostParts cost;
  const auto add = [&cost](std::string_view what, std::string_view by, const Queue& queue,
                           double times = 1) {
    cost.Add(what, kWaits, times * queue.waits);
    cost.Add(what, by, times * queue.bytes);
  };
  const auto add_compute = [&](double times) {
    cost.Add("sums", mapping::kTensorUnit, times * tensor);
    cost.Add("elementwise", mapping::kVectorUnit, times * vector);
  };
  const auto add_weights = [&] {
    cost.Add("weights", weights.by, weights.bytes);
    cost.Add("weights", kWaits, r.latency);
  };
  // A block of channels, whose weights are there.
  const auto add_body = [&](double times, double gmem) {
    cost.Phase("first tile", times);
    cost.Lane(), cost.Add("weights to WMEM", mapping::kMoveDma, weights.to_core);
    cost.Lane(), add("loads", mapping::kIoDma, load), add("image", mapping::kMoveDma, fetch);
    cost.Lane(), add("loads", share_is, {r.latency, first_bytes / share});
    cost.Phase("waits between tiles", times);
    cost.Lane(), cost.Add("queues and barriers", kWaits, tiles * sync);
    cost.Phase("parts of sums", times), cost.Lane();
    // Parts of weights come from SMEM, which has whole ones, or each time from GMEM.
    if (t.weights_by_smem) {
      cost.Add("weights to WMEM", mapping::kMoveDma, tiles * parts * weights.to_core);
    } else {
      add("weights", weights.by, {r.latency, weights.bytes}, tiles * parts);
    }
    add("image", share > r.io_port ? mapping::kIoDma : share_is, part_load, tiles * parts);
    cost.Add("queues and barriers", kWaits, tiles * parts * sync);
    cost.Phase("last tile", times), cost.Lane(), add_compute(1);
    cost.Phase("last store", times);
    cost.Lane(), add("results", mapping::kIoDma, store);
    cost.Lane(), add("results", share_is, {r.latency, last_bytes / share});
    cost.Phase("column sums", times), cost.Lane();
    cost.Add("rows", mapping::kVectorUnit,
             extras_.RowCycles(machine(), ElementCount(f.results[0]) / channels(), t.block));
    cost.Phase("tiles", times);
    if (t.image_by_smem) {
      // The memory core loads images; a core computes and stores one tile after the other.
      cost.Lane(), add_compute(tiles);
      add("loads", mapping::kIoDma, load, tiles), add("results", mapping::kIoDma, store, tiles);
    } else {
      cost.Lane(), add_compute(rows_in_tiles * across);
      cost.Lane(), add("loads", mapping::kIoDma, load, tiles);
      add("results", mapping::kIoDma, store, tiles);
    }
    cost.Lane(), add("image", mapping::kMemoryCore, by_memory_core, tiles);
    cost.Lane(), add("image", mapping::kMoveDma, fetch, tiles);
    cost.Lane(), cost.Add("loads and stores", mapping::kGmem, gmem);
    cost.Add("segments", kWaits, tiles * together * waits);
  };
  const auto add_all = [&](double gmem) {
    cost = {};
    if (t.pipelined) {
      add_body(1, gmem);
      const mapping::CostParts body = std::exchange(cost, {});
      cost.Phase("first weights", 1), cost.Lane(), add_weights();
      cost.Phase("blocks but the last", blocks - 1), cost.Lane(), add_weights();
      cost.LaneOfLongest(body);
      cost.Append(body);
      return;
    }
    cost.Phase("weights", blocks), cost.Lane();
    if (t.depth == 0 || t.weights_by_smem) add_weights();
    add_body(blocks, gmem);
  };
  add_all(0);
  if (cost.cycles() <= limit) add_all(GmemCycles(t, moved));
  return cost;
}

}  // namespace polynao::te
