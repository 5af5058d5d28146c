// The tensors of a contraction group, one for each instruction, and their
// schedule under a tiling.
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/parts_layout.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/sub_pixel_schedule.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

// `e` with the loads of `buffer` replaced, and variables.
Expr Rewrite(Expr e, ir::Buffer buffer, const std::function<Expr(const Axes&)>& element,
             const ir::VarMap& variables) {
  if (e.Is(ExprKind::kVar)) {
    const auto it = variables.find(e);
    return it == variables.end() ? e : it->second;
  }
  Axes operands;
  for (Expr operand : e.operands()) {
    operands.push_back(Rewrite(operand, buffer, element, variables));
  }
  if (e.Is(ExprKind::kLoad) && ir::Buffer(e.buffer()) == buffer) return element(operands);
  return e.context().Rebuild(e, operands);
}

}  // namespace

class ContractionGroup::Builder {
 public:
  Builder(const ContractionGroup& group, const Tiling& tiling)
      : group_(group),
        t_(tiling),
        stores_blocks_(t_.stream && (t_.stream->image_in_parts || group.extras_.in_blocks) &&
                       !t_.stream->results_by_smem),
        graph_(group.output_.graph()),
        levels_(group.levels_.size()) {}

  absl::StatusOr<ir::Function> Build() {
    for (size_t k = levels_.size(); k-- > 0;) MakeLevel(k);
    const size_t result = group_.levels_[0].steps.result;
    const auto element = [&](const Axes& at) { return Element(0, result, at); };
    if (group_.extras_.sub_pixels) {
      const SubPixelTensors made =
          MakeSubPixels(graph_, group_.output_.name(), group_.output_.shape(),
                        *group_.extras_.sub_pixels, element);
      whole_ = made.whole, y_ = made.result;
      levels_[0].readers[result].push_back(whole_);
    } else if (t_.stream && !stores_blocks_) {
      whole_ =
          graph_.Compute(StrCat(group_.output_.name(), ".whole"), group_.output_.shape(), element);
      levels_[0].readers[result].push_back(whole_);
      y_ = graph_.Compute(group_.output_.name(), group_.output_.shape(), whole_);
    } else {
      y_ = in_blocks() ? Blocks(element)
                       : graph_.Compute(group_.output_.name(), group_.output_.shape(), element);
      levels_[0].readers[result].push_back(y_);
      if (t_.stream) whole_ = y_;
    }
    Schedule s(y_);
    ASSIGN_OR_RETURN(ir::Function function, Program(s));
    const Contraction& c = group_.levels_[0].contraction;
    if (const int64_t depth = StreamDepth(t_, c); depth > 0) {
      ir::AddPartsLayout(function, {.parameter = c.weights->name,
                                    .rows = c.weights->shape[0],
                                    .parts = group_.LayoutOf(c, depth).parts});
    }
    return function;
  }

 private:
  struct LevelTensors {
    std::vector<Tensor> values;  // of the steps, over the dimensions along which they differ
    std::vector<const isa::Instruction*> forms;
    std::vector<std::vector<Tensor>> readers;
    std::vector<std::pair<Tensor, bool>> spreads;  // and whether they are rows
    Tensor image, weights;                         // that the contraction reads
    Tensor pad,
        dense;  // the same if it is padded, or a copy of results without gaps
  };

  bool has_turns() const { return t_.stream && t_.stream->turns > 1; }
  // The output is [channels / 64][rows][columns][64].
  bool in_blocks() const { return group_.extras_.in_blocks; }
  Tensor Blocks(const std::function<Expr(const Axes&)>& element) {
    Shape shape = group_.output_.shape();
    shape.insert(shape.begin(), shape.back() / isa::kTensorLanes);
    shape.back() = isa::kTensorLanes;
    return graph_.Compute(group_.output_.name(), shape, [&](const Axes& at) {
      Axes of_pixels(at.begin() + 1, at.end());
      of_pixels.back() = at[0] * isa::kTensorLanes + at.back();
      return element(of_pixels);
    });
  }
  // Of the output's axes those of rows and columns, and the channels or, in blocks, the blocks.
  Axis RowsOf(Stage& y) const { return y.axis(in_blocks() ? 1 : group_.lead()); }
  Axis ColumnsOf(Stage& y) const { return y.axis(in_blocks() ? 2 : group_.lead() + 1); }
  Axis ChannelsOf(Stage& y) const {
    return y.axis(in_blocks() ? 0 : group_.lead() + group_.channel());
  }
  // So many channels as a number of them or of blocks.
  int64_t Count(int64_t channels) const {
    return in_blocks() ? CeilDiv(channels, isa::kTensorLanes) : channels;
  }
  // The loops of a copy to the output: blocks of channels are its outer ones.
  void AddChannels(Stage& y, Axis c, std::vector<Axis>& inside) const {
    inside.insert(in_blocks() ? inside.begin() : inside.end(), c);
    if (in_blocks()) inside.push_back(y.axis(group_.channel() + 1));
  }
  Expr Zero() const { return graph_.context().Int(graph_.index_type(), 0); }

  // Coordinates along the dimensions of `varies`; at least one.
  template <typename T>
  static std::vector<T> Own(const std::vector<bool>& varies, const std::vector<T>& all, T one) {
    std::vector<T> own;
    for (size_t d = 0; d < varies.size(); ++d) {
      if (varies[d]) own.push_back(all[d]);
    }
    if (own.empty()) own.push_back(one);
    return own;
  }
  Axes All(const std::vector<bool>& varies, const Axes& own) const {
    Axes all;
    size_t next = 0;
    for (bool has : varies) all.push_back(has ? own[next++] : Zero());
    return all;
  }

  // `one`: the index of a tensor of one element.
  Expr Element(size_t k, size_t i, const Axes& at, Expr one) const {
    const Step& step = group_.levels_[k].steps.list[i];
    if (static_cast<int>(i) == group_.levels_[k].contracted) return levels_[k].values[i](at);
    return levels_[k].values[i](Own(step.varies, at, one));
  }
  Expr Element(size_t k, size_t i, const Axes& at) const { return Element(k, i, at, Zero()); }

  void MakeLevel(size_t k) {
    const Level& level = group_.levels_[k];
    LevelTensors& tensors = levels_[k];
    const Shape& domain = level.steps.domain;
    tensors.forms.resize(level.steps.list.size());
    tensors.readers.resize(level.steps.list.size());
    for (size_t i = 0; i < level.steps.list.size(); ++i) {
      const Step& step = level.steps.list[i];
      if (static_cast<int>(i) == level.contracted) {
        tensors.values.push_back(MakeSums(k));
        continue;
      }
      if (step.tensor != nullptr) {
        const Operation* input =
            step.tensor->kind == Operation::Kind::kView ? step.tensor->base : step.tensor;
        tensors.values.push_back(
            graph_.Reshape(Tensor(graph_.state(), input), Own<int64_t>(step.varies, domain, 1)));
        continue;
      }
      const std::vector<Use> uses = group_.Uses(level, i, tensors.forms[i]);
      const Shape shape = Own<int64_t>(step.varies, domain, 1);
      std::vector<Tensor> repeated(uses.size());
      for (size_t o = 0; o < uses.size(); ++o) {
        const size_t operand = step.operands[o];
        if (uses[o] != Use::kSpread) continue;
        repeated[o] = graph_.Compute(
            StrCat(step.name, ".", k, ".", i, ".full"), shape,
            [&](const Axes& own) { return Element(k, operand, All(step.varies, own)); });
        tensors.spreads.emplace_back(repeated[o], IsRow(step));
        tensors.readers[operand].push_back(repeated[o]);
      }
      tensors.values.push_back(
          graph_.Compute(StrCat(step.name, ".", k, ".", i), shape, [&](const Axes& own) {
            const Axes at = All(step.varies, own);
            const bool is_one =
                std::find(step.varies.begin(), step.varies.end(), true) == step.varies.end();
            const Expr one = is_one ? own[0] : Zero();
            absl::flat_hash_map<Expr, Expr> elements;
            for (size_t o = 0; o < uses.size(); ++o) {
              elements[step.elements[o]] =
                  repeated[o] ? repeated[o](own) : Element(k, step.operands[o], at, one);
            }
            return ir::Replace(step.value, elements);
          }));
      for (size_t o = 0; o < uses.size(); ++o) {
        if (!repeated[o]) tensors.readers[step.operands[o]].push_back(tensors.values.back());
      }
    }
  }

  static constexpr size_t kColumns = 1;  // of an image
  // Wider than the image with its margins where its rows would not begin where parts of filters may be multiplied.
  Shape PaddedShape(const Operation& pad) const {
    Shape shape = pad.shape;
    if (has_wider_rows()) shape[kColumns] = t_.padded_columns;
    return shape;
  }
  bool has_wider_rows() const { return t_.image_columns > 0; }

  // The contraction of level k, over what level k + 1 has computed.
  Tensor MakeSums(size_t k) {
    const Contraction& c = group_.levels_[k].contraction;
    LevelTensors& tensors = levels_[k];
    const bool is_leaf = k + 1 == levels_.size();
    const auto source = [&](const Axes& at) {
      if (is_leaf) return Tensor(graph_.state(), c.source)(at);
      return Element(k + 1, group_.levels_[k + 1].steps.result, at);
    };
    const auto read_by = [&](const Tensor& reader) {
      if (!is_leaf) levels_[k + 1].readers[group_.levels_[k + 1].steps.result].push_back(reader);
    };
    if (c.pad != nullptr) {
      const Operation& pad = *c.pad;
      const ir::Buffer padded(pad.bodies[0].value.operand(1).buffer());
      const Shape shape = PaddedShape(pad);
      tensors.pad = graph_.Compute(pad.name, shape, [&](const Axes& at) {
        ir::VarMap variables;
        for (size_t d = 0; d < at.size(); ++d) variables[pad.axes[d]] = at[d];
        const Expr value = Rewrite(pad.bodies[0].value, padded, source, variables);
        if (shape == pad.shape) return value;
        const Expr inside =
            at[kColumns] < graph_.context().Int(graph_.index_type(), pad.shape[kColumns]);
        return graph_.context().Select(ir::And(value.operand(0), inside), value.operand(1),
                                       value.operand(2));
      });
      read_by(tensors.pad);
    } else if (is_leaf) {
      tensors.image = Tensor(graph_.state(), c.source);
    } else if (c.source->shape.back() % isa::kVectorGroup != 0) {
      // Results have whole groups of channels, an image has no gaps.
      tensors.dense = graph_.Compute(c.source->name + ".dense", c.source->shape, source);
      read_by(tensors.dense);
    }
    const auto image = [&](const Axes& at) {
      return tensors.pad ? tensors.pad(at) : tensors.dense ? tensors.dense(at) : source(at);
    };
    const Body& body = c.sums->bodies[0];
    tensors.weights = WeightsOf(c);
    const Tensor sums = graph_.Compute(
        c.sums->name, c.sums->shape,
        [&](const Axes& at) {
          ir::VarMap variables;
          for (size_t d = 0; d < at.size(); ++d) variables[c.sums->axes[d]] = at[d];
          Expr value = Rewrite(body.value, ir::Buffer(c.image.buffer()), image, variables);
          if (tensors.weights.operation() != c.weights) {
            value =
                Rewrite(value, c.weights->outputs[0],
                        [&](const Axes& at) { return PartElement(c, tensors.weights, at); }, {});
          }
          return Body(*body.reducer, value, body.axes);
        },
        c.sums->axis_names);
    if (c.pad == nullptr && !tensors.dense) read_by(sums);
    return sums;
  }

  // The weights, or a view of them as they are laid out part by part: the axes of the window that say the part, then
  // channels, then what a part has.
  Tensor WeightsOf(const Contraction& c) {
    const Tensor weights(graph_.state(), c.weights);
    const int64_t depth = StreamDepth(t_, c);
    if (depth == 0) return weights;
    const Cut cut = group_.LayoutOf(c, depth);
    Shape shape;
    for (size_t d = 0; d < cut.axis; ++d) shape.push_back(weights.shape()[d + 1]);
    shape.push_back(weights.shape()[cut.axis + 1] / cut.places);
    shape.push_back(weights.shape()[0]);
    shape.push_back(cut.places);
    shape.insert(shape.end(), weights.shape().begin() + static_cast<ptrdiff_t>(cut.axis) + 2,
                 weights.shape().end());
    return graph_.Reshape(weights, shape);
  }
  // The element of the view `parts` that is `at` of the weights.
  Expr PartElement(const Contraction& c, const Tensor& parts, const Axes& at) const {
    const Cut cut = group_.LayoutOf(c, StreamDepth(t_, c));
    Axes own(at.begin() + 1, at.begin() + 1 + static_cast<ptrdiff_t>(cut.axis));
    own.push_back(at[cut.axis + 1] / cut.places);
    own.push_back(at[0]);
    own.push_back(at[cut.axis + 1] % cut.places);
    own.insert(own.end(), at.begin() + static_cast<ptrdiff_t>(cut.axis) + 2, at.end());
    return parts(own);
  }

  struct Loops {
    Axis block, tid, tile;
    Axis sums = {};     // in which they are computed, for all steps that read them
    Axis cluster = {};  // or its turns, if weights stream
  };
  Loops TileOutput(Schedule& s) const {
    if (group_.extras_.sub_pixels) {
      const mapping::Shares shares =
          mapping::SharesOf(*group_.StreamLayer(), group_.card_, *t_.stream);
      const SubPixelLoops loops =
          ScheduleSubPixels(s[y_], s[whole_], *group_.extras_.sub_pixels, *t_.stream, shares);
      return {.block = loops.blocks,
              .tid = loops.tid,
              .tile = loops.tile,
              .sums = loops.blocks,
              .cluster = loops.turn};
    }
    if (t_.stream) return StreamOutput(s);
    Stage& y = s[y_];
    const bool has_columns = group_.channel() == 2;
    Axis cid, cid_channel, row = RowsOf(y), channel = ChannelsOf(y);
    if (t_.channel_clusters == 1) {
      std::tie(cid, row) = y.Split(row, t_.cluster_rows);
    } else if (t_.channel_clusters == group_.machine().clusters()) {
      std::tie(cid, channel) = y.Split(channel, Count(t_.cluster_channels));
    } else {
      std::tie(cid, row) = y.Split(row, t_.cluster_rows);
      std::tie(cid_channel, channel) = y.Split(channel, Count(t_.cluster_channels));
    }
    auto [core_row, core_y] = y.Split(row, t_.core_rows);
    auto [tile_row, yy] = y.Split(core_y, t_.rows);
    auto [block, c] = y.Split(channel, Count(t_.across * t_.block));
    std::vector<Axis> cores = {core_row}, tiles = {tile_row}, inside = {yy};
    if (has_columns) {
      auto [core_column, core_x] = y.Split(ColumnsOf(y), t_.core_columns);
      auto [tile_column, xx] = y.Split(core_x, t_.columns);
      cores.push_back(core_column), tiles.push_back(tile_column), inside.push_back(xx);
    }
    if (t_.across > 1) {
      Axis core_channel;
      std::tie(core_channel, c) = y.Split(c, Count(t_.block));
      cores.push_back(core_channel);
    }
    AddChannels(y, c, inside);
    std::vector<Axis> order = {cid};
    if (cid_channel) order.push_back(cid_channel);
    order.push_back(block);
    for (const std::vector<Axis>& axes : {cores, tiles, inside}) {
      order.insert(order.end(), axes.begin(), axes.end());
    }
    y.Reorder(order);
    Loops loops = {.block = block, .tid = cores[0], .tile = tiles[0]};
    if (cores.size() > 1) loops.tid = y.Fuse(cores);
    if (tiles.size() > 1) loops.tile = y.Fuse(tiles);
    if (cid_channel) cid = y.Fuse(cid, cid_channel);
    if (t_.rotation > 0) loops.tile = y.Rotate(loops.tile, cid, t_.rotation);
    loops.sums = loops.tile;
    y.Bind(cid, isa::kClusterAxis).Bind(loops.tid, isa::kCoreAxis).Pragma(inside[0], "memcpy");
    return loops;
  }

  // A core's block of rows and columns, its results made block by block of channels: whole in NMEM, or in SMEM, where
  // those of the cluster's cores meet, or stored block by block.
  Loops StreamOutput(Schedule& s) const {
    Stage& y = s[y_];
    Stage& whole = s[whole_];
    auto [cid, row] = y.Split(RowsOf(y), t_.cluster_rows);
    Axis c = ChannelsOf(y);
    // Rows are outermost: the number of the cluster divided by a constant, of which passes know bounds.
    std::vector<Axis> clusters = {cid};
    if (group_.lead() > 0) clusters.push_back(y.axis(0));
    if (t_.stream->channel_clusters > 1) {
      Axis cid_channel;
      std::tie(cid_channel, c) = y.Split(c, Count(t_.cluster_channels));
      clusters.push_back(cid_channel);
    }
    if (clusters.size() > 1) {
      std::vector<Axis> order = clusters;
      order.push_back(row);
      if (group_.channel() == 2) order.push_back(ColumnsOf(y));
      order.push_back(c);
      if (in_blocks()) order.push_back(y.axis(group_.channel() + 1));
      y.Reorder(order);
      cid = y.Fuse(clusters);
    }
    y.Bind(cid, isa::kClusterAxis);
    Axis turn = cid;
    if (has_turns()) std::tie(turn, row) = y.Split(row, CeilDiv(t_.cluster_rows, t_.stream->turns));
    Stage& shared = t_.stream->results_by_smem ? whole : y;  // by the cores
    if (t_.stream->results_by_smem) {
      if (has_turns()) {
        // By cores: one transfer of the memory core waits for the other.
        const mapping::Shares shares =
            mapping::SharesOf(*group_.StreamLayer(), group_.card_, *t_.stream);
        if (shares.stores_pixels) row = y.Fuse(row, ColumnsOf(y));
        Axis core;
        std::tie(core, row) = y.SplitParts(row, shares.storing_cores);
        y.Bind(core, isa::kCoreAxis);
      }
      y.Pragma(row, "memcpy");
      whole.ComputeAt(y, turn).SetScope(isa::kSmem);
      if (has_turns()) whole.DoubleBuffer();
      row = whole.axis(group_.lead()), c = whole.axis(group_.lead() + group_.channel());
    }
    auto [core_row, yy] = shared.Split(row, t_.core_rows);
    Axis piece;
    if (t_.stream->pieces > 1) {
      std::tie(piece, yy) = shared.Split(yy, CeilDiv(t_.core_rows, t_.stream->pieces));
    }
    std::vector<Axis> cores = {core_row}, inside = {yy};
    if (group_.channel() == 2) {
      auto [core_column, xx] = shared.Split(
          stores_blocks_ ? ColumnsOf(shared) : shared.axis(group_.lead() + 1), t_.core_columns);
      cores.push_back(core_column), inside.push_back(xx);
    }
    Axis blocks;
    if (has_turns()) {
      // A core's weights stand side by side.
      const int64_t all = t_.stream->across * t_.block;
      Axis core_channel;
      std::tie(core_channel, c) = shared.Split(c, CeilDiv(t_.cluster_channels, all) * t_.block);
      cores.push_back(core_channel);
      std::tie(blocks, c) = shared.Split(c, t_.block);
    } else if (t_.stream->results_by_smem) {
      std::tie(blocks, c) = shared.Split(c, t_.stream->across * t_.block);
      Axis core_channel;
      std::tie(core_channel, c) = shared.Split(c, t_.block);
      cores.push_back(core_channel);
    } else if (stores_blocks_) {
      std::tie(blocks, c) = shared.Split(c, Count(t_.stream->across * t_.block));
      if (t_.stream->across > 1) {
        Axis core_channel;
        std::tie(core_channel, c) = shared.Split(c, Count(t_.block));
        cores.push_back(core_channel);
      }
    }
    AddChannels(shared, c, inside);
    std::vector<Axis> order;
    if (!t_.stream->results_by_smem) order.push_back(cid);
    order.insert(order.end(), cores.begin(), cores.end());
    if (blocks) order.push_back(blocks);
    if (piece) order.push_back(piece);
    order.insert(order.end(), inside.begin(), inside.end());
    shared.Reorder(order);
    Loops loops;
    loops.tid = cores.size() == 1 ? cores[0] : shared.Fuse(cores);
    shared.Bind(loops.tid, isa::kCoreAxis).Pragma(inside[0], "memcpy");
    if (!blocks) {
      whole.ComputeAt(y, loops.tid).SetScope(isa::kNmem);
      const size_t lead = group_.lead();
      std::tie(blocks, c) = whole.Split(whole.axis(lead + group_.channel()), t_.block);
      order = {blocks};
      for (size_t d = 0; d < group_.channel(); ++d) order.push_back(whole.axis(lead + d));
      order.push_back(c);
      whole.Reorder(order);
      whole.Pragma(whole.axis(lead), "memcpy");
    }
    loops.block = loops.sums = blocks;
    loops.tile = piece ? piece : blocks;
    loops.cluster = turn;
    return loops;
  }

  // The memory core loads weights to SMEM, each core copies its part to WMEM.
  // Then tile by tile: load, pad, convolve, one instruction for each step, and
  // so on level by level; store.
  absl::StatusOr<ir::Function> Program(Schedule& s) {
    std::vector<std::pair<Tensor, Tensor>> weights;  // in smem, or none, and in wmem
    for (size_t k = 0; k < levels_.size(); ++k) {
      if (group_.levels_[k].contracted < 0) continue;
      const Tensor from = levels_[k].weights;
      const Tensor sums = levels_[k].values[group_.levels_[k].contracted];
      const bool by_smem = t_.weights_by_smem;
      const Tensor shared = by_smem ? s.CacheRead(from, isa::kSmem, {sums}) : Tensor();
      weights.emplace_back(shared, s.CacheRead(by_smem ? shared : from, isa::kWmem, {sums}));
    }
    for (size_t k = 0; k < levels_.size(); ++k) {
      const Level& level = group_.levels_[k];
      for (size_t i = 0; i < level.steps.list.size(); ++i) {
        if (level.steps.list[i].tensor == nullptr || static_cast<int>(i) == level.contracted)
          continue;
        if (t_.stream && !IsRow(level.steps.list[i])) {
          // A core's or cluster's part comes at once; of it what a block needs is taken without gaps.
          levels_[k].values[i] = s.CacheRead(levels_[k].values[i],
                                             t_.stream->results_by_smem ? isa::kSmem : isa::kNmem,
                                             levels_[k].readers[i]);
          cores_parts_.push_back(levels_[k].values[i]);
        }
        levels_[k].values[i] = s.CacheRead(levels_[k].values[i], isa::kNmem, levels_[k].readers[i]);
      }
      if (t_.stream ? t_.stream->image_by_smem : t_.image_by_smem) {
        const Tensor reader = levels_[k].pad ? levels_[k].pad : levels_[k].values[level.contracted];
        shared_image_ =
            s.CacheRead(Tensor(graph_.state(), level.contraction.source), isa::kSmem, {reader});
        if (levels_[k].image) levels_[k].image = shared_image_;
      }
      if (levels_[k].image) {
        levels_[k].image =
            s.CacheRead(levels_[k].image, isa::kNmem, {levels_[k].values[level.contracted]});
      }
    }
    const Loops loops = TileOutput(s);
    for (const Tensor& part : cores_parts_) {
      Stage& stage = s[part];
      if (t_.stream->results_by_smem) {
        stage.ComputeAt(s[y_], loops.cluster).SetScope(isa::kSmem);
        if (has_turns()) stage.DoubleBuffer();
      } else {
        stage.ComputeAt(s[y_], loops.tid).SetScope(isa::kNmem);
      }
      stage.Pragma(stage.axis(0), "memcpy");
    }
    if (shared_image_) {
      Stage& image = s[shared_image_];
      image.ComputeAt(s[y_], t_.stream ? loops.cluster : loops.tile).SetScope(isa::kSmem);
      image.Pragma(image.axis(0), "memcpy");
      if (!t_.stream || has_turns()) image.DoubleBuffer();
      if (group_.lead() > 0) image.ComputeWhole(image.data().axes.size() - 1);
    }
    const int64_t depth = t_.depth > 0 ? t_.depth : StreamDepth(t_, group_.levels_[0].contraction);
    if (depth > 0) part_ = CutSums(s, loops, depth);
    for (const auto& [shared, near] : weights) {
      if (has_turns()) {
        s[near].ComputeAt(s[whole_], loops.tid).SetScope(isa::kWmem);
        s[near].Pragma(s[near].axis(0), "memcpy");
        continue;
      }
      if (t_.stream) {
        Stage& user = part_ ? s[levels_[0].values[group_.levels_[0].contracted]] : s[whole_];
        const Axis& loop = part_ ? part_ : loops.block;
        if (shared) {
          s[shared].ComputeAt(user, loop).SetScope(isa::kSmem).DoubleBuffer();
          s[shared].Pragma(s[shared].axis(0), "memcpy");
        }
        s[near].ComputeAt(user, loop).SetScope(isa::kWmem).DoubleBuffer();
        s[near].Pragma(s[near].axis(0), "memcpy");
        continue;
      }
      if (shared && t_.pipelined) {
        s[shared].ComputeAt(s[y_], loops.block).SetScope(isa::kSmem).DoubleBuffer();
        s[shared].Pragma(s[shared].axis(0), "memcpy");
      } else if (shared) {
        auto [loader, filter] =
            s[shared].SplitParts(s[shared].axis(0), group_.machine().cores_per_cluster());
        s[shared]
            .ComputeAt(s[y_], loops.block)
            .SetScope(isa::kSmem)
            .Bind(loader, isa::kCoreAxis)
            .Pragma(filter, "memcpy");
      }
      s[near].SetScope(isa::kWmem).Pragma(s[near].axis(0), "memcpy");
      if (part_) {
        s[near].ComputeAt(s[levels_[0].values[group_.levels_[0].contracted]], part_);
      } else {
        s[near].ComputeAt(s[y_], loops.tid);
      }
    }
    for (size_t k = levels_.size(); k-- > 0;) ScheduleLevel(s, k, loops);
    return Lower(s);
  }

  // Adds the sums up part by part; the loop over the parts.
  Axis CutSums(Schedule& s, const Loops& loops, int64_t depth) const {
    const Contraction& c = group_.levels_[0].contraction;
    Stage& sums = s[levels_[0].values[group_.levels_[0].contracted]];
    sums.ComputeAt(s[t_.stream ? whole_ : y_], loops.sums).SetScope(isa::kNmem);
    const Cut cut = CutOf(c.sums->bodies[0].axes, depth);
    std::vector<Axis> order, inside;
    for (size_t d = 0; d < c.sums->bodies[0].axes.size(); ++d) {
      Axis axis = sums.reduce_axis(d);
      if (d <= cut.axis) {
        auto [part, place] = sums.Split(axis, d == cut.axis ? cut.places : 1);
        order.push_back(part);
        axis = place;
      }
      inside.push_back(axis);
    }
    const std::vector<Axis> parts = order;
    for (size_t d = group_.lead(); d < c.sums->axes.size(); ++d) order.push_back(sums.axis(d));
    order.insert(order.end(), inside.begin(), inside.end());
    sums.Reorder(order);
    const Axis first = order[parts.size()];
    sums.Pragma(first, StrCat(c.family, "_acc")).PragmaInit(first, "fill");
    // One loop, so that one pipeline runs through all parts.
    return parts.size() == 1 ? parts[0] : sums.Fuse(parts);
  }

  void ScheduleLevel(Schedule& s, size_t k, const Loops& loops) {
    const Level& level = group_.levels_[k];
    LevelTensors& tensors = levels_[k];
    // `is_once`: for all tiles of a core.
    const auto compute = [&](const Tensor& tensor, bool is_once, std::string_view instruction) {
      Stage& stage = s[tensor].SetScope(isa::kNmem);
      if (is_once) {
        stage.ComputeAt(s[t_.stream && t_.stream->results_by_smem ? whole_ : y_], loops.tid);
      } else {
        stage.ComputeAt(s[t_.stream ? whole_ : y_], loops.tile);
      }
      stage.Pragma(stage.axis(0), instruction);
    };
    // What sums that are added up part by part read of the image.
    const auto compute_part = [&](const Tensor& tensor, std::string_view instruction) {
      Stage& stage = s[tensor].SetScope(isa::kNmem).DoubleBuffer();
      stage.ComputeAt(s[tensors.values[level.contracted]], part_);
      stage.Pragma(stage.axis(0), instruction);
    };
    const bool loads_parts = part_ && (!t_.stream || t_.stream->image_in_parts);
    if (loads_parts && tensors.pad) {
      compute_part(tensors.pad, pragma::kPad);
    } else if (tensors.pad) {
      compute(tensors.pad, t_.stream.has_value(), pragma::kPad);
      if (has_wider_rows()) s[tensors.pad].ComputeAtLeast(kColumns, t_.image_columns);
      const bool is_leaf = k + 1 == levels_.size();
      if (t_.ahead > 0) {
        s[tensors.pad].StoreAt(loops.tid, t_.ahead);
      } else if (is_leaf && !t_.stream) {
        s[tensors.pad].DoubleBuffer();
      }
    }
    if (tensors.dense) compute(tensors.dense, false, "memcpy");
    if (loads_parts && tensors.image) {
      compute_part(tensors.image, "memcpy");
    } else if (tensors.image) {
      compute(tensors.image, t_.stream.has_value(), "memcpy");
      if (!t_.stream || has_turns()) s[tensors.image].DoubleBuffer();
    }
    const std::vector<int> places = group_.Places(level);
    std::vector<bool> is_place(places.size());
    for (int place : places) {
      if (place >= 0) is_place[place] = true;
    }
    for (const auto& [repeated, is_row] : tensors.spreads) compute(repeated, is_row, "memcpy");
    for (size_t i = 0; i < tensors.values.size(); ++i) {
      const Step& step = level.steps.list[i];
      const bool is_sums = static_cast<int>(i) == level.contracted;
      const bool is_row = !is_sums && IsRow(step);
      if (is_sums && part_) continue;
      compute(tensors.values[i], is_row,
              is_sums                  ? std::string_view(level.contraction.family)
              : step.tensor != nullptr ? "memcpy"
                                       : std::string_view(tensors.forms[i]->family));
      // A piece has no place among the sums of all rows.
      const bool is_of_piece = t_.stream && t_.stream->pieces > 1 && places[i] == level.contracted;
      if (places[i] >= 0 && !is_of_piece) s[tensors.values[i]].InPlace(tensors.values[places[i]]);
      if (is_row || is_place[i]) continue;
      if (t_.stream) {
        const bool is_loaded = t_.stream->results_by_smem && step.tensor != nullptr && !is_sums;
        // One block or piece leaves while the next one is computed.
        const bool is_one_of_many =
            t_.stream->pieces > 1 || has_turns() || (in_blocks() && t_.stream->parts == 1);
        const bool leaves = is_one_of_many && i == level.steps.result;
        if (is_loaded || leaves) s[tensors.values[i]].DoubleBuffer();
        continue;
      }
      const bool is_result = k == 0 && i == level.steps.result;
      if (is_result) s[tensors.values[i]].DoubleBuffer(static_cast<int>(t_.copies));
      if (!is_result && step.tensor != nullptr && !is_sums) s[tensors.values[i]].DoubleBuffer();
    }
  }

  const ContractionGroup& group_;
  const Tiling t_;
  const bool stores_blocks_;
  Graph graph_;
  std::vector<LevelTensors> levels_;
  Tensor y_;
  // If weights stream: a core's results in NMEM, or a cluster's in SMEM; what is loaded for them and the image, if that
  // goes by way of SMEM.
  Tensor whole_, shared_image_;
  Axis part_ = {};  // of the sums, if they are cut
  std::vector<Tensor> cores_parts_;
};

absl::StatusOr<ir::Function> ContractionGroup::Build(const CardChoice& choice) const {
  if (!choice.contains(kStream)) {
    ASSIGN_OR_RETURN(const Tiling tiling, TilingOf(choice));
    return Builder(*this, tiling).Build();
  }
  ASSIGN_OR_RETURN(const mapping::Mapping m, MappingOf(choice));
  return Builder(*this, StreamTiling(*StreamLayer(), m)).Build();
}

}  // namespace polynao::te
