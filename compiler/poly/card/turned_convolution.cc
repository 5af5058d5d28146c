#include "compiler/poly/card/turned_convolution.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/buffer_views.h"
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
         const std::vector<const NestStage*>& after, const TurnOptions& options, ir::Context& c)
      : n_(std::move(nest)),
        stage_(*n_.stage),
        before_(before),
        after_(after),
        options_(options),
        c_(c),
        views_(c, type()) {}

  TurnedConvolution Run() {
    has_whole_image_ = n_.margins != nullptr || n_.ReadsMostOfImage();
    FindImages();
    FindFilters();
    std::vector<NestStage> sums;
    if (n_.margins != nullptr) sums.push_back(Margins());
    sums.push_back(Sums(n_.margins == nullptr ? image_ : sums[0].target));
    const size_t own = sums.size();
    result_.has_after = options_.with_sums && AddAfter(sums);
    if (!result_.has_after) sums.resize(own);
    const std::optional<BufferParts> results =
        options_.results_stay ? std::nullopt : ResultsInPlace(sums.back());
    if (!results) SetResults(sums.back());
    const bool is_in_place = !copies_images_ && !copies_filters_ && results.has_value();
    if (is_in_place && sums.size() == 1 && IsInForm()) return {};
    if (copies_filters_) result_.groups.push_back({.stages = {Filters()}});
    if (copies_images_) result_.groups.push_back({.stages = {Images()}});
    result_.groups.push_back(
        {.stages = sums, .images = OffsetsOfImages(results, sums.back().target)});
    if (!results && !options_.results_stay) {
      result_.groups.push_back({.stages = {Results()}});
    }
    result_.views = views_.list();
    return std::move(result_);
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
    return views_.NewBuffer(StrCat(name, ".turned"), element, extents);
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
  static int64_t Product(const std::vector<int64_t>& extents) {
    int64_t product = 1;
    for (const int64_t extent : extents) product *= extent;
    return product;
  }
  std::vector<int64_t> BatchExtents() const {
    std::vector<int64_t> extents;
    for (const int d : n_.batch) extents.push_back(n_.AxisExtent(d));
    return extents;
  }
  bool IsStacked() const { return options_.stacks; }

  // Where the images are, or will be copied.
  void FindImages() {
    if (const std::optional<BufferParts> in_place = ImagesInPlace()) {
      images_ = *in_place;
      is_image_in_place_ = true;
      rows_ = n_.Window(0) < 0 ? 1 : n_.ImageExtent(n_.Window(0));
      return;
    }
    copies_images_ = true;
    rows_ = Rows(0);
    if (IsStacked()) rows_ = (rows_ + n_.Stride(0) - 1) / n_.Stride(0) * n_.Stride(0);
    const std::vector<int64_t> batch = BatchExtents(), one = {rows_, Rows(1), n_.Depth()};
    std::vector<int64_t> all = batch;
    all.insert(all.end(), one.begin(), one.end());
    all_images_ = NewBuffer(ir::Buffer(n_.image_load.buffer())->name, n_.image_load.type(), all);
    images_.steps = StepsOf(batch, Product(one));
    if (IsStacked()) {
      image_ = views_.View(all_images_, {n_.Images() * rows_, Rows(1), n_.Depth()});
      return;
    }
    image_ = views_.View(all_images_, one);
    if (!has_whole_image_ || !n_.IsOneImage()) return;
    if (const std::optional<ir::Buffer> there = views_.WhereItStands(Images(), image_)) {
      image_ = *there;
      copies_images_ = false;
    }
  }

  // The elements of all images, all dimensions of their depth as one.
  NestStage Images() {
    std::vector<Var> at;
    std::vector<int64_t> extents = BatchExtents();
    for (size_t b = 0; b < extents.size(); ++b) at.push_back(NewVar("n"));
    const size_t rows = at.size(), depth = rows + 2;
    at.push_back(NewVar("y")), at.push_back(NewVar("x"));
    extents.push_back(rows_), extents.push_back(Rows(1));
    for (const int d : n_.depth) {
      at.push_back(NewVar("i"));
      extents.push_back(n_.RangeExtent(d));
    }
    NestStage copy = NewStage(extents, at);
    std::vector<Expr> indices;
    for (int d = 0; d < static_cast<int>(n_.dimensions.size()); ++d) {
      const ConvolutionNest::Dimension& dimension = n_.dimensions[d];
      const bool is_window = n_.Window(0) == d || n_.Window(1) == d;
      Expr index = Int(is_window && has_whole_image_ ? 0 : n_.First(d));
      const auto add = [&](Expr e, int64_t times) {
        const Expr term = times == 1 ? e : e * Int(times);
        index = index.IsInt(0) ? term : term + index;
      };
      for (size_t i = 0; i < n_.depth.size(); ++i) {
        if (n_.depth[i] == d) add(at[depth + i], dimension.dilation);
      }
      for (size_t b = 0; b < n_.batch.size(); ++b) {
        if (n_.batch[b] == d && extents[b] > 1) add(at[b], dimension.stride);
      }
      for (size_t i = 0; i < 2; ++i) {
        if (n_.Window(i) == d) add(at[rows + i], 1);
      }
      indices.push_back(index);
    }
    copy.value = Inline(c_.Load(ir::Buffer(n_.image_load.buffer()), indices));
    if (rows_ > Rows(0)) copy.value = OfRows(copy.value, Expr(at[rows]) < Int(Rows(0)));
    MergeAxes(copy, depth, n_.depth.size());
    copy.target = views_.InShape(all_images_, copy.extents);
    return copy;
  }
  // Zeros where there are no rows.
  Expr OfRows(Expr value, Expr is_row) {
    const Expr zero = c_.Const(value.type(), 0);
    if (!value.Is(ExprKind::kSelect) || !value.operand(2).IsConst()) {
      return c_.Select(is_row, value, zero);
    }
    return c_.Select(ir::And(is_row, value.operand(0)), value.operand(1), value.operand(2));
  }
  // Rows or columns that are copied of the image.
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
  // The image with its margins, as the sums read it.
  NestStage Margins() {
    const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("i")};
    NestStage margins = NewStage({n_.Reach(0), n_.Reach(1), n_.Depth()}, at);
    margins.name = n_.margins->name, margins.place = n_.margins->place;
    margins.target =
        NewBuffer(StrCat(image_->name, ".margins"), n_.image_load.type(), margins.extents);
    ir::VarMap by;
    std::vector<Expr> place = {Int(0), Int(0), at[2]};
    for (size_t i = 0; i < n_.windows.size(); ++i) {
      by[n_.margin_axes[i]] = Plus(at[i], n_.margin_shifts[i]);
      place[i] = Plus(at[i], n_.First(n_.windows[i]));
    }
    place[2] = Plus(at[2], FirstOfDepth());
    const Expr select = n_.margins->value;
    margins.value =
        c_.Select(ir::Substitute(select.operand(0), by), c_.Load(image_, place), select.operand(2));
    return margins;
  }
  // Where in the depth of an image that is no copy the sums begin.
  int64_t FirstOfDepth() const {
    return is_image_in_place_ && n_.depth.size() == 1 ? n_.First(n_.depth[0]) : 0;
  }
  Expr Plus(Expr e, int64_t number) { return number == 0 ? e : e + Int(number); }

  // Groups of channels have filters of their own.
  std::vector<int> Groups() const {
    std::vector<int> groups;
    for (const int d : n_.batch) {
      if (n_.is_shared[n_.dimensions[d].axis]) groups.push_back(d);
    }
    return groups;
  }
  // Where the filters are, or will be copied.
  void FindFilters() {
    std::vector<int64_t> groups;
    for (const int d : Groups()) groups.push_back(n_.AxisExtent(d));
    const std::vector<int64_t> one = {n_.Channels(), n_.RangeExtent(n_.Window(0)),
                                      n_.RangeExtent(n_.Window(1)), n_.Depth()};
    std::vector<int64_t> all = groups;
    all.insert(all.end(), one.begin(), one.end());
    all_filters_ =
        NewBuffer(ir::Buffer(n_.weights_load.buffer())->name, n_.weights_load.type(), all);
    filters_ = views_.View(all_filters_, one);
    filter_steps_ = StepsOf(groups, Product(one));
    const std::optional<ir::Buffer> there = views_.WhereItStands(Filters(), filters_);
    if (there) filters_ = *there;
    copies_filters_ = !there;
  }
  // The filters' elements, all axes of channels as one.
  NestStage Filters() {
    std::vector<Var> at;
    std::vector<int64_t> extents;
    ir::VarMap by;
    const auto add_axis = [&](size_t axis, const char* name) {
      at.push_back(NewVar(name));
      extents.push_back(stage_.extents[axis]);
      by[stage_.axes[axis]] = at.back();
    };
    for (const int d : Groups()) add_axis(n_.dimensions[d].axis, "g");
    const size_t first_channel = at.size();
    for (const size_t a : n_.channels) add_axis(a, "c");
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
    MergeAxes(copy, first_channel + n_.channels.size() + 2, n_.depth.size());
    MergeAxes(copy, first_channel, n_.channels.size());
    copy.target = views_.InShape(all_filters_, copy.extents);
    return copy;
  }

  bool IsComputed(ir::Buffer buffer) const {
    return std::any_of(before_.begin(), before_.end(),
                       [&](const NestStage* stage) { return stage->target == buffer; });
  }
  // The images where they stand, if each has rows, columns and channels in this order; then `image_` is what the sums
  // read: the first one, or all.
  std::optional<BufferParts> ImagesInPlace() {
    const ir::Buffer buffer(n_.image_load.buffer());
    if (n_.depth.size() > 1 || IsComputed(buffer)) return std::nullopt;
    std::vector<int> order = n_.windows;
    int64_t depth = 1;
    if (!n_.depth.empty()) {
      const ConvolutionNest::Dimension& dimension = n_.dimensions[n_.depth[0]];
      if (dimension.axis >= 0 || dimension.dilation != 1) return std::nullopt;
      order.push_back(n_.depth[0]);
      depth = n_.ImageExtent(n_.depth[0]);
    }
    std::optional<BufferParts> images = PartsOf(buffer, n_.batch, order);
    if (!images) return std::nullopt;
    bool are_all = true;  // and each but once
    for (size_t b = 0; b < n_.batch.size(); ++b) {
      const int d = n_.batch[b];
      const ConvolutionNest::Dimension& dimension = n_.dimensions[d];
      images->first += dimension.constant * images->steps[b];
      images->steps[b] *= dimension.stride;
      are_all = are_all && dimension.stride == 1 && n_.AxisExtent(d) == n_.ImageExtent(d);
    }
    const auto extent = [&](int d) { return d < 0 ? 1 : n_.ImageExtent(d); };
    int64_t rows = extent(n_.Window(0));
    if (IsStacked()) {
      if (!are_all || rows % n_.Stride(0) != 0) return std::nullopt;
      rows *= n_.Images();
    }
    image_ = views_.InShape(buffer, {rows, extent(n_.Window(1)), depth});
    return images;
  }
  const NestStage& Last() const { return result_.has_after ? *after_.back() : stage_; }
  // Rows of sums from one image's first to the next one's.
  int64_t RowsOfSums() const {
    return IsStacked() ? rows_ / n_.Stride(0) : n_.AxisExtent(n_.Window(0));
  }
  // Rows of sums that are computed at a time.
  int64_t RowsOfResults() const {
    const int64_t rows = n_.AxisExtent(n_.Window(0));
    return IsStacked() ? (n_.Images() - 1) * RowsOfSums() + rows : rows;
  }
  // The results where they stand, if the sums begin with zeros and have their order; then `sums` store them.
  std::optional<BufferParts> ResultsInPlace(NestStage& sums) {
    const bool has_gaps = IsStacked() && RowsOfSums() != n_.AxisExtent(n_.Window(0));
    if (has_gaps || stage_.value || !IsWhole(Last())) return std::nullopt;
    std::vector<int> order, batch;
    for (const int d : n_.batch) batch.push_back(n_.dimensions[d].axis);
    for (const int d : n_.windows) order.push_back(n_.dimensions[d].axis);
    for (const size_t a : n_.channels) order.push_back(static_cast<int>(a));
    const std::optional<BufferParts> results = PartsOf(Last().target, batch, order);
    if (results) sums.target = views_.InShape(Last().target, sums.extents);
    return results;
  }
  // A buffer for the results of all images.
  void SetResults(NestStage& sums) {
    std::vector<int64_t> extents = BatchExtents();
    for (const int d : n_.batch) result_.results_axes.push_back(n_.dimensions[d].axis);
    const int64_t one = RowsOfSums() * n_.AxisExtent(n_.Window(1)) * n_.Channels();
    result_steps_ = StepsOf(extents, one);
    for (size_t i = 0; i < 2; ++i) {
      result_.results_axes.push_back(n_.Window(i) < 0 ? -1 : n_.dimensions[n_.Window(i)].axis);
    }
    extents.push_back(RowsOfSums()), extents.push_back(n_.AxisExtent(n_.Window(1)));
    for (const size_t a : n_.channels) {
      result_.results_axes.push_back(static_cast<int>(a));
      extents.push_back(stage_.extents[a]);
    }
    result_.results = NewBuffer(Last().target->name, sums.target->type, extents);
    sums.target = views_.View(result_.results, sums.extents);
  }
  // Where each image begins, and what belongs to it.
  std::vector<TurnedConvolution::Group::Offsets> OffsetsOfImages(
      const std::optional<BufferParts>& results, ir::Buffer target) const {
    using Offsets = TurnedConvolution::Group::Offsets;
    if (IsStacked()) return {Offsets()};
    const std::vector<int64_t>& result_steps = results ? results->steps : result_steps_;
    std::vector<Offsets> images;
    std::vector<int64_t> at(n_.batch.size());
    while (true) {
      int64_t image = images_.first, filters = 0, result = 0;
      size_t group = 0;
      for (size_t b = 0; b < at.size(); ++b) {
        image += images_.steps[b] * at[b];
        result += result_steps[b] * at[b];
        if (n_.is_shared[n_.dimensions[n_.batch[b]].axis])
          filters += filter_steps_[group++] * at[b];
      }
      images.push_back({{image_, image}, {filters_, filters}, {target, result}});
      size_t b = at.size();
      while (b > 0 && ++at[b - 1] == n_.AxisExtent(n_.batch[b - 1])) at[--b] = 0;
      if (b == 0) return images;
    }
  }
  // Whether the stage says itself what the sums are: rows, columns perhaps, and channels of a single image.
  bool IsInForm() const {
    const size_t rank = n_.windows.size() + 1;
    return n_.IsOneImage() && rank > 1 && n_.depth.size() == 1 && n_.channels.size() == 1 &&
           n_.image_load.operands().size() == rank && stage_.axes.size() == rank;
  }

  NestStage Sums(ir::Buffer image) {
    const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("c")};
    const std::vector<Var> r = {NewVar("r"), NewVar("s"), NewVar("i")};
    NestStage sums = NewStage({RowsOfResults(), n_.AxisExtent(n_.Window(1)), n_.Channels()}, at);
    sums.target = NewBuffer(stage_.target->name, stage_.target->type, sums.extents);
    sums.reduction = ExprKind::kAdd;
    const bool reads_whole = (is_image_in_place_ || has_whole_image_) && n_.margins == nullptr;
    std::vector<Expr> place;
    for (size_t i = 0; i < 2; ++i) {
      place.push_back(at[i] * Int(n_.Stride(i)) + r[i] * Int(n_.Dilation(i)));
      if (n_.Stride(i) == 1 && n_.Dilation(i) == 1) place[i] = at[i] + r[i];
      if (reads_whole && n_.Window(i) >= 0) place[i] = Plus(place[i], n_.First(n_.Window(i)));
      sums.ranges.push_back({r[i], 0, n_.RangeExtent(n_.Window(i))});
    }
    place.push_back(Plus(r[2], n_.margins == nullptr ? FirstOfDepth() : 0));
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
      NestStage other = NewStage({RowsOfResults(), n_.AxisExtent(n_.Window(1)), n_.Channels()}, at);
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
      const Var axis = stage.axes[n_.dimensions[n_.windows[i]].axis];
      if (i == 0 && IsStacked() && ir::UsesVar(value, axis)) return Expr();
      by[axis] = at[i];
    }
    std::vector<Var> channels;
    std::vector<int64_t> extents;
    for (const size_t a : n_.channels) {
      channels.push_back(stage.axes[a]);
      extents.push_back(stage.extents[a]);
    }
    if (channels.size() == 1) {
      by[channels[0]] = at[2];
    } else if (!channels.empty()) {
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
      return c_.Load(views_.View(buffer, extents), indices);
    }
    return Expr();
  }

  // What puts the results of all images in order.
  NestStage Results() {
    NestStage results = Last();
    results.reduction.reset();
    results.ranges.clear();
    results.element = Expr();
    ir::VarMap by;
    for (size_t a = 0; a < stage_.axes.size(); ++a) {
      results.axes[a] = NewVar("o");
      by[stage_.axes[a]] = results.axes[a];
    }
    std::vector<Expr> place;
    for (const int axis : result_.results_axes) {
      place.push_back(axis < 0 ? Int(0) : Expr(results.axes[axis]));
    }
    const Expr sum = c_.Load(result_.results, place);
    results.value = stage_.value ? Inline(ir::Substitute(stage_.value, by)) + sum : sum;
    return results;
  }

  const ConvolutionNest n_;
  const NestStage& stage_;
  const std::vector<const NestStage*>&before_, &after_;
  const TurnOptions& options_;
  ir::Context& c_;
  BufferViews views_;
  // The image's copy has all rows and columns, not those alone that windows reach.
  bool has_whole_image_ = false;
  bool is_image_in_place_ = false, copies_images_ = false, copies_filters_ = false;
  ir::Buffer all_images_, all_filters_;  // copies
  BufferParts images_;
  ir::Buffer image_, filters_;                        // as the sums read them
  int64_t rows_ = 0;                                  // from an image's first to the next one's
  std::vector<int64_t> filter_steps_, result_steps_;  // of groups, and of images
  TurnedConvolution result_;
};

}  // namespace

TurnedConvolution TurnConvolution(const NestStage& stage,
                                  const std::vector<const NestStage*>& before,
                                  const std::vector<const NestStage*>& after,
                                  const TurnOptions& options, ir::Context& c) {
  constexpr int64_t kMostImages = 256;
  const bool peels = options.with_sums && !options.stacks;
  std::optional<ConvolutionNest> nest = ConvolutionNest::Of(stage, before, peels);
  if (!nest) return {};
  const bool may_be =
      options.stacks ? !nest->IsOneImage() && !nest->HasGroups() : nest->Images() <= kMostImages;
  if (!may_be) return {};
  return Turner(*std::move(nest), before, after, options, c).Run();
}

}  // namespace polynao::poly
