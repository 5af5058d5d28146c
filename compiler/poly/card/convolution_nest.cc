#include "compiler/poly/card/convolution_nest.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;

Expr LoadOf(Expr factor) {
  while (factor.Is(ExprKind::kCast)) factor = factor.operand(0);
  return factor.Is(ExprKind::kLoad) ? factor : Expr();
}

}  // namespace

std::optional<ConvolutionNest> ConvolutionNest::Of(const NestStage& stage,
                                                   const std::vector<const NestStage*>& before,
                                                   bool peels) {
  if (stage.reduction != ExprKind::kAdd || !stage.element.Is(ExprKind::kMul)) return std::nullopt;
  for (const size_t weights : {1, 0}) {
    ConvolutionNest nest;
    nest.stage = &stage;
    if (peels && nest.Read(weights, &before)) return nest;
    if (nest.Read(weights, nullptr)) return nest;
  }
  return std::nullopt;
}

// `peeled`: the stages among which the image's margins are; none: they stay.
bool ConvolutionNest::Read(size_t weights_factor, const std::vector<const NestStage*>* peeled) {
  image = stage->element.operand(1 - weights_factor);
  weights = stage->element.operand(weights_factor);
  image_load = LoadOf(image), weights_load = LoadOf(weights);
  if (!image_load || !weights_load || image_load.type() != weights_load.type()) return false;
  image_read = image_load;
  margins = nullptr;
  if (peeled != nullptr && !PeelMargins(*peeled)) return false;
  channels.clear();
  is_shared.assign(stage->axes.size(), false);
  for (size_t a = 0; a < stage->axes.size(); ++a) {
    const bool in_image = ir::UsesVar(image_load, stage->axes[a]);
    const bool in_weights = ir::UsesVar(weights_load, stage->axes[a]);
    if (!in_image && !in_weights) return false;
    if (!in_image) channels.push_back(a);
    is_shared[a] = in_image && in_weights;
  }
  if (!ReadImage() || (channels.empty() && !HasOneChannel())) return false;
  return Choose() && (peeled == nullptr || ReadMargins());
}

// The copy with margins that the sums read, and the image that it reads: select(1 <= y && y < n, X[i, y - 1], 0).
bool ConvolutionNest::PeelMargins(const std::vector<const NestStage*>& before) {
  const auto made = std::find_if(before.begin(), before.end(), [&](const NestStage* other) {
    return other->target == ir::Buffer(image_load.buffer());
  });
  if (made == before.end() || !(*made)->value.Is(ExprKind::kSelect)) return false;
  margins = *made;
  const Expr load = margins->value.operand(1);
  if (!load.Is(ExprKind::kLoad) || !margins->value.operand(2).IsConst()) return false;
  ir::VarMap by;
  for (size_t d = 0; d < margins->axes.size(); ++d) {
    if (margins->axes[d].type() != stage->axes[0].type()) return false;
    by[margins->axes[d]] = image_load.operand(d) - margins->low[d];
  }
  image_load = ir::Substitute(load, by);
  return true;
}
// Whether margins depend on rows and columns alone.
bool ConvolutionNest::ReadMargins() {
  const Expr condition = margins->value.operand(0), load = margins->value.operand(1);
  std::vector<bool> is_window(margins->axes.size());
  margin_axes.clear(), margin_shifts.clear();
  for (const int d : windows) {
    const arith::LinearForm form = arith::Decompose(load.operand(d));
    if (form.terms().size() != 1 || form.terms()[0].coefficient != 1) return false;
    const auto axis = std::find(margins->axes.begin(), margins->axes.end(), form.terms()[0].atom);
    if (axis == margins->axes.end()) return false;
    is_window[axis - margins->axes.begin()] = true;
    margin_axes.push_back(*axis);
    margin_shifts.push_back(First(d) - form.constant());
  }
  for (size_t d = 0; d < is_window.size(); ++d) {
    if (!is_window[d] && ir::UsesVar(condition, margins->axes[d])) return false;
  }
  // Of a small part of an image as much is copied as is read.
  for (size_t i = 0; i < windows.size(); ++i) {
    if (ImageExtent(windows[i]) > 2 * Reach(i)) return false;
  }
  return true;
}
int64_t ConvolutionNest::ImageExtent(int d) const {
  const Expr extent = ir::Buffer(image_load.buffer())->extents[d];
  return extent.Is(ExprKind::kIntImm) ? extent.int_value() : std::numeric_limits<int64_t>::max();
}

bool ConvolutionNest::ReadImage() {
  dimensions.clear();
  std::vector<bool> axis_seen(stage->axes.size()), range_seen(stage->ranges.size());
  for (Expr index : image_load.operands()) {
    const arith::LinearForm form = arith::Decompose(index);
    Dimension dimension = {.constant = form.constant()};
    for (const arith::LinearForm::Term& term : form.terms()) {
      if (term.coefficient < 1) return false;
      const auto axis = std::find(stage->axes.begin(), stage->axes.end(), term.atom);
      if (axis != stage->axes.end()) {
        if (dimension.axis >= 0) return false;
        dimension.axis = static_cast<int>(axis - stage->axes.begin());
        dimension.stride = term.coefficient;
        if (axis_seen[dimension.axis]) return false;
        axis_seen[dimension.axis] = true;
        continue;
      }
      const auto range =
          std::find_if(stage->ranges.begin(), stage->ranges.end(),
                       [&](const NestStage::ReduceRange& r) { return r.var == term.atom; });
      if (range == stage->ranges.end() || dimension.range >= 0) return false;
      dimension.range = static_cast<int>(range - stage->ranges.begin());
      dimension.dilation = term.coefficient;
      if (range_seen[dimension.range]) return false;
      range_seen[dimension.range] = true;
    }
    dimensions.push_back(dimension);
  }
  return std::all_of(range_seen.begin(), range_seen.end(), [](bool seen) { return seen; });
}

// Windows of an image without an axis of channels, which is none where there is one filter. Products of rows and
// vectors, and channels that each have a filter, are something else.
bool ConvolutionNest::HasOneChannel() const {
  const auto is_window = [](const Dimension& d) { return d.axis >= 0 && d.range >= 0; };
  return !HasGroups() && std::count_if(dimensions.begin(), dimensions.end(), is_window) >= 2;
}

// Which dimensions of the image are its rows and columns, its depth, and images of a batch: groups of channels, and
// windows' third dimension, are images whose depth is what a window takes in.
bool ConvolutionNest::Choose() {
  windows.clear(), batch.clear(), depth.clear();
  std::vector<int> plain;
  for (int d = 0; d < static_cast<int>(dimensions.size()); ++d) {
    const Dimension& dimension = dimensions[d];
    const bool is_of_both = dimension.axis >= 0 && is_shared[dimension.axis];
    if (dimension.axis >= 0 && dimension.range >= 0 && !is_of_both) {
      windows.push_back(d);
      continue;
    }
    if (is_of_both) {
      batch.push_back(d);
    } else if (dimension.axis >= 0) {
      plain.push_back(d);
    }
    if (dimension.range >= 0) depth.push_back(d);
  }
  // Of two alike the inner one is larger.
  const auto is_larger = [&](int a, int b) {
    return std::pair(AxisExtent(a), a) > std::pair(AxisExtent(b), b);
  };
  std::sort(windows.begin(), windows.end(), is_larger);
  for (; windows.size() > 2; windows.pop_back()) {
    batch.push_back(windows.back());
    depth.push_back(windows.back());
  }
  // In the order in which they stand in memory.
  std::sort(depth.begin(), depth.end());
  std::sort(plain.begin(), plain.end(), is_larger);
  for (const int d : plain) (windows.size() < 2 ? windows : batch).push_back(d);
  std::sort(windows.begin(), windows.end());
  std::sort(batch.begin(), batch.end());
  return Images() >= 1;
}

int64_t ConvolutionNest::Images() const {
  int64_t count = 1;
  for (const int d : batch) count *= AxisExtent(d);
  return count;
}

int64_t ConvolutionNest::First(int d) const {
  const Dimension& dimension = dimensions[d];
  if (dimension.range < 0) return dimension.constant;
  return dimension.constant + dimension.dilation * stage->ranges[dimension.range].min;
}

bool ConvolutionNest::ReadsMostOfImage() const {
  int64_t all = 1, read = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (ImageExtent(windows[i]) > 2 * Reach(i)) return false;
    all *= ImageExtent(windows[i]);
    read *= Reach(i);
  }
  return all <= read + read / 4;
}

int64_t ConvolutionNest::Channels() const {
  int64_t count = 1;
  for (const size_t a : channels) count *= stage->extents[a];
  return count;
}

int64_t ConvolutionNest::Depth() const {
  int64_t count = 1;
  for (const int d : depth) count *= RangeExtent(d);
  return count;
}

bool ConvolutionNest::HasGroups() const {
  return std::count(is_shared.begin(), is_shared.end(), true) > 0;
}

}  // namespace polynao::poly
