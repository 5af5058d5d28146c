#include "compiler/poly/card/turned_convolution.h"

#include <algorithm>
#include <limits>
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
#include "compiler/poly/card/stage_copies.h"

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
  Turner(const NestStage& stage, const std::vector<const NestStage*>& before,
         const std::vector<const NestStage*>& after, ir::Context& c)
      : stage_(stage), before_(before), after_(after), c_(c) {}

  TurnedConvolution Run(bool with_sums) {
    if (stage_.reduction != ExprKind::kAdd || !stage_.element.Is(ExprKind::kMul)) return {};
    with_sums_ = with_sums;
    for (const size_t weights : {1, 0}) {
      if ((with_sums && Read(weights, /*peels=*/true)) || Read(weights, /*peels=*/false)) {
        return Stages();
      }
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

  // `peels`: the image is what stands in its margins' copy, if there is one.
  bool Read(size_t weights, bool peels) {
    image_ = stage_.element.operand(1 - weights), weights_ = stage_.element.operand(weights);
    image_load_ = LoadOf(image_), weights_load_ = LoadOf(weights_);
    if (!image_load_ || !weights_load_ || image_load_.type() != weights_load_.type()) return false;
    image_read_ = image_load_;
    margins_ = nullptr;
    if (peels && !PeelMargins()) return false;
    channels_.clear();
    is_shared_.assign(stage_.axes.size(), false);
    for (size_t a = 0; a < stage_.axes.size(); ++a) {
      const bool in_image = ir::UsesVar(image_load_, stage_.axes[a]);
      const bool in_weights = ir::UsesVar(weights_load_, stage_.axes[a]);
      if (!in_image && !in_weights) return false;
      if (!in_image) channels_.push_back(a);
      is_shared_[a] = in_image && in_weights;
    }
    return !channels_.empty() && ReadImage() && Choose() && (!peels || ReadMargins());
  }

  // The copy with margins that the sums read, and the image that it reads: select(1 <= y && y < n, X[i, y - 1], 0).
  bool PeelMargins() {
    const auto made = std::find_if(before_.begin(), before_.end(), [&](const NestStage* stage) {
      return stage->target == ir::Buffer(image_load_.buffer());
    });
    if (made == before_.end() || !(*made)->value.Is(ExprKind::kSelect)) return false;
    margins_ = *made;
    const Expr load = margins_->value.operand(1);
    if (!load.Is(ExprKind::kLoad) || !margins_->value.operand(2).IsConst()) return false;
    ir::VarMap by;
    for (size_t d = 0; d < margins_->axes.size(); ++d) {
      if (margins_->axes[d].type() != type()) return false;
      by[margins_->axes[d]] = image_load_.operand(d) - margins_->low[d];
    }
    image_load_ = ir::Substitute(load, by);
    return true;
  }
  // Whether margins depend on rows and columns alone.
  bool ReadMargins() {
    const Expr condition = margins_->value.operand(0), load = margins_->value.operand(1);
    std::vector<bool> is_window(margins_->axes.size());
    margin_axes_.clear(), margin_shifts_.clear();
    for (const int d : windows_) {
      const arith::LinearForm form = arith::Decompose(load.operand(d));
      if (form.terms().size() != 1 || form.terms()[0].coefficient != 1) return false;
      const auto axis =
          std::find(margins_->axes.begin(), margins_->axes.end(), form.terms()[0].atom);
      if (axis == margins_->axes.end()) return false;
      is_window[axis - margins_->axes.begin()] = true;
      margin_axes_.push_back(*axis);
      margin_shifts_.push_back(First(d) - form.constant());
    }
    for (size_t d = 0; d < is_window.size(); ++d) {
      if (!is_window[d] && ir::UsesVar(condition, margins_->axes[d])) return false;
    }
    // Of a small part of an image as much is copied as is read.
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (ImageExtent(windows_[i]) > 2 * Reach(i)) return false;
    }
    return true;
  }
  int64_t ImageExtent(int d) const {
    const Expr extent = ir::Buffer(image_load_.buffer())->extents[d];
    return extent.Is(ExprKind::kIntImm) ? extent.int_value() : std::numeric_limits<int64_t>::max();
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
    std::vector<int64_t> extents = {Rows(0), Rows(1)};
    for (const int d : depth_) {
      at.push_back(NewVar("i"));
      extents.push_back(RangeExtent(d));
    }
    NestStage copy = NewStage(extents, at);
    std::vector<Expr> indices(dimensions_.size());
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      const Dimension& dimension = dimensions_[d];
      const bool is_whole = has_whole_image_ &&
                            (Window(0) == static_cast<int>(d) || Window(1) == static_cast<int>(d));
      int64_t constant = is_whole ? 0 : First(static_cast<int>(d));
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
    MergeAxes(copy, 2, depth_.size());
    SetTarget(copy, image_buffer_, image_view_);
    return copy;
  }
  // Rows or columns of the image's copy.
  int64_t Rows(size_t i) const {
    return has_whole_image_ && Window(i) >= 0 ? ImageExtent(Window(i)) : Reach(i);
  }
  // Whether windows read most rows and columns: a copy of all is one of whole pieces of memory.
  bool ReadsMostOfImage() const {
    int64_t all = 1, read = 1;
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (windows_[i] < 0) continue;
      if (ImageExtent(windows_[i]) > 2 * Reach(i)) return false;
      all *= ImageExtent(windows_[i]);
      read *= Reach(i);
    }
    return all <= read + read / 4;
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
    NestStage margins = NewStage({Reach(0), Reach(1), Depth()}, at);
    margins.name = margins_->name, margins.place = margins_->place;
    margins.target =
        NewBuffer(StrCat(image_buffer_->name, ".margins"), image_load_.type(), margins.extents);
    ir::VarMap by;
    std::vector<Expr> place = {Int(0), Int(0), at[2]};
    for (size_t i = 0; i < windows_.size(); ++i) {
      by[margin_axes_[i]] = Plus(at[i], margin_shifts_[i]);
      place[i] = Plus(at[i], First(windows_[i]));
    }
    if (image_in_place_) place[2] = Plus(at[2], First(depth_[0]));
    const Expr select = margins_->value;
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
    NestStage copy = NewStage(extents, at);
    copy.value = Inline(ir::Substitute(weights_load_, by));
    MergeAxes(copy, channels_.size() + 2, depth_.size());
    MergeAxes(copy, 0, channels_.size());
    SetTarget(copy, filters_, filters_view_);
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
  // Whether a stage stores all of its target.
  static bool IsWhole(const NestStage& stage) {
    for (size_t a = 0; a < stage.axes.size(); ++a) {
      const bool is_whole = stage.low[a] == 0 && stage.target->extents[a].IsInt(stage.extents[a]);
      if (!is_whole) return false;
    }
    return true;
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
    if (!IsOneImage() || windows_.size() < 2 || stage_.value) return std::nullopt;
    std::vector<int> order;
    for (size_t i = 0; i < 2; ++i) order.push_back(dimensions_[Window(i)].axis);
    for (const size_t a : channels_) order.push_back(static_cast<int>(a));
    if (!IsWhole(Last())) return std::nullopt;
    const std::optional<ir::Buffer> results = InOrder(Last().target, order);
    if (!results || channels_.size() == 1) return results;
    return View(Last().target, {AxisExtent(Window(0)), AxisExtent(Window(1)), Channels()});
  }

  NestStage Sums(ir::Buffer image) {
    const std::vector<Var> at = {NewVar("y"), NewVar("x"), NewVar("c")};
    const std::vector<Var> r = {NewVar("r"), NewVar("s"), NewVar("i")};
    NestStage sums = NewStage({AxisExtent(Window(0)), AxisExtent(Window(1)), Channels()}, at);
    sums.target = NewBuffer(stage_.target->name, stage_.target->type, sums.extents);
    sums.reduction = ExprKind::kAdd;
    const bool reads_whole = (image_in_place_ || has_whole_image_) && margins_ == nullptr;
    std::vector<Expr> place;
    for (size_t i = 0; i < 2; ++i) {
      place.push_back(at[i] * Int(Stride(i)) + r[i] * Int(Dilation(i)));
      if (Stride(i) == 1 && Dilation(i) == 1) place[i] = at[i] + r[i];
      if (reads_whole && Window(i) >= 0) place[i] = Plus(place[i], First(Window(i)));
      sums.ranges.push_back({r[i], 0, RangeExtent(Window(i))});
    }
    const bool is_in_place = image_in_place_ && margins_ == nullptr;
    place.push_back(Plus(r[2], is_in_place ? First(depth_[0]) : 0));
    sums.ranges.push_back({r[2], 0, Depth()});
    sums.element =
        ir::Replace(image_, {{image_read_, c_.Load(image, place)}}) *
        ir::Replace(weights_, {{weights_load_, c_.Load(filters_, {at[2], r[0], r[1], r[2]})}});
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
      NestStage other = NewStage({AxisExtent(Window(0)), AxisExtent(Window(1)), Channels()}, at);
      other.name = stage->name, other.place = stage->place;
      other.target = NewBuffer(stage->target->name, stage->target->type, other.extents);
      other.value = value;
      turned[stage->target] = other.target;
      group.push_back(std::move(other));
    }
    return true;
  }
  // The value of a stage after the sums at a row, a column and a channel. None if it reads sums of other places, or
  // others of each image.
  Expr TurnedValue(const NestStage& stage, const std::vector<Var>& at,
                   const absl::flat_hash_map<ir::Buffer, ir::Buffer>& turned) {
    absl::flat_hash_map<Expr, Expr> reads;
    bool is_own = true;
    ir::ForEachExpr(stage.value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad)) return;
      const auto it = turned.find(ir::Buffer(e.buffer()));
      if (it == turned.end()) {
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
    for (const int d : batch_) {
      const Var axis = stage.axes[dimensions_[d].axis];
      if (AxisExtent(d) > 1 && ir::UsesVar(value, axis)) return Expr();
      by[axis] = Int(0);
    }
    for (size_t i = 0; i < windows_.size(); ++i)
      by[stage.axes[dimensions_[windows_[i]].axis]] = at[i];
    std::vector<Var> channels;
    std::vector<int64_t> extents;
    for (const size_t a : channels_) {
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
    const size_t count = channels_.size();
    for (size_t first = 0; count > 1 && first + count <= load.operands().size(); ++first) {
      bool are_channels = true;
      for (size_t k = 0; k < count; ++k) {
        are_channels = are_channels && load.operand(first + k) == stage.axes[channels_[k]] &&
                       buffer->extents[first + k].IsInt(stage.extents[channels_[k]]);
      }
      if (!are_channels) continue;
      std::vector<int64_t> extents;
      std::vector<Expr> indices;
      for (size_t d = 0; d < load.operands().size(); ++d) {
        if (d > first && d < first + count) continue;
        if (!buffer->extents[d].Is(ExprKind::kIntImm)) return Expr();
        extents.push_back(d == first ? Channels() : buffer->extents[d].int_value());
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
    has_whole_image_ = margins_ != nullptr || ReadsMostOfImage();
    image_buffer_ = NewBuffer(ir::Buffer(image_load_.buffer())->name, image_load_.type(),
                              {Rows(0), Rows(1), Depth()});
    filters_ = NewBuffer(ir::Buffer(weights_load_.buffer())->name, weights_load_.type(),
                         {Channels(), RangeExtent(Window(0)), RangeExtent(Window(1)), Depth()});
    // What stands as the sums want it is not copied.
    image_in_place_ = ImageInPlace();
    if (image_in_place_) image_buffer_ = *image_in_place_;
    std::optional<ir::Buffer> filters_in_place = FiltersInPlace();
    if (filters_in_place) filters_ = *filters_in_place;
    std::vector<int64_t> batch(batch_.size());
    const bool has_groups = std::count(is_shared_.begin(), is_shared_.end(), true) > 0;
    const bool has_whole = has_whole_image_ && IsOneImage() && !image_in_place_;
    const bool is_image_there = has_whole && StandsThere(Image(batch), image_buffer_);
    if (!has_groups && !filters_in_place && StandsThere(Filters(batch), filters_)) {
      filters_in_place = filters_;
    }
    std::vector<NestStage> sums;
    if (margins_ != nullptr) sums.push_back(Margins());
    sums.push_back(Sums(margins_ == nullptr ? image_buffer_ : sums[0].target));
    const size_t own = sums.size();
    result_.has_after = with_sums_ && AddAfter(sums);
    if (!result_.has_after) sums.resize(own);
    const std::optional<ir::Buffer> results_in_place = ResultsInPlace();
    if (results_in_place) sums.back().target = *results_in_place;
    const bool has_image = image_in_place_ || is_image_there;
    const bool is_in_place = has_image && filters_in_place && results_in_place;
    if (is_in_place && sums.size() == 1) return {};
    while (true) {
      const bool needs_filters = has_groups || result_.groups.empty();
      if (needs_filters && !filters_in_place) result_.groups.push_back({Filters(batch)});
      if (!has_image) result_.groups.push_back({Image(batch)});
      result_.groups.push_back(sums);
      if (!results_in_place) result_.groups.push_back({Results(sums.back(), batch)});
      size_t b = batch.size();
      while (b > 0 && ++batch[b - 1] == AxisExtent(batch_[b - 1])) batch[--b] = 0;
      if (b == 0) return std::move(result_);
    }
  }

  const NestStage& stage_;
  const std::vector<const NestStage*>&before_, &after_;
  ir::Context& c_;
  bool with_sums_ = false;
  Expr image_, weights_, image_load_, weights_load_;
  Expr image_read_;  // what the sums read: image_load_, or of its copy with margins
  const NestStage* margins_ = nullptr;
  // Of windows_, the axes of the copy with margins, and the place along them where an image's first row or column is.
  std::vector<Var> margin_axes_;
  std::vector<int64_t> margin_shifts_;
  bool has_whole_image_ =
      false;  // the image's copy has all rows and columns, not those alone that windows reach
  std::vector<size_t> channels_;  // axes of the results' channels
  std::vector<bool> is_shared_;   // axes of both factors
  // Of the copies and the sums, and other shapes of these in which stages store and read.
  ir::Buffer image_buffer_, filters_, image_view_, filters_view_, sums_view_;
  std::optional<ir::Buffer> image_in_place_;
  std::vector<Dimension> dimensions_;
  std::vector<int> windows_, batch_, depth_;  // dimensions of the image
  TurnedConvolution result_;
};

}  // namespace

TurnedConvolution TurnConvolution(const NestStage& stage,
                                  const std::vector<const NestStage*>& before,
                                  const std::vector<const NestStage*>& after, bool with_sums,
                                  ir::Context& c) {
  return Turner(stage, before, after, c).Run(with_sums);
}

}  // namespace polynao::poly
