#include "kernels/te/convolution.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/grouped_convolution.h"
#include "kernels/te/processor.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axis;
using te::Schedule;
using te::Tensor;

// A case of conv2d, its attributes read.
struct Conv : ConvLayer {
  Epilogue end;

  Conv(const Operator& op, const OperatorCase& c) {
    h = c.shape[0], w = c.shape[1], ci = c.shape[2];
    co = c.operands[0][0], kh = c.operands[0][1], kw = c.operands[0][2];
    stride = *AttributeInt(op, c, "stride");
    dilation = *AttributeInt(op, c, "dilation");
    groups = *AttributeInt(op, c, "groups");
    const std::optional<int64_t> pad = AttributeInt(op, c, "pad");
    pad_h = pad.value_or(dilation * (kh - 1) / 2);
    pad_w = pad.value_or(dilation * (kw - 1) / 2);
    end = ReadEpilogue(op, c);
    bias = end.bias, relu = end.relu, scale = end.scale;  // for the reference
  }

  int64_t filter_elements() const { return kh * kw * group_ci(); }  // of one output channel
  // Rows of the image that `rows` rows of the output read; columns likewise.
  int64_t InputRows(int64_t rows) const { return (rows - 1) * stride + (kh - 1) * dilation + 1; }
  int64_t InputColumns(int64_t n) const { return (n - 1) * stride + (kw - 1) * dilation + 1; }
};

Expr Within(Expr v, int64_t begin, int64_t count) { return ir::And(begin <= v, v < begin + count); }

// [tensor-program conv begin]
// The tensors of a convolution, in the order of their computation.
struct Tensors {
  Tensor x, f, b;       // inputs
  Tensor padded;        // x with zeros around it
  Tensor sums;          // the convolution
  EpilogueSteps steps;  // from the sums to the output, elementwise
  Tensor& output() { return steps.tensors.empty() ? sums : steps.tensors.back(); }
};

// The inputs and the padded image.
Tensors ExpressInputs(te::Graph& g, const Conv& k) {
  Tensors t;
  t.x = g.Placeholder("X", {k.h, k.w, k.ci}, k.end.in);
  t.f = g.ConstantPlaceholder("F", {k.co, k.kh, k.kw, k.group_ci()}, k.end.in);
  if (k.bias) t.b = g.Placeholder("B", {k.co}, k.end.sum);
  t.padded = g.Compute("P", {k.h + 2 * k.pad_h, k.w + 2 * k.pad_w, k.ci},
                       [&](Expr y, Expr x, Expr c) {
                         if (k.pad_h == 0 && k.pad_w == 0) return t.x(y, x, c);
                         const Expr value = t.x(y - k.pad_h, x - k.pad_w, c);
                         return te::Select(
                             ir::And(Within(y, k.pad_h, k.h), Within(x, k.pad_w, k.w)), value, 0.0);
                       },
                       {"y", "x", "c"});
  return t;
}

Tensors Express(te::Graph& g, const Conv& k) {
  Tensors t = ExpressInputs(g, k);
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s = g.ReduceAxisOf("s", k.kw);
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.group_ci());
  const int64_t group_co = k.co / k.groups;
  t.sums = g.Compute(
      "S", {k.ho(), k.wo(), k.co},
      [&](Expr y, Expr x, Expr c) {
        const Expr from = k.groups == 1 ? Expr(i) : c / group_co * k.group_ci() + i;
        const Expr value =
            t.padded(y * k.stride + r * k.dilation, x * k.stride + s * k.dilation, from);
        return te::ReduceSum(To(k.end.sum, value) * To(k.end.sum, t.f(c, r, s, i)), r, s, i);
      },
      {"y", "x", "c"});
  t.steps = Append(g, k.end, t.sums, t.b);
  return t;
}
// [tensor-program conv end]

absl::StatusOr<ir::Function> WithoutCard(const Conv& k, const Target& target) {
  te::Graph g("conv2d");
  Tensors t = Express(g, k);
  const Tensor y = t.output();
  if (IsProcessor(target.name)) return LowerForProcessor(y, target, k.end.in == Type::kBF16);
  Schedule s(y);
  for (const Tensor& step : t.steps.tensors) {
    if (!(step == y)) s[step].ComputeInline();
  }
  if (!(t.sums == y)) s[t.sums].ComputeAt(s[y], s[y].axis(1));
  if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(0));
  return Lower(s);
}

// How many of `extent` rows (or columns) of the image are read by at least one window.
int64_t ReadPlaces(int64_t extent, int64_t outputs, int64_t window, int64_t pad, const Conv& k) {
  std::vector<bool> read(extent);
  for (int64_t y = 0; y < outputs; ++y) {
    for (int64_t r = 0; r < window; ++r) {
      const int64_t at = y * k.stride + r * k.dilation - pad;
      if (at >= 0 && at < extent) read[at] = true;
    }
  }
  return std::count(read.begin(), read.end(), true);
}

absl::Status Check(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckEpilogue(op, c));
  RETURN_IF_ERROR(CheckShapes(c, {3, 4}));
  for (const char* name : {"stride", "dilation", "groups"}) {
    RETURN_IF_ERROR(CheckNumber(op, c, name, 1));
  }
  const std::optional<int64_t> pad = AttributeInt(op, c, "pad");
  if (AttributeWord(op, c, "pad") != "same" && (!pad || *pad < 0 || *pad > 1 << 20)) {
    return WrongCase(c, "attribute pad: expected 'same' or 0 and more, found '",
                     AttributeWord(op, c, "pad"), "'");
  }
  const Conv k(op, c);
  if (k.ci % k.groups != 0 || k.co % k.groups != 0 || c.operands[0][3] != k.group_ci()) {
    return WrongCase(c, "with ", k.groups,
                     " groups, expected filters of as many input channels as a group "
                     "of the image's ",
                     k.ci, " has, found ", c.operands[0][3]);
  }
  if (k.h + 2 * k.pad_h < k.dilation * (k.kh - 1) + 1 ||
      k.w + 2 * k.pad_w < k.dilation * (k.kw - 1) + 1) {
    return WrongCase(c, "the filter is larger than the padded image");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Operator> ConvolutionOperators() {
  Operator row;
  row.name = "conv2d";
  row.doc = "Y (HO, WO, CO) = scale * (X (H, W, CI) convolved with F (CO, KH, KW, CI) + B)";
  row.shapes = {"image (H, W, CI)", "filters (CO, KH, KW, CI)"};
  row.attributes = {
      {"stride", "1", "distance between windows"},
      {"pad", "same", "zeros on each side; same: as many as half a window"},
      {"dilation", "1", "distance between a window's elements"},
      {"groups", "1", "of channels that are convolved by themselves"},
  };
  for (OperatorAttribute& attribute : EpilogueAttributes()) row.attributes.push_back(attribute);
  const auto shared = std::make_shared<Operator>(row);
  const auto conv = [shared](const OperatorCase& c) { return Conv(*shared, c); };
  row.check = [shared](const OperatorCase& c) { return Check(*shared, c); };
  row.tensors = [conv](const OperatorCase& c) {
    const Conv k = conv(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}, {"F", c.dtype, c.operands[0]}};
    if (k.bias) specs.push_back({"B", k.end.sum, {k.co}});
    specs.push_back({"Y", k.end.out, {k.ho(), k.wo(), k.co}});
    return specs;
  };
  row.work = [conv](const OperatorCase& c) {
    const Conv k = conv(c);
    const int64_t outputs = k.ho() * k.wo() * k.co;
    isa::Work work;
    const int64_t pixels =
        ReadPlaces(k.h, k.ho(), k.kh, k.pad_h, k) * ReadPlaces(k.w, k.wo(), k.kw, k.pad_w, k);
    work.gmem_bytes = (pixels * k.ci + k.co * k.filter_elements()) * ir::ByteSize(k.end.in) +
                      outputs * ir::ByteSize(k.end.out) + (k.bias ? 4 * k.co : 0);
    work.mac_type = k.end.in;
    work.vector_elements = outputs * k.end.VectorOperations();
    work.vector_type = Type::kF32;
    if (k.groups > 1 && k.group_ci() == 1 && k.co == k.groups) {
      // Depthwise: products and sums of the vector unit; or of integers on the tensor unit, which multiplies each
      // element that it reads by 64 weights, of which at most as many as the window has places are of use.
      work.either_elements = outputs * (2 * k.filter_elements() - 1);
      if (ir::IsInt(k.end.in)) {
        work.either_macs = outputs * std::max(k.filter_elements(), isa::kTensorLanes);
      }
      return work;
    }
    work.macs = outputs * k.filter_elements();
    if (k.groups == 1) {
      work.operand_bytes[0] = pixels * k.ci * ir::ByteSize(k.end.in);
      work.operand_bytes[1] = k.co * k.filter_elements() * ir::ByteSize(k.end.in);
      work.results = outputs;
    }
    return work;
  };
  const auto reference = [conv](const OperatorCase& c, bool is_fused,
                                absl::Span<const ir::Tensor> in, absl::Span<ir::Tensor> out) {
    Conv k = conv(c);
    k.is_fused = is_fused;
    ReferenceConv2d(k, in[0], in[1], k.bias ? &in[2] : nullptr, out[0]);
  };
  row.reference = [reference](const OperatorCase& c, auto in, auto out) {
    reference(c, false, in, out);
  };
  row.processor_reference = [reference](const OperatorCase& c, auto in, auto out) {
    reference(c, true, in, out);
  };
  row.dots_tolerance = kDotsTolerance;
  ScheduleByExpressions(
      row, [conv](te::Graph& g, const OperatorCase& c) { return Express(g, conv(c)).output(); },
      "conv2d");
  const Operator plain = row;
  row.build = [conv, plain](const OperatorCase& c,
                            const Target& target) -> absl::StatusOr<ir::Function> {
    const Conv k = conv(c);
    if (target.machine == nullptr) return WithoutCard(k, target);
    return k.groups == 1 ? plain.build(c, target) : BuildGroupedConvolution(k, k.end, c, target);
  };
  const auto either = [conv](const auto& of_one_group, const auto& of_groups) {
    return [conv, of_one_group, of_groups](const OperatorCase& c, const Target& target) {
      const Conv k = conv(c);
      return k.groups == 1 ? of_one_group(c, target) : of_groups(k, k.end, c, target);
    };
  };
  row.schedules = either(plain.schedules, GroupedConvolutionSchedules);
  row.first_schedules = [conv, plain](const OperatorCase& c, const Target& target, double limit) {
    const Conv k = conv(c);
    return k.groups == 1 ? plain.first_schedules(c, target, limit)
                         : GroupedConvolutionSchedules(k, k.end, c, target);
  };
  row.estimate = either(plain.estimate, GroupedConvolutionEstimate);
  return {row};
}

}  // namespace polynao::kernels
