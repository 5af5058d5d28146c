#include "kernels/te/attention.h"

#include <cmath>
#include <memory>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/ir/random_value.h"
#include "compiler/te/graph.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Tensor;

// ---- products of a batch -----------------------------------------------------------------------

struct BatchedMatmul : Epilogue {
  int64_t batch, rows, k, co;

  BatchedMatmul(const Operator& op, const OperatorCase& c) : Epilogue(ReadEpilogue(op, c)) {
    batch = c.shape[0], rows = c.shape[1], k = c.shape[2], co = c.operands[0][2];
  }
};

// [tensor-program batched_matmul begin]
Tensor Express(te::Graph& g, const BatchedMatmul& k) {
  const Tensor x = g.Placeholder("X", {k.batch, k.rows, k.k}, k.in);
  const Tensor f = g.Placeholder("F", {k.batch, k.k, k.co}, k.in);
  const Tensor b = k.bias ? g.Placeholder("B", {k.co}, k.sum) : Tensor();
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.k);
  const Tensor sums =
      g.Compute("S", {k.batch, k.rows, k.co},
                [&](Expr n, Expr y, Expr c) {
                  return te::ReduceSum(To(k.sum, x(n, y, i)) * To(k.sum, f(n, i, c)), i);
                },
                {"n", "y", "c"});
  const EpilogueSteps steps = Append(g, k, sums, b);
  return steps.tensors.empty() ? sums : steps.tensors.back();
}
// [tensor-program batched_matmul end]

// Each product of the batch is a dense layer, whose weights are columns here. `is_fused`: products of floats and their
// sums are rounded once.
void Reference(const BatchedMatmul& k, bool is_fused, absl::Span<const ir::Tensor> in,
               ir::Tensor& out) {
  ir::Tensor x(k.in, {k.rows, k.k}), f(k.in, {k.co, k.k}), y(k.out, {k.rows, k.co});
  ConvLayer layer = DenseLayer(k.rows, k.k, k.co);
  layer.bias = k.bias, layer.relu = k.relu, layer.scale = k.scale, layer.is_fused = is_fused;
  for (int64_t n = 0; n < k.batch; ++n) {
    for (int64_t i = 0; i < k.rows * k.k; ++i) x.SetValue(i, in[0].Value(n * k.rows * k.k + i));
    for (int64_t i = 0; i < k.k * k.co; ++i) {
      f.SetValue(i % k.co * k.k + i / k.co, in[1].Value(n * k.k * k.co + i));
    }
    ReferenceConv2d(layer, x, f, k.bias ? &in[2] : nullptr, y);
    for (int64_t i = 0; i < k.rows * k.co; ++i) out.SetValue(n * k.rows * k.co + i, y.Value(i));
  }
}

Operator BatchedMatmulRow() {
  Operator row;
  row.name = "batched_matmul";
  row.doc =
      "Y (B, M, N) = scale * (X (B, M, K) times F (B, K, N), + B): a product for each of a batch";
  row.shapes = {"X (B, M, K)", "F (B, K, N)"};
  row.attributes = EpilogueAttributes();
  const auto shared = std::make_shared<Operator>(row);
  const auto matmul = [shared](const OperatorCase& c) { return BatchedMatmul(*shared, c); };
  row.check = [shared](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckShapes(c, {3, 3}));
    RETURN_IF_ERROR(CheckEpilogue(*shared, c));
    if (c.shape[0] == c.operands[0][0] && c.shape[2] == c.operands[0][1]) return absl::OkStatus();
    return WrongCase(c, "expected F of ", c.shape[0], "x", c.shape[2], "xN, found ",
                     ShapeText(c.operands[0]));
  };
  row.tensors = [matmul](const OperatorCase& c) {
    const BatchedMatmul k = matmul(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}, {"F", c.dtype, c.operands[0]}};
    if (k.bias) specs.push_back({"B", k.sum, {k.co}});
    specs.push_back({"Y", k.out, {k.batch, k.rows, k.co}});
    return specs;
  };
  row.work = [matmul](const OperatorCase& c) {
    const BatchedMatmul k = matmul(c);
    isa::Work work;
    work.gmem_bytes = k.batch * ((k.rows + k.co) * k.k * ir::ByteSize(k.in) +
                                 k.rows * k.co * ir::ByteSize(k.out)) +
                      (k.bias ? 4 * k.co : 0);
    work.macs = k.batch * k.rows * k.co * k.k;
    work.mac_type = k.in;
    work.vector_elements = k.batch * k.rows * k.co * k.VectorOperations();
    work.vector_type = Type::kF32;
    return work;
  };
  row.reference = [matmul](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                           absl::Span<ir::Tensor> out) { Reference(matmul(c), false, in, out[0]); };
  row.processor_reference = [matmul](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                     absl::Span<ir::Tensor> out) {
    Reference(matmul(c), true, in, out[0]);
  };
  ScheduleByExpressions(
      row, [matmul](te::Graph& g, const OperatorCase& c) { return Express(g, matmul(c)); },
      row.name);
  return row;
}

// ---- attention ---------------------------------------------------------------------------------

struct AttentionCase {
  int64_t heads, rows, keys, size;
  double scale;
};

// [tensor-program attention begin]
// Scores and their weights are of the type of Q; all sums are of f32.
Tensor Attention(te::Graph& g, Type type, const AttentionCase& k) {
  const Type wide = SumType(type);
  const Tensor q = g.Placeholder("Q", {k.heads, k.rows, k.size}, type);
  const Tensor key = g.Placeholder("K", {k.heads, k.keys, k.size}, type);
  const Tensor value = g.Placeholder("V", {k.heads, k.keys, k.size}, type);
  const te::Shape scores = {k.heads, k.rows, k.keys}, rows = {k.heads, k.rows};
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.size), r = g.ReduceAxisOf("r", k.keys);
  const Tensor p = g.Compute("P", scores, [&](Expr h, Expr y, Expr x) {
    return te::ReduceSum(To(wide, q(h, y, i)) * To(wide, key(h, x, i)), i);
  });
  const Tensor s = g.Compute("S", scores, [&](Expr h, Expr y, Expr x) {
    return To(type, p(h, y, x) * ir::ConstantLike(p(h, y, x), k.scale));
  });
  const Tensor m =
      g.Compute("M", rows, [&](Expr h, Expr y) { return te::ReduceMax(s(h, y, r), r); });
  const Tensor e = g.Compute("E", scores, [&](Expr h, Expr y, Expr x) {
    return g.context().Call(type, "exp", {s(h, y, x) - m(h, y)});
  });
  const Tensor all =
      g.Compute("A", rows, [&](Expr h, Expr y) { return te::ReduceSum(To(wide, e(h, y, r)), r); });
  const Tensor o = g.Compute("O", {k.heads, k.rows, k.size}, [&](Expr h, Expr y, Expr x) {
    return te::ReduceSum(To(wide, e(h, y, r)) * To(wide, value(h, r, x)), r);
  });
  const Tensor part = g.Compute("Z", rows, [&](Expr h, Expr y) { return 1 / all(h, y); });
  return g.Compute("Y", o.shape(),
                   [&](Expr h, Expr y, Expr x) { return To(type, o(h, y, x) * part(h, y)); });
}
// [tensor-program attention end]

isa::Work AttentionWork(const AttentionCase& k, Type type) {
  isa::Work work;
  work.gmem_bytes = 2 * k.heads * (k.rows + k.keys) * k.size * ir::ByteSize(type);
  work.macs = 2 * k.heads * k.rows * k.keys * k.size;
  work.mac_type = type;
  // For each score its scale, the largest of them, the difference, exp and the sum.
  work.vector_elements = 5 * k.heads * k.rows * k.keys;
  work.vector_type = type;
  return work;
}

Operator AttentionRow() {
  Operator row;
  row.name = "attention";
  row.doc = "Y = softmax(scale * Q * transpose of K) * V for each head; of floats";
  row.floats_only = true;
  row.shapes = {"Q (H, L, D)"};
  row.optional_shapes = {"K and V (H, KEYS, D), if other than Q's"};
  row.attributes = {{"scale", "auto", "factor of the scores; auto: 1 / the root of D"}};
  // Scores and their weights are rounded to the type, the reference rounds once.
  row.tolerance_of_largest = 1e-2;
  const auto shared = std::make_shared<Operator>(row);
  const auto read = [shared](const OperatorCase& c) {
    const te::Shape& keys = c.operands.empty() ? c.shape : c.operands[0];
    AttentionCase k = {.heads = c.shape[0],
                       .rows = c.shape[1],
                       .keys = keys[1],
                       .size = c.shape[2],
                       .scale = 1 / std::sqrt(static_cast<double>(c.shape[2]))};
    double scale;
    if (absl::SimpleAtod(ToAbsl(AttributeWord(*shared, c, "scale")), &scale)) k.scale = scale;
    return k;
  };
  row.check = [](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckShapes(c, std::vector<size_t>(c.operands.size() + 1, 3)));
    if (c.operands.empty() || (c.operands[0][0] == c.shape[0] && c.operands[0][2] == c.shape[2])) {
      return absl::OkStatus();
    }
    return WrongCase(c, "expected K and V of ", c.shape[0], "xKEYSx", c.shape[2], ", found ",
                     ShapeText(c.operands[0]));
  };
  row.tensors = [](const OperatorCase& c) {
    const te::Shape& keys = c.operands.empty() ? c.shape : c.operands[0];
    return std::vector<TensorSpec>{{"Q", c.dtype, c.shape},
                                   {"K", c.dtype, keys},
                                   {"V", c.dtype, keys},
                                   {"Y", c.dtype, c.shape}};
  };
  // Scores of a few units: of large ones all but one weight are 0.
  row.input = [tensors = row.tensors](const OperatorCase& c, size_t i, uint64_t seed) {
    const TensorSpec spec = tensors(c)[i];
    ir::Tensor tensor(spec.type, spec.shape);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      tensor.SetValue(k, 2 * ir::UniformFloat(seed, static_cast<uint64_t>(k)));
    }
    return tensor;
  };
  row.work = [read](const OperatorCase& c) { return AttentionWork(read(c), c.dtype); };
  row.reference = [read](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                         absl::Span<ir::Tensor> out) {
    ReferenceAttention(read(c).scale, in[0], in[1], in[2], out[0]);
  };
  ScheduleByExpressions(
      row, [read](te::Graph& g, const OperatorCase& c) { return Attention(g, c.dtype, read(c)); },
      row.name);
  return row;
}

}  // namespace

std::vector<Operator> AttentionOperators() { return {BatchedMatmulRow(), AttentionRow()}; }

}  // namespace polynao::kernels
