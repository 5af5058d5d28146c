#include "compiler/poly/card/interleaved.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/merged_axes.h"
#include "compiler/poly/card/split_strides.h"
#include "compiler/poly/card/stage_graph.h"
#include "isa/granularity.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Var;
using Views = std::vector<std::pair<Buffer, Buffer>>;

template <typename F>
void ForEachLoad(const NestStage& stage, const F& f) {
  for (const Expr e : {stage.value, stage.element}) {
    if (!e) continue;
    ir::ForEachExpr(e, [&](Expr part) {
      if (part.Is(ExprKind::kLoad)) f(part);
    });
  }
}

// The axis of a stage whose places follow one another in its result.
Var InnerAxis(const NestStage& stage) {
  for (size_t d = stage.axes.size(); d-- > 0;) {
    if (stage.extents[d] > 1) return stage.axes[d];
  }
  return Var();
}

// Whether a stage reads elements that do not follow one another where those that it stores do.
bool HasStrides(const NestStage& stage) {
  const Var inner = InnerAxis(stage);
  bool has_strides = false;
  ForEachLoad(stage, [&](Expr load) {
    const bool is_one = !inner || load.operands().empty();
    has_strides = has_strides || (!is_one && !ir::UsesVar(load.operands().back(), inner));
  });
  return has_strides;
}

// Whether the rows of a tensor fill no group of the vector unit, but its columns are longer.
bool HasShortRows(Buffer buffer) {
  const te::Shape shape = ShapeOf(buffer);
  const size_t rank = shape.size();
  return rank > 1 && shape[rank - 1] < isa::kVectorGroup && shape[rank - 1] < shape[rank - 2];
}

// Whether a list has an element.
template <typename List, typename T>
bool Has(const List& list, const T& element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

// The tensors whose last dimension says which part an element is.
struct Interleaved {
  std::vector<Buffer> inputs, results;
  bool Contains(Buffer buffer) const { return Has(inputs, buffer) || Has(results, buffer); }
};

Interleaved FindInterleaved(const std::vector<NestStage>& stages) {
  Interleaved found;
  absl::flat_hash_set<Buffer> targets;
  for (const NestStage& stage : stages) {
    targets.insert(stage.target);
    const bool is_it = HasShortRows(stage.target) && IsWhole(stage);
    if (is_it && !Has(found.results, stage.target)) found.results.push_back(stage.target);
  }
  // Inputs whose columns stand where the results' rows do then.
  for (const NestStage& stage : stages) {
    const bool is_turned = Has(found.results, stage.target);
    const Var inner = is_turned ? stage.axes[stage.axes.size() - 2] : InnerAxis(stage);
    ForEachLoad(stage, [&](Expr load) {
      const Buffer buffer(load.buffer());
      if (!inner || targets.contains(buffer) || !HasShortRows(buffer)) return;
      const size_t rank = load.operands().size();
      const bool has_stride =
          ir::UsesVar(load.operand(rank - 2), inner) && !ir::UsesVar(load.operand(rank - 1), inner);
      if (has_stride && !Has(found.inputs, buffer)) found.inputs.push_back(buffer);
    });
  }
  return found;
}

// A reduction over a few parts as one expression: a factor that all pixels share is read once then.
//
//   Y[p, c] = sum over k of M[c, k] * X[p, k]   -->   Y[p, c] = 0 + M[c, 0] * X[p, 0] + M[c, 1] * X[p, 1]
void UnrollSmall(ir::Context& c, NestStage& stage) {
  constexpr int64_t kMostParts = 4;
  int64_t parts = 1;
  for (const NestStage::ReduceRange& range : stage.ranges) parts *= range.extent;
  const bool is_sum = stage.reduction == ExprKind::kAdd;
  if (!stage.reduction || parts > kMostParts || (!stage.value && !is_sum)) return;
  Expr value = stage.value ? stage.value : c.Const(stage.target->type, 0);
  for (int64_t part = 0; part < parts; ++part) {
    ir::VarMap by;
    int64_t rest = part;
    for (size_t k = stage.ranges.size(); k-- > 0;) {
      const NestStage::ReduceRange& range = stage.ranges[k];
      by[range.var] = c.Int(range.var.type(), range.min + rest % range.extent);
      rest /= range.extent;
    }
    value = c.Binary(*stage.reduction, value, ir::Substitute(stage.element, by));
  }
  stage.value = value;
  stage.reduction.reset();
  stage.ranges.clear();
  stage.element = Expr();
}

template <typename List>
void SwapLast(List& list) {
  std::swap(list[list.size() - 1], list[list.size() - 2]);
}

// A stage that copies: to[i, .., j, k] = from[i, .., k, j]; as a rotation, to[i, .., r, b, k] = from[i, .., b, k, r].
NestStage CopyOf(ir::Context& c, const std::string& name, const NestStage& of, Buffer from,
                 Buffer to, bool rotates = false) {
  NestStage copy = {.name = name,
                    .place = of.place,
                    .target = to,
                    .axes = {},
                    .low = {},
                    .extents = ShapeOf(to),
                    .value = {}};
  for (const Expr extent : to->extents) copy.axes.push_back(c.NewVar("i", extent.type()));
  copy.low.resize(copy.axes.size());
  std::vector<Expr> at(copy.axes.begin(), copy.axes.end());
  if (rotates) {
    std::rotate(at.end() - 3, at.end() - 2, at.end());
  } else {
    SwapLast(at);
  }
  copy.value = c.Load(from, at);
  return copy;
}

// Parts as rows of all pixels.
class RowTurner {
 public:
  RowTurner(ir::Context& c, const Interleaved& interleaved) : c_(c), interleaved_(interleaved) {}

  std::vector<NestStage> Run(const std::vector<NestStage>& stages) {
    std::vector<NestStage> list;
    for (const auto& buffers : {interleaved_.inputs, interleaved_.results}) {
      for (const Buffer buffer : buffers) {
        std::vector<Expr> extents(buffer->extents.begin(), buffer->extents.end());
        SwapLast(extents);
        turned_[buffer] = c_.NewBuffer(StrCat(buffer->name, ".turned"), buffer->type, extents);
      }
    }
    for (const Buffer input : interleaved_.inputs) {
      list.push_back(
          CopyOf(c_, StrCat(input->name, ".turned"), stages.back(), input, turned_.at(input)));
    }
    for (const NestStage& stage : stages) list.push_back(Turned(stage));
    const Buffer output = stages.back().target;
    if (const auto it = turned_.find(output); it != turned_.end()) {
      list.push_back(
          CopyOf(c_, StrCat(stages.back().name, ".turned"), stages.back(), it->second, output));
    }
    return list;
  }

 private:
  NestStage Turned(NestStage stage) {
    for (Expr* e : {&stage.value, &stage.element}) {
      if (*e) *e = WithTurnedLoads(*e);
    }
    const auto it = turned_.find(stage.target);
    if (it == turned_.end()) return stage;
    stage.target = it->second;
    SwapLast(stage.axes), SwapLast(stage.low), SwapLast(stage.extents);
    return stage;
  }

  Expr WithTurnedLoads(Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(WithTurnedLoads(operand));
    const auto it = e.Is(ExprKind::kLoad) ? turned_.find(Buffer(e.buffer())) : turned_.end();
    if (it == turned_.end()) return operands.empty() ? e : c_.Rebuild(e, operands);
    SwapLast(operands);
    return c_.Load(it->second, operands);
  }

  ir::Context& c_;
  const Interleaved& interleaved_;
  absl::flat_hash_map<Buffer, Buffer> turned_;
};

// Parts in blocks: of each tensor over pixels, the last dimension or, if it is interleaved, the one before, pixel
// r * block + b is place r of row b.
class BlockTurner {
 public:
  BlockTurner(ir::Context& c, const Interleaved& interleaved) : c_(c), interleaved_(interleaved) {}

  // None if pixels are not read one by one, or have no blocks.
  std::optional<std::vector<NestStage>> Run(const std::vector<NestStage>& stages, Views& views) {
    const NestStage& last = stages.back();
    if (!IsWhole(last)) return std::nullopt;
    for (const NestStage& stage : stages) targets_.insert(stage.target);
    pixels_ = ShapeOf(last.target)[PixelDimension(last.target)];
    block_ = BlockOf(pixels_);
    if (block_ < kLeastBlock) return std::nullopt;
    rows_[last.target] = RowsOf(last.target);
    for (size_t s = stages.size(); s-- > 0;) {
      if (!FindPixels(stages[s])) return std::nullopt;
    }
    std::vector<NestStage> list;
    for (const Buffer input : inputs_) {
      const Buffer view = InMemory(input);
      views.emplace_back(view, input);
      list.push_back(CopyOf(c_, StrCat(input->name, ".turned"), last, view, rows_.at(input)));
    }
    for (const NestStage& stage : stages) list.push_back(InBlocks(stage));
    const Buffer view = InMemory(last.target);
    views.emplace_back(view, last.target);
    list.push_back(CopyOf(c_, StrCat(last.name, ".turned"), last, rows_.at(last.target), view,
                          /*rotates=*/interleaved_.Contains(last.target)));
    return list;
  }

 private:
  // Fewer columns are not worth another order of pixels.
  static constexpr int64_t kLeastBlock = 8;

  // A whole group of columns, if there are groups of rows too; of fewer pixels about as many columns as rows.
  static int64_t BlockOf(int64_t pixels) {
    int64_t block = isa::kVectorGroup;
    while (block > 1 && (pixels % block != 0 || block > pixels / block)) --block;
    return block;
  }

  size_t PixelDimension(Buffer buffer) const {
    return buffer->extents.size() - (interleaved_.Contains(buffer) ? 2 : 1);
  }
  bool IsInput(Buffer buffer) const { return !targets_.contains(buffer); }

  // The buffer's dimensions in front of the pixels, and more.
  Buffer NewBuffer(Buffer buffer, const std::string& name, const std::vector<int64_t>& more) {
    const size_t pixels = PixelDimension(buffer);
    std::vector<Expr> extents(buffer->extents.begin(),
                              buffer->extents.begin() + static_cast<ptrdiff_t>(pixels));
    const ir::Type type = buffer->extents.back().type();
    for (const int64_t extent : more) extents.push_back(c_.Int(type, extent));
    return c_.NewBuffer(name, buffer->type, extents);
  }
  int64_t PartsOf(Buffer buffer) const {
    return interleaved_.Contains(buffer) ? ShapeOf(buffer).back() : 1;
  }
  // As it stands on chip: of inputs the places of a block are one dimension.
  Buffer RowsOf(Buffer buffer) {
    const std::string name = StrCat(buffer->name, ".turned");
    const int64_t parts = PartsOf(buffer), rows = pixels_ / block_;
    if (IsInput(buffer)) return NewBuffer(buffer, name, {block_ * parts, rows});
    if (!interleaved_.Contains(buffer)) return NewBuffer(buffer, name, {block_, rows});
    return NewBuffer(buffer, name, {block_, parts, rows});
  }
  // As it stands in GMEM.
  Buffer InMemory(Buffer buffer) {
    const int64_t parts = PartsOf(buffer), rows = pixels_ / block_;
    if (IsInput(buffer)) return NewBuffer(buffer, buffer->name, {rows, block_ * parts});
    if (!interleaved_.Contains(buffer)) return NewBuffer(buffer, buffer->name, {rows, block_});
    return NewBuffer(buffer, buffer->name, {rows, block_, parts});
  }

  // Which tensors a stage reads pixel by pixel, if it stores one so. False if it reads pixels in another way.
  bool FindPixels(const NestStage& stage) {
    const bool has_pixels = rows_.contains(stage.target);
    const size_t dimension = PixelDimension(stage.target);
    if (has_pixels && (!IsWhole(stage) || stage.extents[dimension] != pixels_)) return false;
    const Expr pixel = has_pixels ? Expr(stage.axes[dimension]) : Expr();
    bool is_plain = true;
    const auto visit = [&](const auto& self, Expr e) -> void {
      if (has_pixels && e == pixel) is_plain = false;
      const Buffer buffer(e.Is(ExprKind::kLoad) ? Buffer(e.buffer()) : Buffer());
      const bool is_load = e.Is(ExprKind::kLoad) && !e.operands().empty();
      const size_t place = is_load ? PixelDimension(buffer) : 0;
      const bool reads_pixel = is_load && has_pixels && e.operand(place) == pixel;
      if (reads_pixel && ShapeOf(buffer)[place] != pixels_) is_plain = false;
      if (reads_pixel && !rows_.contains(buffer)) {
        rows_[buffer] = RowsOf(buffer);
        if (IsInput(buffer)) inputs_.push_back(buffer);
      }
      for (size_t d = 0; d < e.operands().size(); ++d) {
        if (!reads_pixel || d != place) self(self, e.operand(d));
      }
    };
    for (const Expr e : {stage.value, stage.element}) {
      if (e) visit(visit, e);
    }
    // All reads of such tensors are by pixels; stages behind this one have seen theirs.
    ForEachLoad(stage, [&](Expr load) {
      const Buffer buffer(load.buffer());
      if (!rows_.contains(buffer)) return;
      is_plain = is_plain && has_pixels && load.operand(PixelDimension(buffer)) == pixel;
    });
    return is_plain;
  }

  NestStage InBlocks(NestStage stage) {
    const auto it = rows_.find(stage.target);
    if (it == rows_.end()) return stage;
    const size_t at = PixelDimension(stage.target);
    const Var pixel = stage.axes[at];
    const Var b = c_.NewVar("b", pixel.type()), r = c_.NewVar("r", pixel.type());
    for (Expr* e : {&stage.value, &stage.element}) {
      if (*e) *e = WithBlockLoads(*e, b, r);
    }
    // [.., p, k] as [.., b, k, r]
    stage.axes[at] = b, stage.extents[at] = block_;
    stage.axes.push_back(r), stage.extents.push_back(pixels_ / block_), stage.low.push_back(0);
    stage.target = it->second;
    return stage;
  }

  Expr WithBlockLoads(Expr e, Expr b, Expr r) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(WithBlockLoads(operand, b, r));
    const Buffer buffer(e.Is(ExprKind::kLoad) ? Buffer(e.buffer()) : Buffer());
    const auto it = e.Is(ExprKind::kLoad) ? rows_.find(buffer) : rows_.end();
    if (it == rows_.end()) return operands.empty() ? e : c_.Rebuild(e, operands);
    const size_t place = PixelDimension(buffer);
    if (IsInput(buffer) && interleaved_.Contains(buffer)) {
      const Expr part = operands.back();
      operands.pop_back();
      operands[place] = b * PartsOf(buffer);
      if (!part.IsInt(0)) operands[place] = operands[place] + part;
    } else {
      operands[place] = b;
    }
    operands.push_back(r);
    return c_.Load(it->second, operands);
  }

  ir::Context& c_;
  const Interleaved& interleaved_;
  int64_t pixels_ = 0, block_ = 0;
  absl::flat_hash_set<Buffer> targets_;
  absl::flat_hash_map<Buffer, Buffer> rows_;  // tensors over pixels, as they stand on chip
  std::vector<Buffer> inputs_;                // of these, in the order in which they are found
};

}  // namespace

std::vector<Deinterleaved> Deinterleave(ir::Context& c, std::vector<NestStage> stages) {
  for (NestStage& stage : stages) UnrollSmall(c, stage);
  Views views = SplitStrides(c, stages);
  for (const auto& view : MergeAxes(c, stages)) views.push_back(view);
  if (!std::any_of(stages.begin(), stages.end(), HasStrides)) return {};
  const Interleaved interleaved = FindInterleaved(stages);
  if (interleaved.inputs.empty() && !interleaved.Contains(stages.back().target)) return {};
  std::vector<Deinterleaved> ways = {
      {.stages = RowTurner(c, interleaved).Run(stages), .views = views}};
  if (auto in_blocks = BlockTurner(c, interleaved).Run(stages, views)) {
    ways.push_back({.stages = *std::move(in_blocks), .views = std::move(views)});
  }
  return ways;
}

}  // namespace polynao::poly
