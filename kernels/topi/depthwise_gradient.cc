#include "kernels/topi/depthwise_gradient.h"

#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"
#include "kernels/topi/spatial.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;
using te::Tensor;

// Extents of the convolution whose gradient is asked for; NHWC, and HWCM for the filter.
struct Gradient {
  std::string name;
  int64_t n = 1, c = 1, m = 1;  // co = c * m
  SpatialAxis h, w;
  int64_t after_h = 0, after_w = 0;

  te::Shape DataShape() const { return {n, h.in, w.in, c}; }
  te::Shape WeightShape() const { return {h.kernel, w.kernel, c, m}; }
  te::Shape OutShape() const { return {n, h.out, w.out, c * m}; }
  SpatialProblem Problem() const { return {n, c, c * m, 1, {h, w}, "NHWC", "HWCM"}; }
};

// Axis `d` (1 or 2) of NHWC tensors.
absl::StatusOr<SpatialAxis> ReadAxis(const Operator& row, const OperatorCase& c, size_t d,
                                     int64_t in, int64_t kernel, int64_t out, int64_t& after) {
  SpatialAxis a = {.in = in, .kernel = kernel, .out = out};
  ASSIGN_OR_RETURN(a.stride, NumberFrom(row, c, d == 1 ? "stride_h" : "stride_w", 1));
  ASSIGN_OR_RETURN(a.before, NumberFrom(row, c, d == 1 ? "pad_top" : "pad_left", 0));
  ASSIGN_OR_RETURN(after, NumberFrom(row, c, d == 1 ? "pad_bottom" : "pad_right", 0));
  const int64_t room = a.in + a.before + after - a.kernel;
  if (room < 0 || room / a.stride + 1 != a.out || a.before >= a.kernel) {
    return WrongShape(c, "expected a gradient of ", room < 0 ? 0 : room / a.stride + 1,
                      " places and less padding than the filter has places, ", a.kernel, ", found ",
                      a.out, " and ", a.before);
  }
  return a;
}

// out_grad, weight; the data's extents are attributes.
absl::StatusOr<Gradient> ParseBackInput(const Operator& row, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {ir::Type::kF32}));
  RETURN_IF_ERROR(CheckRank(c, 0, 4));
  RETURN_IF_ERROR(CheckRank(c, 1, 4));
  const std::vector<int64_t>& w = c.operands[0];
  Gradient k = {.name = row.name, .n = c.shape[0], .c = w[2], .m = w[3], .h = {}, .w = {}};
  if (c.shape[3] != k.c * k.m) {
    return WrongShape(c, "expected a gradient of ", k.c * k.m, " channels, found ", c.shape[3]);
  }
  ASSIGN_OR_RETURN(const int64_t in_h, NumberFrom(row, c, "in_height", 1));
  ASSIGN_OR_RETURN(const int64_t in_w, NumberFrom(row, c, "in_width", 1));
  ASSIGN_OR_RETURN(k.h, ReadAxis(row, c, 1, in_h, w[0], c.shape[1], k.after_h));
  ASSIGN_OR_RETURN(k.w, ReadAxis(row, c, 2, in_w, w[1], c.shape[2], k.after_w));
  return k;
}

// data, out_grad; the filter's extents are attributes.
absl::StatusOr<Gradient> ParseBackWeight(const Operator& row, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {ir::Type::kF32}));
  RETURN_IF_ERROR(CheckRank(c, 0, 4));
  RETURN_IF_ERROR(CheckRank(c, 1, 4));
  const std::vector<int64_t>& out = c.operands[0];
  Gradient k = {.name = row.name, .n = c.shape[0], .c = c.shape[3], .m = 1, .h = {}, .w = {}};
  if (out[0] != k.n || out[3] % k.c != 0) {
    return WrongShape(c, "expected a gradient of a batch of ", k.n, " and a multiple of ", k.c,
                      " channels, found ", ShapeText(out));
  }
  k.m = out[3] / k.c;
  ASSIGN_OR_RETURN(const int64_t kernel_h, NumberFrom(row, c, "kernel_h", 1));
  ASSIGN_OR_RETURN(const int64_t kernel_w, NumberFrom(row, c, "kernel_w", 1));
  ASSIGN_OR_RETURN(k.h, ReadAxis(row, c, 1, c.shape[1], kernel_h, out[1], k.after_h));
  ASSIGN_OR_RETURN(k.w, ReadAxis(row, c, 2, c.shape[2], kernel_w, out[2], k.after_w));
  return k;
}

// The gradient with respect to the data is a convolution of the output's gradient, dilated by the stride and padded,
// with the reversed filter.
absl::StatusOr<ir::Function> BuildBackInput(const Gradient& k, const Target& target) {
  te::Graph g(k.name);
  const Tensor out_grad = g.Placeholder("out_grad", k.OutShape(), ir::Type::kF32);
  const Tensor weight = g.Placeholder("weight", k.WeightShape(), ir::Type::kF32);
  const te::Shape dilated = {k.n, (k.h.out - 1) * k.h.stride + 1, (k.w.out - 1) * k.w.stride + 1,
                             k.c * k.m};
  const std::vector<std::string> names = {"n", "h", "w", "c"};
  const Tensor dilate = g.Compute(
      "dilate", dilated,
      [&](Expr n, Expr h, Expr w, Expr c) -> Expr {
        if (k.h.stride == 1 && k.w.stride == 1) return out_grad(n, h, w, c);
        const auto zero = [](Expr e) { return ir::ConstantLike(e, 0); };
        return te::Select(ir::And(ir::Eq(h % k.h.stride, zero(h)), ir::Eq(w % k.w.stride, zero(w))),
                          out_grad(n, h / k.h.stride, w / k.w.stride, c), 0);
      },
      names);
  const int64_t top = k.h.kernel - 1 - k.h.before, left = k.w.kernel - 1 - k.w.before;
  const Tensor pad = g.Compute(
      "pad_temp", {k.n, k.h.in + k.h.kernel - 1, k.w.in + k.w.kernel - 1, k.c * k.m},
      [&](Expr n, Expr h, Expr w, Expr c) {
        const Expr inside = ir::And(ir::And(h >= top, h < top + dilated[1]),
                                    ir::And(w >= left, w < left + dilated[2]));
        return te::Select(inside, dilate(n, h - top, w - left, c), 0);
      },
      names);
  const te::ReduceAxis dh = g.ReduceAxisOf("dh", k.h.kernel);
  const te::ReduceAxis dw = g.ReduceAxisOf("dw", k.w.kernel);
  const te::ReduceAxis dc = g.ReduceAxisOf("dc", k.m);
  const Tensor output = g.Compute(
      "output", k.DataShape(),
      [&](Expr n, Expr h, Expr w, Expr c) {
        return te::ReduceSum(pad(n, h + dh, w + dw, c * k.m + dc) *
                                 weight(k.h.kernel - 1 - dh, k.w.kernel - 1 - dw, c, dc),
                             dh, dw, dc);
      },
      names);
  te::Schedule s(output);
  s[dilate].ComputeInline();
  if (IsGpu(target.name)) {
    s[pad].ComputeInline();
    BindElements(s, output);
  }
  if (!IsProcessor(target.name)) return te::Lower(s);
  ParallelElementwise(s, pad, target);
  TileReduction(s, output,
                {.row_axis = 2, .rows = DivisorUpTo(k.w.in, 4), .vector = DivisorUpTo(k.c, 32)});
  return te::Lower(s);
}

// As in TOPI: batch and pixels are one loop, whose iterations eight threads share in turn; their sums are added up
// at the end.
absl::StatusOr<ir::Function> BuildBackWeightForGpu(te::Graph& g, const Gradient& k,
                                                   const Tensor& out_grad, const Tensor& pad,
                                                   bool inline_pad) {
  constexpr int64_t kThreads = 8, kChannels = 32;
  const int64_t places = k.h.out * k.w.out, count = k.n * places;
  const te::ReduceAxis r = g.ReduceAxisOf("r", CeilDiv(count, kThreads));
  const Tensor partial =
      g.Compute("partial", {k.h.kernel, k.w.kernel, k.c, k.m, kThreads},
                [&](Expr fh, Expr fw, Expr c, Expr m, Expr t) {
                  const Expr at = r * kThreads + t;
                  const Expr b = at / places, dh = at % places / k.w.out, dw = at % k.w.out;
                  const Expr product = out_grad(b, dh, dw, c * k.m + m) *
                                       pad(b, fh + dh * k.h.stride, fw + dw * k.w.stride, c);
                  return te::ReduceSum(
                      count % kThreads == 0 ? product : te::Select(at < count, product, 0), r);
                },
                {"fh", "fw", "c", "m", "t"});
  const te::ReduceAxis t = g.ReduceAxisOf("t", kThreads);
  const Tensor output = g.Compute(
      "output", k.WeightShape(),
      [&](Expr fh, Expr fw, Expr c, Expr m) { return te::ReduceSum(partial(fh, fw, c, m, t), t); },
      {"fh", "fw", "c", "m"});
  te::Schedule s(output);
  if (inline_pad) s[pad].ComputeInline();
  te::Stage& out = s[output];
  auto [block, c] = out.Split(out.axis(2), kChannels);
  out.Reorder({out.axis(0), out.axis(1), block, out.axis(3), c});
  const te::Axis place = out.Fuse({out.axis(0), out.axis(1), block, out.axis(3)});
  out.Bind(place, "blockIdx.x").Bind(c, "threadIdx.x");
  te::Stage& parts = s[partial];
  parts.SetScope("shared").ComputeAt(out, place);
  parts.Bind(parts.axis(2), "threadIdx.x").Bind(parts.axis(4), "threadIdx.y");
  return te::Lower(s);
}

absl::StatusOr<ir::Function> BuildBackWeight(const Gradient& k, const Target& target) {
  te::Graph g(k.name);
  const Tensor data = g.Placeholder("data", k.DataShape(), ir::Type::kF32);
  const Tensor out_grad = g.Placeholder("out_grad", k.OutShape(), ir::Type::kF32);
  Spatial padding;
  padding.layout = "NHWC";
  padding.axes = {k.h, k.w};
  padding.after = {k.after_h, k.after_w};
  const Tensor pad = Pad(g, padding, data);
  const te::ReduceAxis b = g.ReduceAxisOf("b", k.n);
  const te::ReduceAxis dh = g.ReduceAxisOf("dh", k.h.out);
  const te::ReduceAxis dw = g.ReduceAxisOf("dw", k.w.out);
  const auto product = [&](Expr fh, Expr fw, Expr c, Expr channel) {
    return te::ReduceSum(
        out_grad(b, dh, dw, channel) * pad(b, fh + dh * k.h.stride, fw + dw * k.w.stride, c), b, dh,
        dw);
  };
  if (IsGpu(target.name)) return BuildBackWeightForGpu(g, k, out_grad, pad, !(pad == data));
  if (!IsProcessor(target.name)) {
    const Tensor output =
        g.Compute("output", k.WeightShape(),
                  [&](Expr fh, Expr fw, Expr c, Expr m) { return product(fh, fw, c, c * k.m + m); },
                  {"fh", "fw", "c", "m"});
    te::Schedule s(output);
    return te::Lower(s);
  }
  // Channels and their multiples as one axis, along which vectors lie.
  const Tensor sums =
      g.Compute("sums", {k.h.kernel, k.w.kernel, k.c * k.m},
                [&](Expr fh, Expr fw, Expr channel) {
                  return product(fh, fw, k.m == 1 ? channel : channel / k.m, channel);
                },
                {"fh", "fw", "c"});
  const Tensor output =
      g.Compute("output", k.WeightShape(),
                [&](Expr fh, Expr fw, Expr c, Expr m) { return sums(fh, fw, c * k.m + m); },
                {"fh", "fw", "c", "m"});
  te::Schedule s(output);
  if (!(pad == data)) ParallelElementwise(s, pad, target);
  ParallelElementwise(s, output, target);
  // One load of the gradient serves a row of the filter.
  TileReduction(s, sums, {.row_axis = 1, .rows = k.w.kernel, .vector = DivisorUpTo(k.c * k.m, 16)});
  return te::Lower(s);
}

int64_t Macs(const Gradient& k) { return te::ElementCount(k.OutShape()) * k.h.kernel * k.w.kernel; }

std::vector<OperatorAttribute> Attributes(const char* first, const char* second) {
  SpatialForm form;
  std::vector<OperatorAttribute> attributes = SpatialAttributes(form, /*with_dilation=*/false);
  attributes.push_back({first, "1", "extent of what is computed"});
  attributes.push_back({second, "1", "extent of what is computed"});
  return attributes;
}

}  // namespace

std::vector<Operator> TopiDepthwiseGradientOperators() {
  Operator input;
  input.name = "depthwise_conv2d_back_input";
  input.doc = "the gradient of a depthwise convolution with respect to its data";
  input.shapes = {"out_grad (NHWC)", "weight (HWCM)"};
  input.attributes = Attributes("in_height", "in_width");
  Operator weight;
  weight.name = "depthwise_conv2d_back_weight";
  weight.doc = "the gradient of a depthwise convolution with respect to its filter";
  weight.shapes = {"data (NHWC)", "out_grad (NHWC)"};
  weight.attributes = Attributes("kernel_h", "kernel_w");
  constexpr ir::Type kType = ir::Type::kF32;
  return {
      MakeRow<Gradient>(
          std::move(input),
          {.parse = ParseBackInput,
           .tensors =
               [](const Gradient& k) {
                 return std::vector<TensorSpec>{{"out_grad", kType, k.OutShape()},
                                                {"weight", kType, k.WeightShape()},
                                                {"output", kType, k.DataShape()}};
               },
           .reference =
               [](const Gradient& k, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
                 ReferenceDepthwiseBackInput(k.Problem(), in[1], in[0], out);
               },
           .build = BuildBackInput,
           .macs = Macs}),
      MakeRow<Gradient>(
          std::move(weight),
          {.parse = ParseBackWeight,
           .tensors =
               [](const Gradient& k) {
                 return std::vector<TensorSpec>{{"data", kType, k.DataShape()},
                                                {"out_grad", kType, k.OutShape()},
                                                {"output", kType, k.WeightShape()}};
               },
           .reference =
               [](const Gradient& k, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
                 ReferenceDepthwiseBackWeight(k.Problem(), in[0], in[1], out);
               },
           .build = BuildBackWeight,
           .macs = Macs}),
  };
}

}  // namespace polynao::kernels
