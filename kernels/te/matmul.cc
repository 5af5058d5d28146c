#include "kernels/te/matmul.h"

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
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

struct Matmul : Epilogue {
  int64_t rows, k, co;

  Matmul(const Operator& op, const OperatorCase& c) : Epilogue(ReadEpilogue(op, c)) {
    rows = c.shape[0], k = c.shape[1], co = c.operands[0][0];
  }
};

// [tensor-program matmul begin]
struct Tensors {
  Tensor x, f, b;  // inputs
  Tensor sums;     // the product
  EpilogueSteps steps;
  Tensor& output() { return steps.tensors.empty() ? sums : steps.tensors.back(); }
};

Tensors Express(te::Graph& g, const Matmul& k) {
  Tensors t;
  t.x = g.Placeholder("X", {k.rows, k.k}, k.in);
  t.f = g.ConstantPlaceholder("F", {k.co, k.k}, k.in);
  if (k.bias) t.b = g.Placeholder("B", {k.co}, k.sum);
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.k);
  t.sums = g.Compute(
      "S", {k.rows, k.co},
      [&](Expr y, Expr c) { return te::ReduceSum(To(k.sum, t.x(y, i)) * To(k.sum, t.f(c, i)), i); },
      {"y", "c"});
  t.steps = Append(g, k, t.sums, t.b);
  return t;
}
// [tensor-program matmul end]

absl::StatusOr<ir::Function> WithoutCard(const Matmul& k, const Target& target) {
  te::Graph g("matmul");
  Tensors t = Express(g, k);
  const Tensor y = t.output();
  if (IsProcessor(target.name)) return LowerForProcessor(y, target, k.in == Type::kBF16);
  Schedule s(y);
  for (size_t j = 0; j + 1 < t.steps.tensors.size(); ++j) s[t.steps.tensors[j]].ComputeInline();
  if (!(y == t.sums)) s[t.sums].ComputeAt(s[y], s[y].axis(1));
  if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(y.shape()[0] > 1 ? 0 : 1));
  return Lower(s);
}

}  // namespace

std::vector<Operator> MatmulOperators() {
  Operator row;
  row.name = "matmul";
  row.doc = "Y (N, CO) = scale * (X (N, K) times the transpose of F (CO, K), + B): a dense layer";
  row.shapes = {"rows (N, K)", "weights (CO, K)"};
  row.attributes = EpilogueAttributes();
  const auto shared = std::make_shared<Operator>(row);
  const auto matmul = [shared](const OperatorCase& c) { return Matmul(*shared, c); };
  row.check = [shared](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckShapes(c, {2, 2}));
    RETURN_IF_ERROR(CheckEpilogue(*shared, c));
    if (c.shape[1] == c.operands[0][1]) return absl::OkStatus();
    return WrongCase(c, "expected weights of as many elements as a row has, ", c.shape[1],
                     ", found ", c.operands[0][1]);
  };
  row.tensors = [matmul](const OperatorCase& c) {
    const Matmul k = matmul(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}, {"F", c.dtype, c.operands[0]}};
    if (k.bias) specs.push_back({"B", k.sum, {k.co}});
    specs.push_back({"Y", k.out, {k.rows, k.co}});
    return specs;
  };
  row.work = [matmul](const OperatorCase& c) {
    const Matmul k = matmul(c);
    isa::Work work;
    work.gmem_bytes = (k.rows + k.co) * k.k * ir::ByteSize(k.in) +
                      k.rows * k.co * ir::ByteSize(k.out) + (k.bias ? 4 * k.co : 0);
    work.macs = k.rows * k.co * k.k;
    work.operand_bytes[0] = k.rows * k.k * ir::ByteSize(k.in);
    work.operand_bytes[1] = k.co * k.k * ir::ByteSize(k.in);
    work.results = k.rows * k.co;
    work.mac_type = k.in;
    work.vector_elements = k.rows * k.co * k.VectorOperations();
    work.vector_type = Type::kF32;
    return work;
  };
  const auto reference = [matmul](const OperatorCase& c, bool is_fused,
                                  absl::Span<const ir::Tensor> in, absl::Span<ir::Tensor> out) {
    const Matmul k = matmul(c);
    ConvLayer layer = DenseLayer(k.rows, k.k, k.co);
    layer.bias = k.bias, layer.relu = k.relu, layer.scale = k.scale, layer.is_fused = is_fused;
    ReferenceConv2d(layer, in[0], in[1], k.bias ? &in[2] : nullptr, out[0]);
  };
  row.reference = [reference](const OperatorCase& c, auto in, auto out) {
    reference(c, false, in, out);
  };
  row.processor_reference = [reference](const OperatorCase& c, auto in, auto out) {
    reference(c, true, in, out);
  };
  row.dots_tolerance = kDotsTolerance;
  ScheduleByExpressions(
      row, [matmul](te::Graph& g, const OperatorCase& c) { return Express(g, matmul(c)).output(); },
      "matmul");
  row.build = [matmul, on_card = row.build](const OperatorCase& c, const Target& target) {
    return target.machine == nullptr ? WithoutCard(matmul(c), target) : on_card(c, target);
  };
  return {row};
}

}  // namespace polynao::kernels
