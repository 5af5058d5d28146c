#include "kernels/te/transposed_convolution.h"

#include <algorithm>
#include <memory>

#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/te/graph.h"
#include "kernels/reference/spatial.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;
using te::Tensor;

// The extents of X (h, w, ci), F (co, kh, kw, ci) and Y (ho, wo, co).
struct Transposed {
  int64_t h, w, ci, co, kh, kw, stride, pad;

  int64_t ho() const { return (h - 1) * stride + kh - 2 * pad; }
  int64_t wo() const { return (w - 1) * stride + kw - 2 * pad; }
  // Taps of F for each place of a step.
  int64_t rows() const { return CeilDiv(kh, stride); }
  int64_t columns() const { return CeilDiv(kw, stride); }
  // Of a step, of a result of `extent` rows or columns.
  int64_t places(int64_t extent) const {
    return pad % stride == 0 ? std::min(stride, extent) : stride;
  }
  // F by places of a step: those of rows, of columns, channels, then taps from the last on, and input channels.
  te::Shape taps() const {
    if (stride == 1) return {co, kh, kw, ci};
    return {places(ho()), places(wo()), co, rows(), columns(), ci};
  }
};

// Each of stride x stride places of a step is a channel of a convolution without a stride, of windows of n x m with the
// taps a + stride * r of F: Z[y, x, a, b, c] = the sum over r, s, i of X[y - r, x - s, i] * F[c, a + stride * r, ..].
// [tensor-program conv2d_transpose begin]
Tensor Express(te::Graph& g, const OperatorCase& c, const Transposed& k, bool by_taps) {
  const int64_t step = k.stride, n = k.rows(), m = k.columns(), cut = k.pad % step;
  const int64_t h = CeilDiv(k.ho() + cut, step), w = CeilDiv(k.wo() + cut, step);
  const int64_t top = n - 1 - k.pad / step, left = m - 1 - k.pad / step;  // margins of X
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.ci}, c.dtype);
  const Tensor f = by_taps ? g.ConstantPlaceholder("F", k.taps(), c.dtype)
                           : g.Placeholder("F", {k.co, k.kh, k.kw, k.ci}, c.dtype);
  const te::Shape with_margins = {h + n - 1, w + m - 1, k.ci};
  const bool is_inside = top == 0 && left == 0 && with_margins[0] <= k.h && with_margins[1] <= k.w;
  const auto with_zeros = [&](Expr y, Expr column, Expr i) {
    return te::Select(
        ir::And(ir::And(y >= top, y < top + k.h), ir::And(column >= left, column < left + k.w)),
        x(y - top, column - left, i), 0);
  };
  const Tensor padded = is_inside ? x : g.Compute("P", with_margins, with_zeros);
  const Tensor whole = by_taps ? f
                               : g.Compute("W", {k.co, n * step, m * step, k.ci},
                                           [&](Expr o, Expr y, Expr column, Expr i) {
                                             return te::Select(ir::And(y < k.kh, column < k.kw),
                                                               f(o, y, column, i), 0);
                                           });
  const te::ReduceAxis r = g.ReduceAxisOf("r", n), s = g.ReduceAxisOf("s", m),
                       i = g.ReduceAxisOf("i", k.ci);
  const auto sum = [&](Expr e) { return To(SumType(c.dtype), e); };
  if (by_taps && step == 1) {
    const Tensor z = g.Compute("Z", {h, w, k.co}, [&](Expr y, Expr column, Expr o) {
      return te::ReduceSum(sum(padded(y + r, column + s, i)) * sum(f(o, r, s, i)), r, s, i);
    });
    return g.Compute("Y", z.shape(), [&](const Axes& at) { return To(c.dtype, z(at)); });
  }
  const Tensor z =
      g.Compute("Z", {h, w, k.places(k.ho()), k.places(k.wo()), k.co},
                [&](Expr y, Expr column, Expr a, Expr b, Expr o) {
                  const Expr tap_y = (n - 1 - r) * step + a, tap_x = (m - 1 - s) * step + b;
                  const Expr tap = by_taps ? f(a, b, o, r, s, i) : whole(o, tap_y, tap_x, i);
                  return te::ReduceSum(sum(padded(y + r, column + s, i)) * sum(tap), r, s, i);
                });
  return g.Compute("Y", {k.ho(), k.wo(), k.co}, [&](Expr y, Expr column, Expr o) {
    const Expr at = y + cut, beside = column + cut;
    return To(c.dtype, z(at / step, beside / step, at % step, beside % step, o));
  });
}
// [tensor-program conv2d_transpose end]

// F as `taps` says.
ir::Tensor ByTaps(const ir::Tensor& f, const Transposed& k) {
  ir::Tensor by_taps(f.type, k.taps());
  const int64_t bytes = ir::ByteSize(f.type);
  const auto row_bytes = k.ci * bytes;
  auto to = by_taps.bytes.begin();
  const int64_t columns = k.places(k.wo()), places = k.places(k.ho()) * columns;
  for (int64_t place = 0; place < places * k.co; ++place) {
    const int64_t a = place / k.co / columns, b = place / k.co % columns, o = place % k.co;
    for (int64_t tap = 0; tap < k.rows() * k.columns(); ++tap, to += row_bytes) {
      const int64_t y = (k.rows() - 1 - tap / k.columns()) * k.stride + a;
      const int64_t x = (k.columns() - 1 - tap % k.columns()) * k.stride + b;
      if (y >= k.kh || x >= k.kw) continue;
      std::copy_n(f.bytes.begin() + ((o * k.kh + y) * k.kw + x) * row_bytes, row_bytes, to);
    }
  }
  return by_taps;
}

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
  const auto express = [of](bool by_taps) {
    return [of, by_taps](te::Graph& g, const OperatorCase& c) {
      return Express(g, c, of(c), by_taps);
    };
  };
  ScheduleByExpressions(row, express(true), row.name);
  row.host_layout = [of](const OperatorCase& c) {
    const Transposed k = of(c);
    return HostLayout{
        .input = 1,
        .what = StrCat("lays out F by the ", k.stride, "x", k.stride, " places of a step"),
        .lay_out = [k](const ir::Tensor& f) { return ByTaps(f, k); }};
  };
  // These, and other targets, take F as it is.
  OrByLoops(row, express(false), row.name, /*if_cheaper=*/false);
  return {row};
}

}  // namespace polynao::kernels
