#include "compiler/poly/card/plane_products.h"

#include <algorithm>

#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/convolution_nest.h"

namespace polynao::poly {

using ir::Expr;
using ir::Var;

std::optional<PlaneProducts> ProductsOfPlanes(const NestStage& stage,
                                              const std::vector<const NestStage*>& before,
                                              ir::Context& c) {
  const std::optional<ConvolutionNest> nest = ConvolutionNest::Of(stage, before, /*peels=*/false);
  if (!nest) return std::nullopt;
  // A dimension of windows that is a batch for want of a third one.
  const auto is_third = [&](int d) {
    const ConvolutionNest::Dimension& dimension = nest->dimensions[d];
    return dimension.range >= 0 && !nest->is_shared[dimension.axis];
  };
  const auto third = std::find_if(nest->batch.begin(), nest->batch.end(), is_third);
  if (third == nest->batch.end()) return std::nullopt;
  const ConvolutionNest::Dimension& dimension = nest->dimensions[*third];
  const NestStage::ReduceRange range = stage.ranges[dimension.range];

  PlaneProducts planes = {.products = stage,
                          .plane = static_cast<size_t>(dimension.axis),
                          .place = nest->channels.empty() ? stage.axes.size() : nest->channels[0],
                          .places = range.extent,
                          .stride = dimension.stride,
                          .dilation = dimension.dilation};
  NestStage& products = planes.products;
  products.value = Expr();
  ir::VarMap by;
  for (Var& axis : products.axes) {
    const Var other = c.NewVar(axis.name(), axis.type());
    by[axis] = other;
    axis = other;
  }
  products.ranges.erase(products.ranges.begin() + dimension.range);
  const Var place = c.NewVar(range.var.name(), range.var.type());
  by[range.var] = range.min == 0 ? Expr(place) : place + c.Int(place.type(), range.min);
  const Var plane = products.axes[planes.plane];
  products.extents[planes.plane] = dimension.stride * (nest->AxisExtent(*third) - 1) +
                                   dimension.dilation * (range.extent - 1) + 1;
  const int64_t first = nest->First(*third);
  std::vector<Expr> indices;
  const absl::Span<const Expr> old = nest->image_load.operands();
  for (int d = 0; d < static_cast<int>(old.size()); ++d) {
    const Expr at = first == 0 ? Expr(plane) : plane + c.Int(plane.type(), first);
    indices.push_back(d == *third ? at : ir::Substitute(old[d], by));
  }
  const Expr load = c.Load(ir::Buffer(nest->image_load.buffer()), indices);
  const Expr image = ir::Replace(nest->image, {{nest->image_load, load}});
  products.element = image * ir::Substitute(nest->weights, by);

  const auto at = static_cast<ptrdiff_t>(planes.place);
  products.axes.insert(products.axes.begin() + at, place);
  products.extents.insert(products.extents.begin() + at, range.extent);
  if (planes.plane >= planes.place) ++planes.plane;
  products.low.assign(products.axes.size(), 0);
  std::vector<Expr> shape;
  for (const int64_t extent : products.extents) shape.push_back(c.Int(place.type(), extent));
  products.target = c.NewBuffer(StrCat(stage.target->name, ".planes"), stage.target->type, shape);
  return planes;
}

NestStage SumsOfPlanes(const NestStage& stage, const PlaneProducts& planes, ir::Buffer results,
                       const std::vector<int>& axes, ir::Context& c) {
  NestStage sums = stage;
  const ir::Type type = stage.axes[0].type();
  const Var place = c.NewVar("q", type);
  const auto times = [&](Expr e, int64_t number) {
    return number == 1 ? e : e * c.Int(type, number);
  };
  std::vector<Expr> at;
  for (const int a : axes) {
    if (a < 0) {
      at.push_back(c.Int(type, 0));
      continue;
    }
    const auto axis = static_cast<size_t>(a);
    if (axis == planes.place) {
      at.push_back(place);
      continue;
    }
    const Expr own = stage.axes[axis > planes.place ? axis - 1 : axis];
    at.push_back(axis == planes.plane ? times(own, planes.stride) + times(place, planes.dilation)
                                      : own);
  }
  sums.ranges = {{place, 0, planes.places}};
  sums.element = c.Load(results, at);
  return sums;
}

}  // namespace polynao::poly
