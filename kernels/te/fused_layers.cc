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
    work.operand_bytes[0] = ImageBytes();
    work.operand_bytes[1] = co * kh * kw * ci * ir::ByteSize(in);
    work.results = outputs();
    return work;
  }
  // Of the image what at least one window reads.
  int64_t ImageBytes() const {
    const int64_t skipped = kh < stride ? stride / kh : 1;
    return h * w * ci * ir::ByteSize(in) / (skipped * skipped);
  }
  int64_t FilterBytes() const {
    return co * kh * kw * ci * ir::ByteSize(in) + (norm ? 2 * co * ir::ByteSize(Type::kF16) : 0);
  }
};

Expr Within(Expr v, int64_t begin, int64_t count) { return ir::And(begin <= v, v < begin + count); }

// The layer's tensors from `x` on; its inputs' names end in `suffix`.
Tensor Express(Graph& g, const Layer& k, const Tensor& x, const std::string& suffix) {
  const Tensor f = g.ConstantPlaceholder("F" + suffix, {k.co, k.kh, k.kw, k.ci}, k.in);
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

// `inputs`: filters, scale, shift, and the other branch if there is one. `is_fused`: products of floats and their sums
// are rounded once.
ir::Tensor Reference(const Layer& k, const ir::Tensor& x, absl::Span<const ir::Tensor> inputs,
                     bool is_fused = false) {
  ConvLayer plain = k;
  plain.bias = plain.relu = false;
  plain.is_fused = is_fused;
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
    work.gmem_bytes =
        k.ImageBytes() + k.FilterBytes() +
        k.outputs() * (ir::ByteSize(k.out) + (k.residual ? ir::ByteSize(Type::kF16) : 0));
    return work;
  };
  row.reference = [layer](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                          absl::Span<ir::Tensor> out) {
    out[0] = Reference(layer(c), in[0], in.subspan(1));
  };
  row.processor_reference = [layer](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                    absl::Span<ir::Tensor> out) {
    out[0] = Reference(layer(c), in[0], in.subspan(1), /*is_fused=*/true);
  };
  ScheduleByExpressions(
      row,
      [layer](Graph& g, const OperatorCase& c) {
        const Layer k = layer(c);
        return Express(g, k, g.Placeholder("X", {k.h, k.w, k.ci}, k.in), "");
      },
      StrCat(row.name, "_graph"));
  return row;
}

// ---- conv2d_batch_norm

// How the variance is written: mean(x * x) - mean(x)^2, or mean((x - mean(x))^2), which needs the mean first.
enum class Variance : uint8_t { kMoments, kDeviations };
constexpr double kEpsilon = 1e-5;

// "Batch normalization" (Ioffe, Szegedy 2015), algorithm 1, of the convolution in f16; statistics in f32.
Tensor ExpressBatchNorm(Graph& g, const Layer& k, Variance variance, const Tensor& x) {
  Layer plain = k;
  plain.norm = plain.residual = plain.relu = false;
  const Tensor t = Express(g, plain, x, "");
  const Tensor gamma = g.Placeholder("GAMMA", {k.co}, Type::kF16);
  const Tensor beta = g.Placeholder("BETA", {k.co}, Type::kF16);
  const Tensor other =
      k.residual ? g.Placeholder("R", {k.ho(), k.wo(), k.co}, Type::kF16) : Tensor();
  const auto wide = [](Expr e) { return To(Type::kF32, e); };
  const auto sum_of = [&](const char* name, const std::function<Expr(Expr value, Expr c)>& value) {
    const te::ReduceAxis y = g.ReduceAxisOf("y", k.ho()), column = g.ReduceAxisOf("x", k.wo());
    return g.Compute(name, {k.co}, [&](Expr c) {
      return te::ReduceSum(value(wide(t(y, column, c)), c), y, column);
    });
  };
  const double share = 1.0 / static_cast<double>(k.ho() * k.wo());
  const Tensor sum = sum_of("SUM", [](Expr value, Expr) { return value; });
  const Tensor mean = g.Compute("MEAN", {k.co}, [&](Expr c) { return sum(c) * share; });
  const bool has_moments = variance == Variance::kMoments;
  const Tensor squares = sum_of("SQUARES", [&](Expr value, Expr c) {
    const Expr from = has_moments ? value : value - mean(c);
    return from * from;
  });
  const Tensor factor = g.Compute("FACTOR", {k.co}, [&](Expr c) {
    Expr v = squares(c) * share;
    if (has_moments) v = ir::Max(v - mean(c) * mean(c), ir::ConstantLike(v, 0));
    return wide(gamma(c)) * g.context().Call(Type::kF32, "rsqrt", {v + kEpsilon});
  });
  const Tensor offset =
      g.Compute("OFFSET", {k.co}, [&](Expr c) { return wide(beta(c)) - mean(c) * factor(c); });
  return g.Compute("Y", t.shape(), [&](Expr y, Expr column, Expr c) {
    Expr value = To(Type::kF16, wide(t(y, column, c)) * factor(c) + offset(c));
    if (other) value = value + other(y, column, c);
    return k.relu ? ir::Max(value, ir::ConstantLike(value, 0)) : value;
  });
}

// In f64 from the convolution's f16 on.
ir::Tensor BatchNormReference(const Layer& k, absl::Span<const ir::Tensor> in) {
  Layer plain = k;
  plain.norm = plain.residual = plain.relu = false;
  const ir::Tensor t = Reference(plain, in[0], in.subspan(1, 1));
  ir::Tensor y(Type::kF16, t.shape);
  const int64_t pixels = k.ho() * k.wo();
  for (int64_t c = 0; c < k.co; ++c) {
    double sum = 0, squares = 0;
    for (int64_t p = 0; p < pixels; ++p) sum += t.Float(p * k.co + c);
    const double mean = sum / static_cast<double>(pixels);
    for (int64_t p = 0; p < pixels; ++p) squares += std::pow(t.Float(p * k.co + c) - mean, 2);
    const double factor =
        in[2].Float(c) / std::sqrt(squares / static_cast<double>(pixels) + kEpsilon);
    for (int64_t at = c; at < t.element_count(); at += k.co) {
      double value = (t.Float(at) - mean) * factor + in[3].Float(c);
      if (k.residual) value += in[4].Float(at);
      y.SetValue(at, k.relu ? std::max(value, 0.0) : value);
    }
  }
  return y;
}

Operator ConvolutionBatchStatistics() {
  Operator row;
  row.name = "conv2d_batch_norm";
  row.doc =
      "T = f16(scale * (X convolved with F)); Y = (T - mean) / sqrt(variance + 1e-5) * GAMMA + "
      "BETA, mean and "
      "variance of each channel over all pixels of T; + R; the larger of that and 0";
  row.shapes = {"image (H, W, CI)", "filters (CO, KH, KW, CI)"};
  row.attributes = {{"stride", "1", "distance between windows"},
                    {"pad", "same", "zeros on each side; same: as many as half a window"},
                    {"scale", "auto", "factor of the sums; auto: 1/64 of integers, 1 of floats"},
                    {"residual", "0", "1: a further input R (HO, WO, CO) of f16 is added"},
                    {"relu", "1", "1: values below 0 become 0"},
                    {"variance",
                     "moments",
                     "moments: mean(T * T) - mean(T)^2; deviations: mean((T - mean(T))^2)",
                     {"moments", "deviations"}}};
  // Sums of f32 in another order, differences of moments, and roundings to f16 in the reference's place.
  row.tolerance_of_largest = 2e-3;
  const auto op = std::make_shared<Operator>(row);
  const auto layer = [op](const OperatorCase& c) {
    Layer k = MakeLayer(c, c.shape[0], c.shape[1], 0, *AttributeInt(*op, c, "stride"),
                        AttributeInt(*op, c, "pad"));
    k.scale = ScaleOf(*op, c);
    k.residual = AttributeInt(*op, c, "residual") != 0;
    k.relu = AttributeInt(*op, c, "relu") != 0;
    return k;
  };
  row.check = [op, layer](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckType(c, {Type::kI8, Type::kI16, Type::kF16, Type::kF32}));
    RETURN_IF_ERROR(CheckShapes(c, {3, 4}));
    RETURN_IF_ERROR(CheckNumber(*op, c, "stride", 1));
    for (const char* name : {"residual", "relu"}) RETURN_IF_ERROR(CheckNumber(*op, c, name, 0, 1));
    if (AttributeWord(*op, c, "pad") != "same") RETURN_IF_ERROR(CheckNumber(*op, c, "pad", 0));
    const Layer k = layer(c);
    RETURN_IF_ERROR(CheckLayer(c, k, c.shape[2]));
    if (k.ho() * k.wo() > 1) return absl::OkStatus();
    return InvalidInput("operator ", c.op, " ", ShapesText(c),
                        ": the output is one pixel, of which there is no variance");
  };
  row.tensors = [layer](const OperatorCase& c) {
    const Layer k = layer(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape},
                                     {"F", k.in, {k.co, k.kh, k.kw, k.ci}},
                                     {"GAMMA", Type::kF16, {k.co}},
                                     {"BETA", Type::kF16, {k.co}}};
    if (k.residual) specs.push_back({"R", Type::kF16, {k.ho(), k.wo(), k.co}});
    specs.push_back({"Y", Type::kF16, {k.ho(), k.wo(), k.co}});
    return specs;
  };
  row.work = [layer](const OperatorCase& c) {
    const Layer k = layer(c);
    isa::Work work = k.Work();
    // Scaled to f16; widened, summed, squared, summed; normalised by two steps, and narrowed.
    work.vector_elements = k.outputs() * (1 + 4 + 3 + k.residual + k.relu);
    work.gmem_bytes = k.ImageBytes() + k.FilterBytes() +
                      k.outputs() * ir::ByteSize(Type::kF16) * (k.residual ? 2 : 1);
    return work;
  };
  row.reference = [layer](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                          absl::Span<ir::Tensor> out) {
    out[0] = BatchNormReference(layer(c), in);
  };
  ScheduleByExpressions(
      row,
      [op, layer](Graph& g, const OperatorCase& c) {
        const Layer k = layer(c);
        const bool has_moments = AttributeWord(*op, c, "variance") == "moments";
        return ExpressBatchNorm(g, k, has_moments ? Variance::kMoments : Variance::kDeviations,
                                g.Placeholder("X", {k.h, k.w, k.ci}, k.in));
      },
      StrCat(row.name, "_graph"));
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
    work.operand_bytes[0] = 0;  // The image between need not cross GMEM.
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
  ScheduleByExpressions(
      row,
      [layers](Graph& g, const OperatorCase& c) {
        const auto [a, b] = layers(c);
        const Tensor middle = Express(g, a, g.Placeholder("X", {a.h, a.w, a.ci}, a.in), "1");
        return Express(g, b, middle, "2");
      },
      StrCat(row.name, "_graph"));
  return row;
}

}  // namespace

std::vector<Operator> FusedLayers() {
  return {ConvolutionBatchNorm(), ConvolutionBatchStatistics(), ConvolutionPair()};
}

}  // namespace polynao::kernels
