#include "kernels/topi/deformable.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"
#include "kernels/topi/spatial.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Tensor;

struct Deformable : Spatial {
  int64_t deformable_groups = 1;
  te::Shape offset_shape;
};

absl::StatusOr<Deformable> Parse(const Operator& row, const OperatorCase& c) {
  // Its shapes are data, offset, weight.
  OperatorCase forward = c;
  forward.operands = {c.operands[1]};
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(row, forward, SpatialForm()));
  Deformable k{std::move(spatial), 1, {}};
  ASSIGN_OR_RETURN(k.deformable_groups, NumberFrom(row, c, "deformable_groups", 1));
  if (k.ci % k.deformable_groups != 0) {
    return WrongShape(c, "expected deformable_groups that divide ", k.ci, " channels, found ",
                      k.deformable_groups);
  }
  k.offset_shape = {k.n, k.deformable_groups * k.axes[0].kernel * k.axes[1].kernel * 2,
                    k.axes[0].out, k.axes[1].out};
  if (k.offset_shape != c.operands[0]) {
    return WrongShape(c, "expected offsets of ", ShapeText(k.offset_shape), ", found ",
                      ShapeText(c.operands[0]));
  }
  return k;
}

// As in TOPI: the samples, then their convolution.
absl::StatusOr<ir::Function> Build(const Deformable& k, const Target& target) {
  te::Graph g(k.name);
  const Tensor data = g.Placeholder("data", k.data_shape, k.in);
  const Tensor offset = g.Placeholder("offset", k.offset_shape, k.in);
  const Tensor weight = g.Placeholder("weight", k.weight_shape, k.in);
  const SpatialAxis &h = k.axes[0], &w = k.axes[1];
  const auto call = [](const char* function, Expr x) {
    return x.context().Call(x.type(), function, {x});
  };
  const auto i32 = [](Expr x) { return x.context().Cast(ir::Type::kI32, x); };
  const auto f32 = [](Expr x) { return x.context().Cast(ir::Type::kF32, x); };
  const Tensor sampled = g.Compute(
      "data_deform", {k.n, k.ci, h.kernel, w.kernel, h.out, w.out},
      [&](Expr n, Expr c, Expr kh, Expr kw, Expr y, Expr x) {
        const Expr first =
            c / (k.ci / k.deformable_groups) * (h.kernel * w.kernel * 2) + (kh * w.kernel + kw) * 2;
        const Expr at_y = f32(y * h.stride - h.before + kh * h.dilation) + offset(n, first, y, x);
        const Expr at_x =
            f32(x * w.stride - w.before + kw * w.dilation) + offset(n, first + 1, y, x);
        const Expr y0 = i32(call("floor", at_y)), x0 = i32(call("floor", at_x));
        const Expr y1 = ir::Min(y0 + 1, ir::ConstantLike(y0, h.in - 1));
        const Expr x1 = ir::Min(x0 + 1, ir::ConstantLike(x0, w.in - 1));
        const Expr dy = at_y - f32(y0), dx = at_x - f32(x0);
        const Expr value = data(n, c, y0, x0) * (1.0 - dy) * (1.0 - dx) +
                           data(n, c, y0, x1) * (1.0 - dy) * dx +
                           data(n, c, y1, x0) * dy * (1.0 - dx) + data(n, c, y1, x1) * dy * dx;
        const Expr inside =
            ir::And(ir::And(at_y >= 0.0, at_x >= 0.0),
                    ir::And(at_y < static_cast<double>(h.in), at_x < static_cast<double>(w.in)));
        return te::Select(inside, value, 0);
      },
      {"n", "c", "kh", "kw", "y", "x"});
  const te::ReduceAxis rc = g.ReduceAxisOf("rc", k.ci);
  const std::vector<te::ReduceAxis> r = KernelAxes(g, k);
  const Tensor output =
      g.Compute("output", k.out_shape,
                [&](Expr n, Expr f, Expr y, Expr x) {
                  return te::ReduceSum(sampled(n, rc, r[0], r[1], y, x) * weight(f, rc, r[0], r[1]),
                                       rc, r[0], r[1]);
                },
                {"n", "f", "y", "x"});
  te::Schedule s(output);
  if (IsGpu(target.name)) {
    BindElements(s, sampled);
    BindElements(s, output);
  }
  if (!IsProcessor(target.name)) return te::Lower(s);
  ParallelElementwise(s, sampled, target);
  TileReduction(s, output, {.row_axis = 3, .vector = DivisorUpTo(w.out, 64)});
  return te::Lower(s);
}

}  // namespace

std::vector<Operator> TopiDeformableOperators() {
  Operator row;
  row.name = "deformable_conv2d";
  row.doc = "sums of windows times filters, whose places are moved by offsets, NCHW";
  row.shapes = {"data (NCHW)", "offset (NCHW)", "weight (OIHW)"};
  row.attributes = SpatialAttributes(SpatialForm());
  row.attributes.push_back(
      {"deformable_groups", "1", "runs of channels with offsets of their own"});
  row.attributes.push_back(TailAttribute({"none"}));
  return {MakeRow<Deformable>(
      std::move(row),
      {.parse = Parse,
       .tensors =
           [](const Deformable& k) {
             return std::vector<TensorSpec>{{"data", k.in, k.data_shape},
                                            {"offset", k.in, k.offset_shape},
                                            {"weight", k.in, k.weight_shape},
                                            {"output", k.out, k.out_shape}};
           },
       .reference =
           [](const Deformable& k, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
             ReferenceDeformable(ToProblem(k), k.deformable_groups, in[0], in[1], in[2], out);
           },
       .build = Build,
       .macs = [](const Deformable& k) { return SpatialMacs(k); }})};
}

}  // namespace polynao::kernels
