#include "compiler/poly/card/turned_convolution.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/convolution_nest.h"
#include "compiler/poly/card/stage_copies.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Type;
using ir::Var;

class Turner {
 public:
  Turner(ConvolutionNest nest, const std::vector<const NestStage*>& before,
         const std::vector<const NestStage*>& after, ir::Context& c)
      : n_(std::move(nest)), stage_(*n_.stage), before_(before), after_(after), c_(c) {}

  // `with_sums`: what comes after is computed with the sums, where that is possible.
  TurnedConvolution Run(bool with_sums) {
    has_whole_image_ = n_.margins != nullptr || n_.ReadsMostOfImage();
    image_buffer_ = NewBuffer(ir::Buffer(n_.image_load.buffer())->name, n_.image_load.type(),
                              {Rows(0), Rows(1), n_.Depth()});
    filters_ = NewBuffer(
        ir::Buffer(n_.weights_load.buffer())->name, n_.weights_load.type(),
        {n_.Channels(), n_.RangeExtent(n_.Window(0)), n_.RangeExtent(n_.Window(1)), n_.Depth()});
    // What stands as the sums want it is not copied.
    image_in_place_ = ImageInPlace();
    if (image_in_place_) image_buffer_ = *image_in_place_;
    std::vector<int64_t> batch(n_.batch.size());
    const bool has_groups = n_.HasGroups();
    const bool has_whole = has_whole_image_ && n_.IsOneImage() && !image_in_place_;
    const bool is_image_there = has_whole && StandsThere(Image(batch), image_buffer_);
    const bool has_filters = !has_groups && StandsThere(Filters(batch), filters_);
    std::vector<NestStage> sums;
    if (n_.margins != nullptr) sums.push_back(Margins());
    sums.push_back(Sums(n_.margins == nullptr ? image_buffer_ : sums[0].target));
    const size_t own = sums.size();
    result_.has_after = with_sums && AddAfter(sums);
    if (!result_.has_after) sums.resize(own);
    const std::optional<ir::Buffer> results_in_place = ResultsInPlace();
    if (results_in_place) sums.back().target = *results_in_place;
    const bool has_image = image_in_place_ || is_image_there;
    const bool is_in_place = has_image && has_filters && results_in_place;
    if (is_in_place && sums.size() == 1) return {};
    while (true) {
      const bool needs_filters = has_groups || result_.groups.empty();
      if (needs_filters && !has_filters) result_.groups.push_back({Filters(batch)});
      if (!has_image) result_.groups.push_back({Image(batch)});
      result_.groups.push_back(sums);
      if (!results_in_place) result_.groups.push_back({Results(sums.back(), batch)});
      size_t b = batch.size();
      while (b > 0 && ++batch[b - 1] == n_.AxisExtent(n_.batch[b - 1])) batch[--b] = 0;
      if (b == 0) return std::move(result_);
    }
  }

 private:
  ir::Type type() const { return stage_.axes[0].type(); }

  Var NewVar(const char* name) { return c_.NewVar(name, type()); }
  Expr Int(int64_t i) { return c_.Int(type(), i); }
  // `e` with the loads of what is computed before replaced by how it is computed.
  Expr Inline(Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(Inline(operand));
    if (!operands.empty()) e = c_.Rebuild(e, operands);
    if (!e.Is(ExprKind::kLoad)) return e;
    for (const NestStage* stage : before_) {
      if (stage->target != ir::Buffer(e.buffer())) continue;
      ir::VarMap by;
      for (size_t d = 0; d < stage->axes.size(); ++d) {
        by[stage->axes[d]] = stage->low[d] == 0 ? operands[d] : operands[d] - stage->low[d];
      }
      return Inline(ir::Substitute(stage->value, by));
    }
    return e;
  }

  ir::Buffer NewBuffer(const std::string& name, Type element, const std::vector<int64_t>& extents) {
    std::vector<Expr> shape;
    for (const int64_t extent : extents) shape.push_back(Int(extent));
    return c_.NewBuffer(StrCat(name, ".turned"), element, shape);
  }
  NestStage NewStage(const std::vector<int64_t>& extents, std::vector<Var> axes) {
    return {.name = stage_.name,
            .place = stage_.place,
            .target = {},
            .axes = std::move(axes),
            .low = std::vector<int64_t>(extents.size()),
            .extents = extents,
            .value = {}};
  }
  // Another shape of as many elements.
  ir::Buffer View(ir::Buffer whole, const std::vector<int64_t>& extents) {
    result_.views.emplace_back(NewBuffer(whole->name, whole->type, extents), whole);
    return result_.views.back().first;
  }
  // The image's elements, all dimensions of its depth as one. All images take turns in one buffer.
  NestStage Image(const std::vector<int64_t>& batch) {
    std::vector<Var> at = {NewVar("y"), NewVar("x")};
    std::vector<int64_t> extents = {Rows(0), Rows(1)};
    for (const int d : n_.depth) {
      at.push_back(NewVar("i"));
      extents.push_back(n_.RangeExtent(d));
    }
    NestStage copy = NewStage(extents, at);
    std::vector<Expr> indices(n_.dimensions.size());
    for (size_t d = 0; d < n_.dimensions.size(); ++d) {
      const ConvolutionNest::Dimension& dimension = n_.dimensions[d];
      const bool is_whole = has_whole_image_ && (n_.Window(0) == static_cast<int>(d) ||
                                                 n_.Window(1) == static_cast<int>(d));
      int64_t constant = is_whole ? 0 : n_.First(static_cast<int>(d));
      for (size_t b = 0; b < n_.batch.size(); ++b) {
        if (n_.batch[b] == static_cast<int>(d)) constant += dimension.stride * batch[b];
      }
      indices[d] = Int(constant);
      const auto add = [&](Expr e) { indices[d] = constant == 0 ? e : e + Int(constant); };
      for (size_t i = 0; i < 2; ++i) {
        if (n_.Window(i) == static_cast<int>(d)) add(at[i]);
      }
      for (size_t i = 0; i < n_.depth.size(); ++i) {
        if (n_.depth[i] != static_cast<int>(d)) continue;
        add(dimension.dilation == 1 ? Expr(at[2 + i]) : at[2 + i] * Int(dimension.dilation));
      }
    }
    copy.value = Inline(c_.Load(ir::Buffer(n_.image_load.buffer()), indices));
    MergeAxes(copy, 2, n_.depth.size());
    SetTarget(copy, image_buffer_, image_view_);
    return copy;
  }
  // Rows or columns of the image's copy.
  int64_t Rows(size_t i) const {
    return has_whole_image_ && n_.Window(i) >= 0 ? n_.ImageExtent(n_.Window(i)) : n_.Reach(i);
  }
  // Axes as one, if they are read so.
  void MergeAxes(NestStage& copy, size_t first, size_t count) {
    if (count < 2) return;
    const auto axes = absl::MakeConstSpan(copy.axes).subspan(first, count);
    const auto extents = absl::MakeConstSpan(copy.extents).subspan(first, count);
    const Var one = c_.NewVar(axes[0].name(), type());
    const Expr value = WithAxesAsOne(copy.value, axes, extents, one);
    if (!value) return;
    copy.value = value;
    copy.axes[first] = one;
    for (size_t k = 1; k < count; ++k) copy.extents[first] *= copy.extents[first + k];
    const auto erase = [&](auto& of_axes) {
      const auto begin = of_axes.begin() + static_cast<ptrdiff_t>(first);
      of_axes.erase(begin + 1, begin + static_cast<ptrdiff_t>(count));
    };
    erase(copy.axes), erase(copy.low), erase(copy.extents);
  }
  // `buffer` in the shape of what the copy stores; of all copies alike one view.
  void SetTarget(NestStage& copy, ir::Buffer buffer, ir::Buffer& view) {
    if (!view) {
      const bool is_same = copy.extents.size() == buffer->extents.size();
      view = is_same ? buffer : View(buffer, copy.extents);
    }
    copy.target = view;
  }

  // The image with its margins, as the sums read it.
  NestStage Margins() {
    const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("i")};
    NestStage margins = NewStage({n_.Reach(0), n_.Reach(1), n_.Depth()}, at);
    margins.name = n_.margins->name, margins.place = n_.margins->place;
    margins.target =
        NewBuffer(StrCat(image_buffer_->name, ".margins"), n_.image_load.type(), margins.extents);
    ir::VarMap by;
    std::vector<Expr> place = {Int(0), Int(0), at[2]};
    for (size_t i = 0; i < n_.windows.size(); ++i) {
      by[n_.margin_axes[i]] = Plus(at[i], n_.margin_shifts[i]);
      place[i] = Plus(at[i], n_.First(n_.windows[i]));
    }
    if (image_in_place_) place[2] = Plus(at[2], n_.First(n_.depth[0]));
    const Expr select = n_.margins->value;
    margins.value = c_.Select(ir::Substitute(select.operand(0), by), c_.Load(image_buffer_, place),
                              select.operand(2));
    return margins;
  }
  Expr Plus(Expr e, int64_t number) { return number == 0 ? e : e + Int(number); }

  // The filters' elements, all axes of channels as one.
  NestStage Filters(const std::vector<int64_t>& batch) {
    std::vector<Var> at;
    std::vector<int64_t> extents;
    ir::VarMap by;
    for (const size_t a : n_.channels) {
      at.push_back(NewVar("c"));
      extents.push_back(stage_.extents[a]);
      by[stage_.axes[a]] = at.back();
    }
    for (size_t b = 0; b < n_.batch.size(); ++b) {
      by[stage_.axes[n_.dimensions[n_.batch[b]].axis]] = Int(batch[b]);
    }
    std::vector<int> places = {n_.Window(0), n_.Window(1)};
    places.insert(places.end(), n_.depth.begin(), n_.depth.end());
    for (const int d : places) {
      at.push_back(NewVar("r"));
      extents.push_back(n_.RangeExtent(d));
      if (d < 0 || n_.dimensions[d].range < 0) continue;
      const NestStage::ReduceRange& range = stage_.ranges[n_.dimensions[d].range];
      by[range.var] = range.min == 0 ? Expr(at.back()) : at.back() + Int(range.min);
    }
    NestStage copy = NewStage(extents, at);
    copy.value = Inline(ir::Substitute(n_.weights_load, by));
    MergeAxes(copy, n_.channels.size() + 2, n_.depth.size());
    MergeAxes(copy, 0, n_.channels.size());
    SetTarget(copy, filters_, filters_view_);
    return copy;
  }

  bool IsComputed(ir::Buffer buffer) const {
    return std::any_of(before_.begin(), before_.end(),
                       [&](const NestStage* stage) { return stage->target == buffer; });
  }
  // `buffer`, or a view of it, with no dimensions but those, which come in this order; none if others have several
  // elements.
  std::optional<ir::Buffer> InOrder(ir::Buffer buffer, const std::vector<int>& dimensions) {
    std::vector<int64_t> extents;
    size_t next = 0;
    for (size_t d = 0; d < buffer->extents.size(); ++d) {
      const Expr extent = buffer->extents[d];
      if (!extent.Is(ExprKind::kIntImm)) return std::nullopt;
      if (next < dimensions.size() && dimensions[next] == static_cast<int>(d)) {
        extents.push_back(extent.int_value());
        ++next;
      } else if (extent.int_value() != 1) {
        return std::nullopt;
      }
    }
    if (next < dimensions.size()) return std::nullopt;
    return extents.size() == buffer->extents.size() ? buffer : View(buffer, extents);
  }
  // The image where it stands, if its only one has rows, columns and channels in this order.
  std::optional<ir::Buffer> ImageInPlace() {
    const ir::Buffer image(n_.image_load.buffer());
    if (!n_.IsOneImage() || n_.windows.size() < 2 || n_.depth.size() != 1 || IsComputed(image)) {
      return std::nullopt;
    }
    const ConvolutionNest::Dimension& depth = n_.dimensions[n_.depth[0]];
    if (depth.axis >= 0 || depth.dilation != 1) return std::nullopt;
    return InOrder(image, {n_.Window(0), n_.Window(1), n_.depth[0]});
  }
  const NestStage& Last() const { return result_.has_after ? *after_.back() : stage_; }
  // Whether a copy has a whole buffer's elements in their order: then `buffer`, its target, becomes a view of that.
  bool StandsThere(const NestStage& copy, ir::Buffer& buffer) {
    if (!copy.value.Is(ExprKind::kLoad)) return false;
    const ir::Buffer from(copy.value.buffer());
    arith::LinearForm place;
    int64_t stride = 1;
    for (size_t d = from->extents.size(); d-- > 0;) {
      const Expr extent = from->extents[d];
      if (!extent.Is(ExprKind::kIntImm)) return false;
      if (!place.Add(arith::Decompose(copy.value.operand(d)), stride)) return false;
      stride *= extent.int_value();
    }
    int64_t elements = 1;
    for (size_t a = copy.axes.size(); a-- > 0; elements *= copy.extents[a]) {
      if (copy.extents[a] > 1 && !place.AddTerm(copy.axes[a], -elements)) return false;
    }
    if (elements != stride || !place.IsConstant() || place.constant() != 0) return false;
    std::vector<int64_t> extents;
    for (const Expr extent : buffer->extents) extents.push_back(extent.int_value());
    buffer = View(from, extents);
    return true;
  }
  // The results where they stand, if they are those of the only image and the sums begin with zeros.
  std::optional<ir::Buffer> ResultsInPlace() {
    if (!n_.IsOneImage() || n_.windows.size() < 2 || stage_.value) return std::nullopt;
    std::vector<int> order;
    for (size_t i = 0; i < 2; ++i) order.push_back(n_.dimensions[n_.Window(i)].axis);
    for (const size_t a : n_.channels) order.push_back(static_cast<int>(a));
    if (!IsWhole(Last())) return std::nullopt;
    const std::optional<ir::Buffer> results = InOrder(Last().target, order);
    if (!results || n_.channels.size() == 1) return results;
    return View(Last().target,
                {n_.AxisExtent(n_.Window(0)), n_.AxisExtent(n_.Window(1)), n_.Channels()});
  }

  NestStage Sums(ir::Buffer image) {
    const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("c")};
    const std::vector<Var> r = {NewVar("r"), NewVar("s"), NewVar("i")};
    NestStage sums =
        NewStage({n_.AxisExtent(n_.Window(0)), n_.AxisExtent(n_.Window(1)), n_.Channels()}, at);
    sums.target = NewBuffer(stage_.target->name, stage_.target->type, sums.extents);
    sums.reduction = ExprKind::kAdd;
    const bool reads_whole = (image_in_place_ || has_whole_image_) && n_.margins == nullptr;
    std::vector<Expr> place;
    for (size_t i = 0; i < 2; ++i) {
      place.push_back(at[i] * Int(n_.Stride(i)) + r[i] * Int(n_.Dilation(i)));
      if (n_.Stride(i) == 1 && n_.Dilation(i) == 1) place[i] = at[i] + r[i];
      if (reads_whole && n_.Window(i) >= 0) place[i] = Plus(place[i], n_.First(n_.Window(i)));
      sums.ranges.push_back({r[i], 0, n_.RangeExtent(n_.Window(i))});
    }
    const bool is_in_place = image_in_place_ && n_.margins == nullptr;
    place.push_back(Plus(r[2], is_in_place ? n_.First(n_.depth[0]) : 0));
    sums.ranges.push_back({r[2], 0, n_.Depth()});
    sums.element =
        ir::Replace(n_.image, {{n_.image_read, c_.Load(image, place)}}) *
        ir::Replace(n_.weights, {{n_.weights_load, c_.Load(filters_, {at[2], r[0], r[1], r[2]})}});
    return sums;
  }

  // What comes after the sums, of each of them, as stages of rows, columns and channels behind them; false if a stage
  // is anything else.
  bool AddAfter(std::vector<NestStage>& group) {
    if (after_.empty() || stage_.value || !IsWhole(stage_)) return false;
    absl::flat_hash_map<ir::Buffer, ir::Buffer> turned = {{stage_.target, group.back().target}};
    for (const NestStage* stage : after_) {
      const bool is_alike =
          !stage->reduction && stage->value && stage->extents == stage_.extents && IsWhole(*stage);
      if (!is_alike) return false;
      const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("c")};
      const Expr value = TurnedValue(*stage, at, turned);
      if (!value) return false;
      NestStage other =
          NewStage({n_.AxisExtent(n_.Window(0)), n_.AxisExtent(n_.Window(1)), n_.Channels()}, at);
      other.name = stage->name, other.place = stage->place;
      other.target = NewBuffer(stage->target->name, stage->target->type, other.extents);
      other.value = value;
      turned[stage->target] = other.target;
      group.push_back(std::move(other));
    }
    return true;
  }
  // Whether what a stage after the sums reads besides stands in the order of rows, columns and channels.
  bool IsInOrder(Expr load, const NestStage& stage) const {
    size_t last = 0;
    for (const Expr index : load.operands()) {
      for (size_t i = 0; i < n_.windows.size(); ++i) {
        if (!ir::UsesVar(index, stage.axes[n_.dimensions[n_.windows[i]].axis])) continue;
        if (i < last) return false;
        last = i;
      }
      for (const size_t a : n_.channels) {
        if (ir::UsesVar(index, stage.axes[a])) last = 2;
      }
    }
    return true;
  }
  // The value of a stage after the sums at a row, a column and a channel. None if it reads sums of other places, or
  // others of each image, or something in another order.
  Expr TurnedValue(const NestStage& stage, const std::vector<Var>& at,
                   const absl::flat_hash_map<ir::Buffer, ir::Buffer>& turned) {
    absl::flat_hash_map<Expr, Expr> reads;
    bool is_own = true;
    ir::ForEachExpr(stage.value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad)) return;
      const auto it = turned.find(ir::Buffer(e.buffer()));
      if (it == turned.end()) {
        is_own = is_own && IsInOrder(e, stage);
        if (const Expr other = WithChannelsAsOne(e, stage, at[2])) reads[e] = other;
        return;
      }
      is_own = is_own && std::equal(e.operands().begin(), e.operands().end(), stage.axes.begin(),
                                    stage.axes.end());
      reads[e] = c_.Load(it->second, {at[0], at[1], at[2]});
    });
    if (!is_own) return Expr();
    Expr value = ir::Replace(stage.value, reads);
    ir::VarMap by;
    for (const Var& axis : stage.axes) {
      if (axis.type() != type()) return Expr();
    }
    for (const int d : n_.batch) {
      const Var axis = stage.axes[n_.dimensions[d].axis];
      if (n_.AxisExtent(d) > 1 && ir::UsesVar(value, axis)) return Expr();
      by[axis] = Int(0);
    }
    for (size_t i = 0; i < n_.windows.size(); ++i) {
      by[stage.axes[n_.dimensions[n_.windows[i]].axis]] = at[i];
    }
    std::vector<Var> channels;
    std::vector<int64_t> extents;
    for (const size_t a : n_.channels) {
      channels.push_back(stage.axes[a]);
      extents.push_back(stage.extents[a]);
    }
    if (channels.size() == 1) {
      by[channels[0]] = at[2];
    } else {
      value = WithAxesAsOne(value, channels, extents, at[2]);
    }
    return value ? ir::Substitute(value, by) : value;
  }

  // A load of whole channels, on neighbouring dimensions, as one of a view that has them as one: B[o, b] of B[16, 4] as
  // B'[c] of B'[64]. None if it is another load.
  Expr WithChannelsAsOne(Expr load, const NestStage& stage, const Var& one) {
    const ir::Buffer buffer(load.buffer());
    const size_t count = n_.channels.size();
    for (size_t first = 0; count > 1 && first + count <= load.operands().size(); ++first) {
      bool are_channels = true;
      for (size_t k = 0; k < count; ++k) {
        are_channels = are_channels && load.operand(first + k) == stage.axes[n_.channels[k]] &&
                       buffer->extents[first + k].IsInt(stage.extents[n_.channels[k]]);
      }
      if (!are_channels) continue;
      std::vector<int64_t> extents;
      std::vector<Expr> indices;
      for (size_t d = 0; d < load.operands().size(); ++d) {
        if (d > first && d < first + count) continue;
        if (!buffer->extents[d].Is(ExprKind::kIntImm)) return Expr();
        extents.push_back(d == first ? n_.Channels() : buffer->extents[d].int_value());
        indices.push_back(d == first ? Expr(one) : load.operand(d));
      }
      return c_.Load(View(buffer, extents), indices);
    }
    return Expr();
  }

  NestStage Results(const NestStage& sums, const std::vector<int64_t>& batch) {
    NestStage results = Last();
    results.reduction.reset();
    results.ranges.clear();
    results.element = Expr();
    ir::VarMap by;
    for (size_t a = 0; a < stage_.axes.size(); ++a) {
      results.axes[a] = NewVar("o");
      by[stage_.axes[a]] = results.axes[a];
    }
    for (size_t b = 0; b < n_.batch.size(); ++b) {
      const int axis = n_.dimensions[n_.batch[b]].axis;
      results.low[axis] += batch[b];
      results.extents[axis] = 1;
      by[stage_.axes[axis]] = results.axes[axis] + Int(batch[b]);
    }
    std::vector<Expr> place;
    for (size_t i = 0; i < 2; ++i) {
      place.push_back(n_.Window(i) < 0 ? Int(0)
                                       : Expr(results.axes[n_.dimensions[n_.Window(i)].axis]));
    }
    std::vector<int64_t> extents = {n_.AxisExtent(n_.Window(0)), n_.AxisExtent(n_.Window(1))};
    for (const size_t a : n_.channels) {
      place.push_back(results.axes[a]);
      extents.push_back(stage_.extents[a]);
    }
    if (!sums_view_) sums_view_ = View(sums.target, extents);
    const Expr sum = c_.Load(sums_view_, place);
    results.value = stage_.value ? Inline(ir::Substitute(stage_.value, by)) + sum : sum;
    return results;
  }

  const ConvolutionNest n_;
  const NestStage& stage_;
  const std::vector<const NestStage*>&before_, &after_;
  ir::Context& c_;
  // The image's copy has all rows and columns, not those alone that windows reach.
  bool has_whole_image_ = false;
  // Of the copies and the sums, and other shapes of these in which stages store and read.
  ir::Buffer image_buffer_, filters_, image_view_, filters_view_, sums_view_;
  std::optional<ir::Buffer> image_in_place_;
  TurnedConvolution result_;
};

}  // namespace

TurnedConvolution TurnConvolution(const NestStage& stage,
                                  const std::vector<const NestStage*>& before,
                                  const std::vector<const NestStage*>& after, bool with_sums,
                                  ir::Context& c) {
  std::optional<ConvolutionNest> nest = ConvolutionNest::Of(stage, before, with_sums);
  if (!nest) return {};
  return Turner(*std::move(nest), before, after, c).Run(with_sums);
}

}  // namespace polynao::poly
