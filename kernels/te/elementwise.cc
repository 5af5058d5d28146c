#include "kernels/te/elementwise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/elementwise.h"
#include "kernels/te/broadcast.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Schedule;
using te::Tensor;

// The operands of one element: the inputs' elements, then the results of the previous steps.
using Values = absl::Span<const Expr>;

// What a step computes: one instruction on the card.
struct Step {
  Expr (*value)(Values v, Expr scalar);
  // Whether the number is the attribute a_min instead of the operator's scalar.
  bool takes_low = false;
};

// Of X, an i8: 1/16, so that it stands for -8 to 8.
constexpr double kDefaultScale = 0.0625;

struct Elementwise {
  const char* name;
  const char* doc;
  std::vector<const char*> inputs;
  const char* output;
  std::vector<Step> steps;
  // Of i8, if other: their number is the attribute `scale`, in f32.
  std::vector<Step> steps_of_i8 = {};

  const std::vector<Step>& StepsOf(const OperatorCase& k) const {
    return k.dtype == ir::Type::kI8 && !steps_of_i8.empty() ? steps_of_i8 : steps;
  }
};

// The attribute `scale` of functions of i8; 0 if that is no number.
double ScaleOf(const OperatorCase& k) {
  const auto it = k.attributes.find("scale");
  double scale = 0;
  if (it == k.attributes.end()) return kDefaultScale;
  return absl::SimpleAtod(it->second, &scale) ? scale : 0;
}

// The attribute a_min of clip.
double LowOf(const OperatorCase& k) {
  const auto it = k.attributes.find("a_min");
  double low = 0;
  return it != k.attributes.end() && absl::SimpleAtod(it->second, &low) ? low : 0;
}

// [tensor-program binary unary begin]
// The inputs, then the result of each step; the last one is the output.
std::vector<Tensor> Express(te::Graph& g, const Elementwise& op, const OperatorCase& k,
                            double scalar) {
  const std::vector<Step>& steps = op.StepsOf(k);
  const bool is_scaled = &steps == &op.steps_of_i8;
  const auto constant = [&](double value) {
    if (is_scaled) return g.context().Float(ir::Type::kF32, ScaleOf(k));
    return ir::IsFloat(k.dtype) ? g.context().Float(k.dtype, value)
                                : g.context().Int(k.dtype, static_cast<int64_t>(value));
  };
  std::vector<Tensor> v;
  for (const char* name : op.inputs) v.push_back(g.Flatten(g.Placeholder(name, k.shape, k.dtype)));
  for (size_t j = 0; j < steps.size(); ++j) {
    const std::string name = j + 1 == steps.size() ? op.output : StrCat("T", j);
    v.push_back(g.Compute(name, v[0].shape(), [&](Expr i) {
      std::vector<Expr> elements;
      for (const Tensor& t : v) elements.push_back(t(i));
      return steps[j].value(elements, constant(steps[j].takes_low ? LowOf(k) : scalar));
    }));
  }
  return v;
}

// [tensor-program binary unary end]

// One loop for all steps.
absl::StatusOr<ir::Function> OnGpu(const Tensor& y) {
  Schedule s(y);
  for (const te::Operation& operation : y.graph()->operations) {
    const Tensor step(y.graph(), &operation);
    if (operation.kind == te::Operation::Kind::kCompute && !(step == y)) s[step].ComputeInline();
  }
  auto [group, element] = s[y].Split(s[y].axis(0), 4);
  auto [block, thread] = s[y].Split(group, 256);
  s[y].Bind(block, "blockIdx.x").Bind(thread, "threadIdx.x").Vectorize(element);
  return Lower(s);
}

// The name of the function that computes an operator. It must not be the name of a function in C's library, which
// compiled code may call or be linked with.
std::string FunctionName(std::string_view op) {
  const bool is_taken = op == "abs" || op == "div" || op == "exp" || op == "tanh";
  return StrCat(op, is_taken ? "_elements" : "");
}

using Reference = void (*)(absl::Span<const ir::Tensor> in, double scalar, ir::Tensor& out);

Operator MakeOperator(Elementwise op, Reference reference,
                      std::optional<double> scalar = std::nullopt) {
  Operator row;
  row.name = op.name;
  row.doc = op.doc;
  row.scalar = scalar;
  row.tensors = [op](const OperatorCase& c) {
    std::vector<TensorSpec> specs;
    for (const char* name : op.inputs) specs.push_back({name, c.dtype, c.shape});
    specs.push_back({op.output, c.dtype, c.shape});
    return specs;
  };
  row.work = [op](const OperatorCase& c) {
    const int64_t n = te::ElementCount(c.shape);
    isa::Work work;
    work.gmem_bytes = static_cast<int64_t>(op.inputs.size() + 1) * n * ir::ByteSize(c.dtype);
    work.vector_elements = static_cast<int64_t>(op.steps.size()) * n;
    work.vector_type = c.dtype;
    return work;
  };
  const auto number = [scalar](const OperatorCase& c) {
    return c.scalar.value_or(scalar.value_or(0));
  };
  row.reference = [reference, number](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                      absl::Span<ir::Tensor> out) {
    reference(in, number(c), out[0]);
  };
  ScheduleByExpressions(
      row,
      [op, number](te::Graph& g, const OperatorCase& c) {
        return Express(g, op, c, number(c)).back();
      },
      FunctionName(op.name));
  row.build = [express = row.express, name = FunctionName(op.name), otherwise = row.build](
                  const OperatorCase& c, const Target& target) {
    if (!IsGpu(target.name)) return otherwise(c, target);
    te::Graph g(name);
    return OnGpu(express(g, c));
  };
  return row;
}

template <BinaryOp kOp>
Operator Binary(const char* name, const char* doc, Expr (*value)(Values v, Expr scalar)) {
  return WithBroadcasting(
      MakeOperator({name, doc, {"A", "B"}, "C", {{value}}},
                   [](absl::Span<const ir::Tensor> in, double, ir::Tensor& out) {
                     ReferenceBinary(kOp, in[0], in[1], out);
                   }),
      kOp, [value](Expr a, Expr b) { return value({a, b}, Expr()); });
}

template <BinaryOp kOp>
Operator WithScalar(const char* name, const char* doc, Expr (*value)(Values v, Expr scalar)) {
  return MakeOperator(
      {name, doc, {"X"}, "Y", {{value}}},
      [](absl::Span<const ir::Tensor> in, double scalar, ir::Tensor& out) {
        ReferenceScalar(kOp, in[0], scalar, out);
      },
      2);
}

template <UnaryOp kOp>
Operator Unary(const char* name, const char* doc, std::vector<Step> steps,
               std::optional<double> scalar = std::nullopt) {
  return MakeOperator(
      {name, doc, {"X"}, "Y", std::move(steps)},
      [](absl::Span<const ir::Tensor> in, double parameter, ir::Tensor& out) {
        ReferenceUnary(kOp, in[0], parameter, out);
      },
      scalar);
}

Operator FloatsOnly(Operator row, double tolerance_steps = 0) {
  row.floats_only = true;
  row.tolerance_steps = tolerance_steps;
  return row;
}

Expr Zero(Expr like) { return ir::ConstantLike(like, 0); }

template <const char* kFunction>
Expr Call(Values v, Expr) {
  return v[0].context().Call(v[0].type(), kFunction, {v[0]});
}
constexpr char kSigmoid[] = "sigmoid";
constexpr char kTanh[] = "tanh";
constexpr char kExp[] = "exp";
constexpr char kAbs[] = "abs";

// The steps of a function of i8, which stands for X times a scale: the result times 2^bits, from `zero` on.
template <const char* kFunction, int kScale, int kZero>
std::vector<Step> QuantizedSteps() {
  std::vector<Step> steps = {
      {[](Values v, Expr) { return To(ir::Type::kF32, v[0]); }},
      {[](Values v, Expr scale) { return v[1] * scale; }},
      {[](Values v, Expr) { return v[0].context().Call(ir::Type::kF32, kFunction, {v[2]}); }},
      {[](Values v, Expr) { return v[3] * ir::ConstantLike(v[3], kScale); }}};
  if (kZero != 0) {
    steps.push_back({[](Values v, Expr) { return v[4] + ir::ConstantLike(v[4], kZero); }});
  }
  steps.push_back(
      {[](Values v, Expr) { return v[0].context().Call(ir::Type::kF32, "round", {v.back()}); }});
  steps.push_back({[](Values v, Expr) { return To(ir::Type::kI8, v.back()); }});
  return steps;
}

// sigmoid or tanh, of i8 with the scales of results that TensorFlow Lite's specification of 8-bit quantization
// prescribes: 1/256 from -128 on, and 1/128.
template <UnaryOp kOp, const char* kFunction, int kScale, int kZero>
Operator Activation(const char* name, const char* doc, double tolerance_steps) {
  Elementwise op = {
      name, doc, {"X"}, "Y", {{Call<kFunction>}}, QuantizedSteps<kFunction, kScale, kZero>()};
  Operator row = MakeOperator(std::move(op), nullptr);
  row.floats_only = row.takes_i8 = true;
  row.tolerance_steps = tolerance_steps;
  row.attributes = {{"scale", "0.0625", "of i8: what a step of X stands for"}};
  row.check = [](const OperatorCase& c) {
    const double scale = ScaleOf(c);
    if (scale > 0 && std::isfinite(static_cast<float>(scale))) return absl::OkStatus();
    return InvalidInput("operator ", c.op, ", attribute scale ", scale,
                        ": expected a number above 0");
  };
  row.reference = [](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) {
    if (c.dtype == ir::Type::kI8) {
      ReferenceQuantized(kOp, in[0], ScaleOf(c), kScale, kZero, out[0]);
    } else {
      ReferenceUnary(kOp, in[0], 0, out[0]);
    }
  };
  return row;
}

// clip, whose lower limit is an attribute.
Operator Clip() {
  Operator row =
      MakeOperator({"clip",
                    "Y = X limited to a_min .. scalar (6)",
                    {"X"},
                    "Y",
                    {{[](Values v, Expr low) { return ir::Max(v[0], low); }, /*takes_low=*/true},
                     {[](Values v, Expr s) { return ir::Min(v[1], s); }}}},
                   nullptr, 6);
  row.attributes = {{"a_min", "0", "the lower limit"}};
  row.check = [](const OperatorCase& c) {
    const double low = LowOf(c);
    const bool is_integer = low == std::trunc(low) && std::abs(low) <= 0x1p53;
    if (ir::IsFloat(c.dtype) || (is_integer && ir::FitsInt(c.dtype, static_cast<int64_t>(low)))) {
      return absl::OkStatus();
    }
    return InvalidInput("operator clip, attribute a_min ", low, ": expected a value of ",
                        ir::TypeName(c.dtype));
  };
  row.reference = [](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) {
    ir::Tensor above = out[0];
    ReferenceScalar(BinaryOp::kMax, in[0], LowOf(c), above);
    ReferenceScalar(BinaryOp::kMin, above, c.scalar.value_or(6), out[0]);
  };
  return row;
}

}  // namespace

std::vector<Operator> ElementwiseOperators() {
  // Steps between neighbouring values by which the processor's functions may be off.
  constexpr double kMathSteps = 4;
  return {
      Binary<BinaryOp::kAdd>("add", "C = A + B, element by element",
                             [](Values v, Expr) { return v[0] + v[1]; }),
      Binary<BinaryOp::kSub>("sub", "C = A - B, element by element",
                             [](Values v, Expr) { return v[0] - v[1]; }),
      Binary<BinaryOp::kMul>("mul", "C = A * B, element by element",
                             [](Values v, Expr) { return v[0] * v[1]; }),
      FloatsOnly(Binary<BinaryOp::kDiv>("div", "C = A / B, element by element; of floats",
                                        [](Values v, Expr) { return v[0] / v[1]; })),
      Binary<BinaryOp::kMax>("max", "C = the larger of A and B, element by element",
                             [](Values v, Expr) { return ir::Max(v[0], v[1]); }),
      Binary<BinaryOp::kMin>("min", "C = the smaller of A and B, element by element",
                             [](Values v, Expr) { return ir::Min(v[0], v[1]); }),
      WithScalar<BinaryOp::kAdd>("adds", "Y = X + scalar (2)",
                                 [](Values v, Expr s) { return v[0] + s; }),
      WithScalar<BinaryOp::kSub>("subs", "Y = X - scalar (2)",
                                 [](Values v, Expr s) { return v[0] - s; }),
      WithScalar<BinaryOp::kMul>("muls", "Y = X * scalar (2)",
                                 [](Values v, Expr s) { return v[0] * s; }),
      WithScalar<BinaryOp::kMax>("maxs", "Y = the larger of X and scalar (2)",
                                 [](Values v, Expr s) { return ir::Max(v[0], s); }),
      WithScalar<BinaryOp::kMin>("mins", "Y = the smaller of X and scalar (2)",
                                 [](Values v, Expr s) { return ir::Min(v[0], s); }),
      Unary<UnaryOp::kRelu>("relu", "Y = the larger of X and 0",
                            {{[](Values v, Expr) { return ir::Max(v[0], Zero(v[0])); }}}),
      FloatsOnly(Unary<UnaryOp::kLeakyRelu>(
          "leaky_relu", "Y = the larger of X and X * scalar (0.01: the slope below 0); of floats",
          {{[](Values v, Expr s) { return v[0] * s; }},
           {[](Values v, Expr) { return ir::Max(v[0], v[1]); }}},
          0.01)),
      Activation<UnaryOp::kSigmoid, kSigmoid, 256, -128>(
          "sigmoid",
          "Y = 1 / (1 + exp(-X)); of floats, or of i8: 256 / (1 + exp(-scale * X)) - 128, rounded",
          kMathSteps),
      Activation<UnaryOp::kTanh, kTanh, 128, 0>(
          "tanh", "Y = tanh(X); of floats, or of i8: 128 * tanh(scale * X), rounded", kMathSteps),
      FloatsOnly(Unary<UnaryOp::kExp>("exp", "Y = e to the power of X; of floats", {{Call<kExp>}}),
                 kMathSteps),
      FloatsOnly(Unary<UnaryOp::kAbs>("abs", "Y = X without its sign; of floats", {{Call<kAbs>}})),
      Clip(),
  };
}

}  // namespace polynao::kernels
