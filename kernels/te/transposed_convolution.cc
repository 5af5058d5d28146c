#include "kernels/te/transposed_convolution.h"

#include <memory>

#include "base/math.h"
#include "base/status.h"
#include "compiler/te/graph.h"
#include "kernels/reference/spatial.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Tensor;

// The extents of X (h, w, ci), F (co, kh, kw, ci) and Y (ho, wo, co).
struct Transposed {
  int64_t h, w, ci, co, kh, kw, stride, pad;

  int64_t ho() const { return (h - 1) * stride + kh - 2 * pad; }
  int64_t wo() const { return (w - 1) * stride + kw - 2 * pad; }
};

// Each of stride x stride places of a step is a channel of a convolution without a stride, of windows of n x m with the
// taps a + stride * r of F: Z[y, x, a, b, c] = the sum over r, s, i of X[y - r, x - s, i] * F[c, a + stride * r, ..].
// [tensor-program conv2d_transpose begin]
Tensor Express(te::Graph& g, const OperatorCase& c, const Transposed& k) {
  const int64_t step = k.stride, n = CeilDiv(k.kh, step), m = CeilDiv(k.kw, step);
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.ci}, c.dtype);
  const Tensor f = g.Placeholder("F", {k.co, k.kh, k.kw, k.ci}, c.dtype);
  const Tensor padded = g.Compute(
      "P", {k.h + 2 * (n - 1), k.w + 2 * (m - 1), k.ci}, [&](Expr y, Expr column, Expr i) {
        return te::Select(ir::And(ir::And(y >= n - 1, y < n - 1 + k.h),
                                  ir::And(column >= m - 1, column < m - 1 + k.w)),
                          x(y - (n - 1), column - (m - 1), i), 0);
      });
  const Tensor whole =
      g.Compute("W", {k.co, n * step, m * step, k.ci}, [&](Expr o, Expr y, Expr column, Expr i) {
        return te::Select(ir::And(y < k.kh, column < k.kw), f(o, y, column, i), 0);
      });
  const te::ReduceAxis r = g.ReduceAxisOf("r", n), s = g.ReduceAxisOf("s", m),
                       i = g.ReduceAxisOf("i", k.ci);
  const auto sum = [&](Expr e) { return To(SumType(c.dtype), e); };
  const Tensor z =
      g.Compute("Z", {k.h + n - 1, k.w + m - 1, step, step, k.co},
                [&](Expr y, Expr column, Expr a, Expr b, Expr o) {
                  const Expr tap_y = (n - 1 - r) * step + a, tap_x = (m - 1 - s) * step + b;
                  return te::ReduceSum(
                      sum(padded(y + r, column + s, i)) * sum(whole(o, tap_y, tap_x, i)), r, s, i);
                });
  return g.Compute("Y", {k.ho(), k.wo(), k.co}, [&](Expr y, Expr column, Expr o) {
    const Expr at = y + k.pad, beside = column + k.pad;
    return To(c.dtype, z(at / step, beside / step, at % step, beside % step, o));
  });
}
// [tensor-program conv2d_transpose end]

}  // namespace

std::vector<Operator> TransposedConvolutionOperators() {
  Operator row;
  row.name = "conv2d_transpose";
  row.doc =
      "Y (HO, WO, CO): each pixel of X (H, W, CI) times F (CO, KH, KW, CI) is added at `stride`"
      " times its place; of floats";
  row.floats_only = true;
  row.shapes = {"image (H, W, CI)", "filters (CO, KH, KW, CI)"};
  row.attributes = {{"stride", "2", "pixels of Y from one of X to the next, from 1 to 16"},
                    {"pad", "0", "rows and columns that are cut off on each side"}};
  // Sums in another order than the reference's.
  row.tolerance_of_largest = 2e-3;
  const auto shared = std::make_shared<Operator>(row);
  const auto of = [shared](const OperatorCase& c) {
    const te::Shape& f = c.operands[0];
    return Transposed{c.shape[0],
                      c.shape[1],
                      c.shape[2],
                      f[0],
                      f[1],
                      f[2],
                      AttributeInt(*shared, c, "stride").value_or(0),
                      AttributeInt(*shared, c, "pad").value_or(0)};
  };
  row.check = [shared, of](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckShapes(c, {3, 4}));
    RETURN_IF_ERROR(CheckNumber(*shared, c, "stride", 1, 16));
    RETURN_IF_ERROR(CheckNumber(*shared, c, "pad", 0));
    const Transposed k = of(c);
    if (c.operands[0][3] != k.ci) {
      return WrongCase(c, "expected filters of ", k.ci, " channels, found ", c.operands[0][3]);
    }
    if (k.ho() >= 1 && k.wo() >= 1) return absl::OkStatus();
    return WrongCase(c, "expected a result of 1 pixel or more, found ", k.ho(), "x", k.wo());
  };
  row.tensors = [of](const OperatorCase& c) {
    const Transposed k = of(c);
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape},
                                   {"F", c.dtype, c.operands[0]},
                                   {"Y", c.dtype, {k.ho(), k.wo(), k.co}}};
  };
  row.work = [of, tensors = row.tensors](const OperatorCase& c) {
    const Transposed k = of(c);
    isa::Work work;
    for (const TensorSpec& spec : tensors(c)) {
      work.gmem_bytes += te::ElementCount(spec.shape) * ir::ByteSize(spec.type);
    }
    work.macs = k.h * k.w * k.ci * k.co * k.kh * k.kw;
    work.mac_type = c.dtype;
    return work;
  };
  row.reference = [of](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                       absl::Span<ir::Tensor> out) {
    const Transposed k = of(c);
    SpatialProblem problem;
    problem.ci = k.ci, problem.co = k.co;
    problem.layout = "HWC", problem.kernel_layout = "OHWI";
    problem.axes = {
        {.in = k.h, .kernel = k.kh, .out = k.ho(), .stride = k.stride, .before = k.pad},
        {.in = k.w, .kernel = k.kw, .out = k.wo(), .stride = k.stride, .before = k.pad}};
    const std::vector<double> sums = ReferenceSpatialTransposed(problem, in[0], in[1]);
    const int64_t pixels = k.ho() * k.wo();
    for (int64_t o = 0; o < k.co; ++o) {
      for (int64_t p = 0; p < pixels; ++p) out[0].SetValue(p * k.co + o, sums[o * pixels + p]);
    }
  };
  ScheduleByLoops(
      row, [of](te::Graph& g, const OperatorCase& c) { return Express(g, c, of(c)); }, row.name);
  return {row};
}

}  // namespace polynao::kernels
