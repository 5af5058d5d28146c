// Convolutions with what networks compute behind them, as expressions without a
// schedule.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "kernels/reference/convolution.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/layout.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Graph;
using te::Tensor;

// A convolution, scaled by a number, then for each channel scaled and shifted:
//   T = f16(f32(sum) * scale) * SCALE[c] + SHIFT[c]; + R; the larger of that
//   and 0; cast to `out`
struct Layer : ConvLayer {
  bool norm = true, residual = false;
  Type in = Type::kI8, out = Type::kF16;

  Type sum() const { return ir::IsInt(in) ? Type::kI32 : Type::kF32; }
  int64_t outputs() const { return ho() * wo() * co; }
  isa::Work Work() const {
    isa::Work work;
    work.macs = outputs() * kh * kw * ci;
    work.mac_type = in;
    work.vector_type = Type::kF16;
    work.vector_elements =
        outputs() * (1 + 2 * norm + residual + relu + (out == Type::kF16 ? 0 : 1));
    return work;
  }
  int64_t FilterBytes() const {
    return co * kh * kw * ci * ir::ByteSize(in) + (norm ? 2 * co * ir::ByteSize(Type::kF16) : 0);
  }
};

Expr Within(Expr v, int64_t begin, int64_t count) { return ir::And(begin <= v, v < begin + count); }

// The layer's tensors from `x` on; its inputs' names end in `suffix`.
Tensor Express(Graph& g, const Layer& k, const Tensor& x, const std::string& suffix) {
  const Tensor f = g.Placeholder("F" + suffix, {k.co, k.kh, k.kw, k.ci}, k.in);
  const auto row = [&](const char* name) {
    return k.norm ? g.Placeholder(name + suffix, {k.co}, Type::kF16) : Tensor();
  };
  const Tensor scale = row("SCALE"), shift = row("SHIFT");
  const Tensor other =
      k.residual ? g.Placeholder("R" + suffix, {k.ho(), k.wo(), k.co}, Type::kF16) : Tensor();
  Tensor image = x;
  if (k.pad_h > 0 || k.pad_w > 0) {
    image = g.Compute("P" + suffix, {k.h + 2 * k.pad_h, k.w + 2 * k.pad_w, k.ci},
                      [&](Expr y, Expr column, Expr c) {
                        return te::Select(
                            ir::And(Within(y, k.pad_h, k.h), Within(column, k.pad_w, k.w)),
                            x(y - k.pad_h, column - k.pad_w, c), 0.0);
                      });
  }
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s = g.ReduceAxisOf("s", k.kw),
                       i = g.ReduceAxisOf("i", k.ci);
  const Tensor sums =
      g.Compute("S" + suffix, {k.ho(), k.wo(), k.co}, [&](Expr y, Expr column, Expr c) {
        const Expr value = image(y * k.stride + r, column * k.stride + s, i);
        return te::ReduceSum(To(k.sum(), value) * To(k.sum(), f(c, r, s, i)), r, s, i);
      });
  return g.Compute("Y" + suffix, sums.shape(), [&](Expr y, Expr column, Expr c) {
    const Expr sum = sums(y, column, c);
    const Expr wide = k.sum() == Type::kF32 ? sum : To(Type::kF32, sum);
    Expr value = To(Type::kF16, wide * ir::ConstantLike(wide, k.scale));
    if (k.norm) value = value * scale(c) + shift(c);
    if (other) value = value + other(y, column, c);
    if (k.relu) value = ir::Max(value, ir::ConstantLike(value, 0));
    return k.out == Type::kF16 ? value : To(k.out, value);
  });
}

// `inputs`: filters, scale, shift, and the other branch if there is one.
ir::Tensor Reference(const Layer& k, const ir::Tensor& x, absl::Span<const ir::Tensor> inputs) {
  ConvLayer plain = k;
  plain.bias = plain.relu = false;
  ir::Tensor y(Type::kF16, {k.ho(), k.wo(), k.co});
  ReferenceConv2d(plain, x, inputs[0], nullptr, y);
  const auto apply = [&y](BinaryOp op, const ir::Tensor& b) {
    const ir::Tensor a = y;
    ReferenceBinary(op, a, ReferenceBroadcast(b, a.shape), y);
  };
  if (k.norm) {
    apply(BinaryOp::kMul, inputs[1]);
    apply(BinaryOp::kAdd, inputs[2]);
  }
  if (k.residual) apply(BinaryOp::kAdd, inputs.back());
  if (k.relu) {
    const ir::Tensor a = y;
    ReferenceScalar(BinaryOp::kMax, a, 0, y);
  }
  if (k.out == Type::kF16) return y;
  ir::Tensor cast(k.out, y.shape);
  const double high = std::ldexp(1.0, 8 * ir::ByteSize(k.out) - 1) - 1;
  for (int64_t at = 0; at < y.element_count(); ++at) {
    const double value = y.Float(at);
    cast.SetInt(at, std::isnan(value)
                        ? 0
                        : static_cast<int64_t>(std::clamp(std::trunc(value), -high - 1, high)));
  }
  return cast;
}

void AddTensors(const Layer& k, const std::string& suffix, std::vector<TensorSpec>& specs) {
  specs.push_back({"F" + suffix, k.in, {k.co, k.kh, k.kw, k.ci}});
  if (k.norm) {
    specs.push_back({"SCALE" + suffix, Type::kF16, {k.co}});
    specs.push_back({"SHIFT" + suffix, Type::kF16, {k.co}});
  }
  if (k.residual) specs.push_back({"R" + suffix, Type::kF16, {k.ho(), k.wo(), k.co}});
}

Layer MakeLayer(const OperatorCase& c, int64_t h, int64_t w, size_t operand, int64_t stride,
                std::optional<int64_t> pad) {
  Layer k;
  const std::vector<int64_t>& f = c.operands[operand];
  k.h = h, k.w = w, k.ci = f[3], k.co = f[0], k.kh = f[1], k.kw = f[2];
  k.stride = stride;
  k.pad_h = pad.value_or((k.kh - 1) / 2);
  k.pad_w = pad.value_or((k.kw - 1) / 2);
  k.in = c.dtype;
  return k;
}

double ScaleOf(const Operator& op, const OperatorCase& c) {
  const std::vector<double> list = AttributeList(op, c, "scale");
  return AttributeWord(op, c, "scale") == "auto" || list.empty() ? (ir::IsInt(c.dtype) ? 0x1p-6 : 1)
                                                                 : list[0];
}

absl::Status CheckLayer(const OperatorCase& c, const Layer& k, int64_t channels) {
  if (k.ci != channels) {
    return WrongCase(c, "expected filters of ", channels, " input channels, found ", k.ci);
  }
  if (k.h + 2 * k.pad_h < k.kh || k.w + 2 * k.pad_w < k.kw) {
    return WrongCase(c, "the filter is larger than the padded image");
  }
  return absl::OkStatus();
}

// ---- conv2d_bn

Operator ConvolutionBatchNorm() {
  Operator row;
  row.name = "conv2d_bn";
  row.doc =
      "Y = f16(scale * (X convolved with F)) * SCALE + SHIFT, both for "
      "each channel; + R; the "
      "larger of that and 0";
  row.shapes = {"image (H, W, CI)", "filters (CO, KH, KW, CI)"};
  row.attributes = {{"stride", "1", "distance between windows"},
                    {"pad", "same", "zeros on each side; same: as many as half a window"},
                    {"scale", "auto", "factor of the sums; auto: 1/64 of integers, 1 of floats"},
                    {"norm", "1", "0: without SCALE and SHIFT"},
                    {"residual", "0", "1: a further input R (HO, WO, CO) of f16 is added"},
                    {"relu", "1", "1: values below 0 become 0"},
                    {"out", "f16", "type of the output", {"f16", "i8"}}};
  const auto op = std::make_shared<Operator>(row);
  const auto layer = [op](const OperatorCase& c) {
    Layer k = MakeLayer(c, c.shape[0], c.shape[1], 0, *AttributeInt(*op, c, "stride"),
                        AttributeInt(*op, c, "pad"));
    k.scale = ScaleOf(*op, c);
    k.norm = AttributeInt(*op, c, "norm") != 0;
    k.residual = AttributeInt(*op, c, "residual") != 0;
    k.relu = AttributeInt(*op, c, "relu") != 0;
    k.out = *ir::ParseType(AttributeWord(*op, c, "out"));
    return k;
  };
  row.check = [op, layer](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckType(c, {Type::kI8, Type::kI16, Type::kF16, Type::kF32}));
    RETURN_IF_ERROR(CheckShapes(c, {3, 4}));
    RETURN_IF_ERROR(CheckNumber(*op, c, "stride", 1));
    for (const char* name : {"norm", "residual", "relu"}) {
      RETURN_IF_ERROR(CheckNumber(*op, c, name, 0, 1));
    }
    if (AttributeWord(*op, c, "pad") != "same") RETURN_IF_ERROR(CheckNumber(*op, c, "pad", 0));
    return CheckLayer(c, layer(c), c.shape[2]);
  };
  row.tensors = [layer](const OperatorCase& c) {
    const Layer k = layer(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}};
    AddTensors(k, "", specs);
    specs.push_back({"Y", k.out, {k.ho(), k.wo(), k.co}});
    return specs;
  };
  row.work = [layer](const OperatorCase& c) {
    const Layer k = layer(c);
    isa::Work work = k.Work();
    // Of the image what at least one window reads.
    const int64_t skipped = k.kh < k.stride ? k.stride / k.kh : 1;
    work.gmem_bytes =
        k.h * k.w * k.ci * ir::ByteSize(k.in) / (skipped * skipped) + k.FilterBytes() +
        k.outputs() * (ir::ByteSize(k.out) + (k.residual ? ir::ByteSize(Type::kF16) : 0));
    return work;
  };
  row.reference = [layer](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                          absl::Span<ir::Tensor> out) {
    out[0] = Reference(layer(c), in[0], in.subspan(1));
  };
  ScheduleByExpressions(row, [layer](Graph& g, const OperatorCase& c) {
    const Layer k = layer(c);
    return Express(g, k, g.Placeholder("X", {k.h, k.w, k.ci}, k.in), "");
  });
  return row;
}

// ---- conv2d_pair

Operator ConvolutionPair() {
  Operator row;
  row.name = "conv2d_pair";
  row.doc =
      "two layers conv2d_bn one after the other, both with relu; the "
      "image between them has X's "
      "type";
  row.shapes = {"image (H, W, CI)", "filters (C1, KH, KW, CI)", "filters (CO, KH, KW, C1)"};
  row.attributes = {{"stride", "1", "distance between the windows of the second one"},
                    {"scale", "auto", "factor of the sums; auto: 1/64 of integers"}};
  const auto op = std::make_shared<Operator>(row);
  const auto layers = [op](const OperatorCase& c) {
    Layer a = MakeLayer(c, c.shape[0], c.shape[1], 0, 1, std::nullopt);
    Layer b = MakeLayer(c, a.ho(), a.wo(), 1, *AttributeInt(*op, c, "stride"), std::nullopt);
    a.scale = b.scale = ScaleOf(*op, c);
    a.relu = b.relu = true;
    a.out = c.dtype;
    return std::pair(a, b);
  };
  row.check = [op, layers](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckType(c, {Type::kI8, Type::kI16}));
    RETURN_IF_ERROR(CheckShapes(c, {3, 4, 4}));
    RETURN_IF_ERROR(CheckNumber(*op, c, "stride", 1));
    const auto [a, b] = layers(c);
    RETURN_IF_ERROR(CheckLayer(c, a, c.shape[2]));
    return CheckLayer(c, b, a.co);
  };
  row.tensors = [layers](const OperatorCase& c) {
    const auto [a, b] = layers(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}};
    AddTensors(a, "1", specs);
    AddTensors(b, "2", specs);
    specs.push_back({"Y", b.out, {b.ho(), b.wo(), b.co}});
    return specs;
  };
  row.work = [layers](const OperatorCase& c) {
    const auto [a, b] = layers(c);
    isa::Work work = a.Work();
    work.macs += b.Work().macs;
    work.vector_elements += b.Work().vector_elements;
    work.gmem_bytes = a.h * a.w * a.ci * ir::ByteSize(a.in) + a.FilterBytes() + b.FilterBytes() +
                      b.outputs() * ir::ByteSize(b.out);
    return work;
  };
  row.reference = [layers](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                           absl::Span<ir::Tensor> out) {
    const auto [a, b] = layers(c);
    out[0] = Reference(b, Reference(a, in[0], in.subspan(1, 3)), in.subspan(4));
  };
  ScheduleByExpressions(row, [layers](Graph& g, const OperatorCase& c) {
    const auto [a, b] = layers(c);
    const Tensor middle = Express(g, a, g.Placeholder("X", {a.h, a.w, a.ci}, a.in), "1");
    return Express(g, b, middle, "2");
  });
  return row;
}

}  // namespace

std::vector<Operator> FusedLayers() { return {ConvolutionBatchNorm(), ConvolutionPair()}; }

}  // namespace polynao::kernels
