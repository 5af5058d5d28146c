// What a tile of a contraction group needs: footprints composed through the access maps, bytes of the memories.
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
  // Of one part, if the reader's first dimension are parts of sums.
  const size_t lead = reader.axes.size() - extents.size();
  for (size_t d = 0; d < reader.axes.size(); ++d) {
    ranges[reader.axes[d]] = {0, d < lead ? 0 : std::max<int64_t>(1, extents[d - lead]) - 1};
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

ContractionGroup::Cut ContractionGroup::LayoutOf(const Contraction& c, int64_t depth) const {
  const std::vector<ReduceAxis>& axes = c.sums->bodies[0].axes;
  if (lead() == 0) return CutOf(axes, depth);
  Cut cut = {.axis = axes.size() - 1, .places = std::min(depth, axes.back().extent)};
  cut.parts = c.filter_elements * extras_.sum_parts / cut.places;
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

std::vector<mapping::Layer::Part> ContractionGroup::PartsOf(const Contraction& c,
                                                            const mapping::Layer& layer) const {
  std::vector<mapping::Layer::Part> parts;
  const bool can_add =
      target_->instructions->Find(StrCat(c.family, "_acc.", ir::TypeName(c.type))) != nullptr;
  if (!c.weights->is_constant || !can_add) return parts;
  const std::vector<ReduceAxis>& axes = c.sums->bodies[0].axes;
  const int64_t element = ir::ByteSize(c.type);
  // Places of the image from one place of a window's rows or columns, axes 0 and 1, to the next.
  const auto distance = [&](size_t d) -> int64_t {
    const mapping::Window& window = d == 0 ? layer.image_rows : layer.image_columns;
    const bool has_window = d + 1 < axes.size() && axes[d].extent >= 2;
    return has_window ? (window.size - 1) / (axes[d].extent - 1) : 0;
  };
  int64_t outer = 1;  // parts of the axes before axis d
  for (size_t d = 0; d < axes.size(); ++d) {
    const bool is_last = d + 1 == axes.size();  // input channels
    for (int64_t count = is_last ? 1 : 2; count <= axes[d].extent; ++count) {
      if (axes[d].extent % count != 0 || outer * count == 1) continue;
      const int64_t depth = c.filter_elements / (outer * count);
      if (depth * element < isa::kTensorUnitAlignment) continue;  // most of the banks would be gaps
      // Parts of several places of the window are no one piece where a place's channels belong to several parts.
      if (lead() > 0 && depth > axes.back().extent) continue;
      parts.push_back({.count = outer * count,
                       .bytes = depth * element,
                       .pitch = FilterPitch(c, depth),
                       .channels = is_last ? depth : 0,
                       .row_step = distance(0) * (d == 0 ? axes[0].extent / count : 1),
                       .column_step = d == 1 ? distance(1) * (axes[1].extent / count) : 0});
    }
    outer *= axes[d].extent;
  }
  return parts;
}

std::optional<mapping::Layer> ContractionGroup::StreamLayer() const {
  const Level& level = levels_[0];
  if (levels_.size() > 1 || level.contracted < 0 || extras_.any()) return std::nullopt;
  if (ElementCount(output_.shape()) == 0) return std::nullopt;
  const Contraction& c = level.contraction;
  const bool has_columns = channel() == 2;
  const auto window = [&](size_t d) {
    Shape one(output_.rank() - lead(), 1), two = one;
    two[d] = 2;
    const int64_t size = ReadExtents(*c.sums, one, c.image)[d];
    const Operation& image = c.pad != nullptr ? *c.pad : *c.source;
    return mapping::Window{.step = ReadExtents(*c.sums, two, c.image)[d] - size,
                           .size = size,
                           .whole = image.shape[d],
                           .inside = c.source->shape[d]};
  };
  mapping::Layer layer;
  layer.rows = rows(), layer.columns = columns(), layer.channels = channels();
  layer.image_rows = window(0);
  if (has_columns) layer.image_columns = window(1);
  layer.pixel_channels = c.source->shape.back();
  layer.input_channels = layer.pixel_channels / extras_.sum_parts;
  layer.element_bytes = ir::ByteSize(c.type);
  layer.is_padded = c.pad != nullptr;
  layer.filter_bytes = c.filter_elements * layer.element_bytes;
  layer.filter_pitch = FilterPitch(c, 0);
  layer.macs_per_cycle = c.macs_per_cycle;
  layer.parts = PartsOf(c, layer);
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
  layer.in_blocks = extras_.in_blocks;
  if (const std::optional<SubPixelPlaces>& places = extras_.sub_pixels) {
    layer.sub_pixels = places->of_pixel;
    layer.rows_apart = places->columns != layer.columns * places->of_pixel.columns;
  }
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

}  // namespace polynao::te
