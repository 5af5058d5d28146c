#include "compiler/poly/card/turned_convolution.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Type;
using ir::Var;

constexpr int64_t kMostImages = 256;

Expr LoadOf(Expr factor) {
  while (factor.Is(ExprKind::kCast)) factor = factor.operand(0);
  return factor.Is(ExprKind::kLoad) ? factor : Expr();
}

class Turner {
 public:
  Turner(const NestStage& stage, const std::vector<const NestStage*>& before, ir::Context& c)
      : stage_(stage), before_(before), c_(c) {}

  TurnedConvolution Run() {
    if (stage_.reduction != ExprKind::kAdd || !stage_.element.Is(ExprKind::kMul)) return {};
    for (const size_t weights : {1, 0}) {
      if (Read(weights)) return Stages();
    }
    return {};
  }

 private:
  // An index of the image: stride * an axis + dilation * a reduced variable + a constant.
  struct Dimension {
    int axis = -1, range = -1;
    int64_t stride = 0, dilation = 0, constant = 0;
  };

  ir::Type type() const { return stage_.axes[0].type(); }

  bool Read(size_t weights) {
    image_ = stage_.element.operand(1 - weights), weights_ = stage_.element.operand(weights);
    image_load_ = LoadOf(image_), weights_load_ = LoadOf(weights_);
    if (!image_load_ || !weights_load_ || image_load_.type() != weights_load_.type()) return false;
    channels_.clear();
    is_shared_.assign(stage_.axes.size(), false);
    for (size_t a = 0; a < stage_.axes.size(); ++a) {
      const bool in_image = ir::UsesVar(image_load_, stage_.axes[a]);
      const bool in_weights = ir::UsesVar(weights_load_, stage_.axes[a]);
      if (!in_image && !in_weights) return false;
      if (!in_image) channels_.push_back(a);
      is_shared_[a] = in_image && in_weights;
    }
    return !channels_.empty() && ReadImage() && Choose();
  }

  bool ReadImage() {
    dimensions_.clear();
    std::vector<bool> axis_seen(stage_.axes.size()), range_seen(stage_.ranges.size());
    for (Expr index : image_load_.operands()) {
      const arith::LinearForm form = arith::Decompose(index);
      Dimension dimension = {.constant = form.constant()};
      for (const arith::LinearForm::Term& term : form.terms()) {
        if (term.coefficient < 1) return false;
        const auto axis = std::find(stage_.axes.begin(), stage_.axes.end(), term.atom);
        if (axis != stage_.axes.end()) {
          if (dimension.axis >= 0) return false;
          dimension.axis = static_cast<int>(axis - stage_.axes.begin());
          dimension.stride = term.coefficient;
          if (axis_seen[dimension.axis]) return false;
          axis_seen[dimension.axis] = true;
          continue;
        }
        const auto range =
            std::find_if(stage_.ranges.begin(), stage_.ranges.end(),
                         [&](const NestStage::ReduceRange& r) { return r.var == term.atom; });
        if (range == stage_.ranges.end() || dimension.range >= 0) return false;
        dimension.range = static_cast<int>(range - stage_.ranges.begin());
        dimension.dilation = term.coefficient;
        if (range_seen[dimension.range]) return false;
        range_seen[dimension.range] = true;
      }
      dimensions_.push_back(dimension);
    }
    return std::all_of(range_seen.begin(), range_seen.end(), [](bool seen) { return seen; });
  }

  // Which dimensions of the image are its rows and columns, its depth, and images of a batch: groups of channels, and
  // windows' third dimension, are images whose depth is what a window takes in.
  bool Choose() {
    windows_.clear(), batch_.clear(), depth_.clear();
    std::vector<int> plain;
    for (int d = 0; d < static_cast<int>(dimensions_.size()); ++d) {
      const Dimension& dimension = dimensions_[d];
      const bool is_shared = dimension.axis >= 0 && is_shared_[dimension.axis];
      if (dimension.axis >= 0 && dimension.range >= 0 && !is_shared) {
        windows_.push_back(d);
        continue;
      }
      if (is_shared) {
        batch_.push_back(d);
      } else if (dimension.axis >= 0) {
        plain.push_back(d);
      }
      if (dimension.range >= 0) depth_.push_back(d);
    }
    // Of two alike the inner one is larger.
    const auto is_larger = [&](int a, int b) {
      return std::pair(AxisExtent(a), a) > std::pair(AxisExtent(b), b);
    };
    std::sort(windows_.begin(), windows_.end(), is_larger);
    for (; windows_.size() > 2; windows_.pop_back()) {
      batch_.push_back(windows_.back());
      depth_.push_back(windows_.back());
    }
    // In the order in which they stand in memory.
    std::sort(depth_.begin(), depth_.end());
    std::sort(plain.begin(), plain.end(), [&](int a, int b) {
      return std::pair(-AxisExtent(a), a) < std::pair(-AxisExtent(b), b);
    });
    for (const int d : plain) (windows_.size() < 2 ? windows_ : batch_).push_back(d);
    int64_t images = 1;
    for (const int d : batch_) images *= AxisExtent(d);
    std::sort(windows_.begin(), windows_.end());
    return images >= 1 && images <= kMostImages;
  }

  Var NewVar(const char* name) { return c_.NewVar(name, type()); }
  Expr Int(int64_t i) { return c_.Int(type(), i); }
  int64_t AxisExtent(int d) const { return d < 0 ? 1 : stage_.extents[dimensions_[d].axis]; }
  int64_t RangeExtent(int d) const {
    return d < 0 || dimensions_[d].range < 0 ? 1 : stage_.ranges[dimensions_[d].range].extent;
  }
  int Window(size_t i) const { return i < windows_.size() ? windows_[i] : -1; }
  int64_t Stride(size_t i) const { return Window(i) < 0 ? 1 : dimensions_[Window(i)].stride; }
  int64_t Dilation(size_t i) const {
    return RangeExtent(Window(i)) == 1 ? 1 : dimensions_[Window(i)].dilation;
  }
  // Rows or columns of an image that its windows reach.
  int64_t Reach(size_t i) const {
    return Stride(i) * (AxisExtent(Window(i)) - 1) + Dilation(i) * (RangeExtent(Window(i)) - 1) + 1;
  }

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
  NestStage NewStage(const std::string& name, Type element, const std::vector<int64_t>& extents,
                     std::vector<Var> axes) {
    return {.name = stage_.name,
            .place = stage_.place,
            .target = NewBuffer(name, element, extents),
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
  // Products of the extents of channels, and of the image's depth.
  int64_t Channels() const {
    int64_t count = 1;
    for (const size_t a : channels_) count *= stage_.extents[a];
    return count;
  }
  int64_t Depth() const {
    int64_t count = 1;
    for (const int d : depth_) count *= RangeExtent(d);
    return count;
  }

  // Where the first window begins along dimension d of the image.
  int64_t First(int d) const {
    const Dimension& dimension = dimensions_[d];
    if (dimension.range < 0) return dimension.constant;
    return dimension.constant + dimension.dilation * stage_.ranges[dimension.range].min;
  }

  // The image's elements, all dimensions of its depth as one. All images take turns in one buffer.
  NestStage Image(const std::vector<int64_t>& batch) {
    std::vector<Var> at = {NewVar("y"), NewVar("x")};
    std::vector<int64_t> extents = {Reach(0), Reach(1)};
    for (const int d : depth_) {
      at.push_back(NewVar("i"));
      extents.push_back(RangeExtent(d));
    }
    NestStage copy = NewStage("", image_load_.type(), extents, at);
    if (!image_view_) image_view_ = View(image_buffer_, extents);
    copy.target = image_view_;
    std::vector<Expr> indices(dimensions_.size());
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      const Dimension& dimension = dimensions_[d];
      int64_t constant = First(static_cast<int>(d));
      for (size_t b = 0; b < batch_.size(); ++b) {
        if (batch_[b] == static_cast<int>(d)) constant += dimension.stride * batch[b];
      }
      indices[d] = Int(constant);
      const auto add = [&](Expr e) { indices[d] = constant == 0 ? e : e + Int(constant); };
      for (size_t i = 0; i < 2; ++i) {
        if (Window(i) == static_cast<int>(d)) add(at[i]);
      }
      for (size_t i = 0; i < depth_.size(); ++i) {
        if (depth_[i] != static_cast<int>(d)) continue;
        add(dimension.dilation == 1 ? Expr(at[2 + i]) : at[2 + i] * Int(dimension.dilation));
      }
    }
    copy.value = Inline(c_.Load(ir::Buffer(image_load_.buffer()), indices));
    return copy;
  }

  // The filters' elements, all axes of channels as one.
  NestStage Filters(const std::vector<int64_t>& batch) {
    std::vector<Var> at;
    std::vector<int64_t> extents;
    ir::VarMap by;
    for (const size_t a : channels_) {
      at.push_back(NewVar("c"));
      extents.push_back(stage_.extents[a]);
      by[stage_.axes[a]] = at.back();
    }
    for (size_t b = 0; b < batch_.size(); ++b) {
      by[stage_.axes[dimensions_[batch_[b]].axis]] = Int(batch[b]);
    }
    std::vector<int> places = {Window(0), Window(1)};
    places.insert(places.end(), depth_.begin(), depth_.end());
    for (const int d : places) {
      at.push_back(NewVar("r"));
      extents.push_back(RangeExtent(d));
      if (d < 0 || dimensions_[d].range < 0) continue;
      const NestStage::ReduceRange& range = stage_.ranges[dimensions_[d].range];
      by[range.var] = range.min == 0 ? Expr(at.back()) : at.back() + Int(range.min);
    }
    NestStage copy = NewStage("", weights_load_.type(), extents, at);
    if (!filters_view_) filters_view_ = View(filters_, extents);
    copy.target = filters_view_;
    copy.value = Inline(ir::Substitute(weights_load_, by));
    return copy;
  }

  bool IsOneImage() const {
    return std::all_of(batch_.begin(), batch_.end(), [&](int d) { return AxisExtent(d) == 1; });
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
    const ir::Buffer image(image_load_.buffer());
    if (!IsOneImage() || windows_.size() < 2 || depth_.size() != 1 || IsComputed(image)) {
      return std::nullopt;
    }
    const Dimension& depth = dimensions_[depth_[0]];
    if (depth.axis >= 0 || depth.dilation != 1) return std::nullopt;
    return InOrder(image, {Window(0), Window(1), depth_[0]});
  }
  // The filters where they stand, if they are not of groups, and in the order of the sums' loops.
  std::optional<ir::Buffer> FiltersInPlace() {
    const ir::Buffer filters(weights_load_.buffer());
    const bool has_groups = std::count(is_shared_.begin(), is_shared_.end(), true) > 0;
    if (has_groups || channels_.size() != 1 || depth_.size() != 1 || IsComputed(filters)) {
      return std::nullopt;
    }
    std::vector<Expr> order = {stage_.axes[channels_[0]]};
    for (const int d : {Window(0), Window(1), depth_[0]}) {
      if (d < 0 || dimensions_[d].range < 0) return std::nullopt;
      const NestStage::ReduceRange& range = stage_.ranges[dimensions_[d].range];
      if (range.min != 0) return std::nullopt;
      order.push_back(range.var);
    }
    const absl::Span<const Expr> indices = weights_load_.operands();
    if (!std::equal(indices.begin(), indices.end(), order.begin(), order.end())) {
      return std::nullopt;
    }
    return filters;
  }
  // The results where they stand, if they are those of the only image and the sums begin with zeros.
  std::optional<ir::Buffer> ResultsInPlace() {
    if (!IsOneImage() || windows_.size() < 2 || stage_.value) return std::nullopt;
    std::vector<int> order;
    for (size_t i = 0; i < 2; ++i) order.push_back(dimensions_[Window(i)].axis);
    for (const size_t a : channels_) order.push_back(static_cast<int>(a));
    for (size_t a = 0; a < stage_.axes.size(); ++a) {
      const bool is_whole =
          stage_.low[a] == 0 && stage_.target->extents[a].IsInt(stage_.extents[a]);
      if (!is_whole) return std::nullopt;
    }
    const std::optional<ir::Buffer> results = InOrder(stage_.target, order);
    if (!results || channels_.size() == 1) return results;
    return View(stage_.target, {AxisExtent(Window(0)), AxisExtent(Window(1)), Channels()});
  }

  NestStage Sums() {
    const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("c")};
    const std::vector<Var> r = {NewVar("r"), NewVar("s"), NewVar("i")};
    NestStage sums = NewStage(stage_.target->name, stage_.target->type,
                              {AxisExtent(Window(0)), AxisExtent(Window(1)), Channels()}, at);
    if (results_in_place_) sums.target = *results_in_place_;
    sums.reduction = ExprKind::kAdd;
    std::vector<Expr> place;
    for (size_t i = 0; i < 2; ++i) {
      place.push_back(at[i] * Int(Stride(i)) + r[i] * Int(Dilation(i)));
      if (Stride(i) == 1 && Dilation(i) == 1) place[i] = at[i] + r[i];
      if (const int64_t first = image_in_place_ ? First(Window(i)) : 0; first != 0) {
        place[i] = place[i] + Int(first);
      }
      sums.ranges.push_back({r[i], 0, RangeExtent(Window(i))});
    }
    const int64_t first = image_in_place_ ? First(depth_[0]) : 0;
    place.push_back(first == 0 ? Expr(r[2]) : r[2] + Int(first));
    sums.ranges.push_back({r[2], 0, Depth()});
    sums.element =
        ir::Replace(image_, {{image_load_, c_.Load(image_buffer_, place)}}) *
        ir::Replace(weights_, {{weights_load_, c_.Load(filters_, {at[2], r[0], r[1], r[2]})}});
    return sums;
  }

  NestStage Results(const NestStage& sums, const std::vector<int64_t>& batch) {
    NestStage results = stage_;
    results.reduction.reset();
    results.ranges.clear();
    results.element = Expr();
    ir::VarMap by;
    for (size_t a = 0; a < stage_.axes.size(); ++a) {
      results.axes[a] = NewVar("o");
      by[stage_.axes[a]] = results.axes[a];
    }
    for (size_t b = 0; b < batch_.size(); ++b) {
      const int axis = dimensions_[batch_[b]].axis;
      results.low[axis] += batch[b];
      results.extents[axis] = 1;
      by[stage_.axes[axis]] = results.axes[axis] + Int(batch[b]);
    }
    std::vector<Expr> place;
    for (size_t i = 0; i < 2; ++i) {
      place.push_back(Window(i) < 0 ? Int(0) : Expr(results.axes[dimensions_[Window(i)].axis]));
    }
    std::vector<int64_t> extents = {AxisExtent(Window(0)), AxisExtent(Window(1))};
    for (const size_t a : channels_) {
      place.push_back(results.axes[a]);
      extents.push_back(stage_.extents[a]);
    }
    if (!sums_view_) sums_view_ = View(sums.target, extents);
    const Expr sum = c_.Load(sums_view_, place);
    results.value = stage_.value ? Inline(ir::Substitute(stage_.value, by)) + sum : sum;
    return results;
  }

  TurnedConvolution Stages() {
    image_buffer_ = NewBuffer(ir::Buffer(image_load_.buffer())->name, image_load_.type(),
                              {Reach(0), Reach(1), Depth()});
    filters_ = NewBuffer(ir::Buffer(weights_load_.buffer())->name, weights_load_.type(),
                         {Channels(), RangeExtent(Window(0)), RangeExtent(Window(1)), Depth()});
    // What stands as the sums want it is not copied.
    image_in_place_ = ImageInPlace();
    if (image_in_place_) image_buffer_ = *image_in_place_;
    const std::optional<ir::Buffer> filters_in_place = FiltersInPlace();
    if (filters_in_place) filters_ = *filters_in_place;
    results_in_place_ = ResultsInPlace();
    if (image_in_place_ && filters_in_place && results_in_place_) return {};
    const NestStage sums = Sums();
    const bool has_groups = std::count(is_shared_.begin(), is_shared_.end(), true) > 0;
    std::vector<int64_t> batch(batch_.size());
    while (true) {
      const bool needs_filters = has_groups || result_.stages.empty();
      if (needs_filters && !filters_in_place) result_.stages.push_back(Filters(batch));
      if (!image_in_place_) result_.stages.push_back(Image(batch));
      result_.stages.push_back(sums);
      if (!results_in_place_) result_.stages.push_back(Results(sums, batch));
      size_t b = batch.size();
      while (b > 0 && ++batch[b - 1] == AxisExtent(batch_[b - 1])) batch[--b] = 0;
      if (b == 0) return std::move(result_);
    }
  }

  const NestStage& stage_;
  const std::vector<const NestStage*>& before_;
  ir::Context& c_;
  Expr image_, weights_, image_load_, weights_load_;
  std::vector<size_t> channels_;  // axes of the results' channels
  std::vector<bool> is_shared_;   // axes of both factors
  // Of the copies and the sums, and other shapes of these in which stages store and read.
  ir::Buffer image_buffer_, filters_, image_view_, filters_view_, sums_view_;
  std::optional<ir::Buffer> image_in_place_, results_in_place_;
  std::vector<Dimension> dimensions_;
  std::vector<int> windows_, batch_, depth_;  // dimensions of the image
  TurnedConvolution result_;
};

}  // namespace

TurnedConvolution TurnConvolution(const NestStage& stage,
                                  const std::vector<const NestStage*>& before, ir::Context& c) {
  return Turner(stage, before, c).Run();
}

}  // namespace polynao::poly
