#include "kernels/te/reduce.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/reduce.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axis;
using te::Schedule;
using te::Tensor;

// A case: X (outer, count, inner) becomes Y (outer, inner).
struct Reduction {
  ReduceOp op;
  Type type, sum;
  int64_t outer = 1, count = 1, inner = 1;

  // Means of one element are that element.
  bool has_mean() const { return op == ReduceOp::kMean && count > 1; }
  bool adds() const { return op == ReduceOp::kSum || op == ReduceOp::kMean; }
  te::Reducer reducer() const {
    return adds()                 ? te::Reducer::kSum
           : op == ReduceOp::kMax ? te::Reducer::kMax
                                  : te::Reducer::kMin;
  }
};

// [tensor-program reduce begin]
// The sums (maxima, minima), in the sum's type, and what follows from them; the result is the last.
std::vector<Tensor> Express(te::Graph& g, const Reduction& k, const te::Shape& shape) {
  const Tensor x = g.Reshape(g.Placeholder("X", shape, k.type), {k.outer, k.count, k.inner});
  const bool narrows = k.sum != k.type;
  const te::Shape result = {k.outer, k.inner};
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.count);
  std::vector<Tensor> t = {
      g.Compute(k.has_mean() || narrows ? "S" : "Y", result,
                [&](Expr o, Expr i) { return te::Body(k.reducer(), To(k.sum, x(o, r, i)), {r}); })};
  if (k.has_mean()) {
    t.push_back(g.Compute(narrows ? "M" : "Y", result,
                          [&](Expr o, Expr i) { return MeanOf(t[0](o, i), k.count); }));
  }
  if (narrows) {
    const Tensor last = t.back();
    t.push_back(g.Compute("Y", result, [&](Expr o, Expr i) { return To(k.type, last(o, i)); }));
  }
  return t;
}

// [tensor-program reduce end]

// The axes from `axis` on, `axes` of them, of which `axis` may be counted from the end.
Reduction Along(ReduceOp op, const OperatorCase& c, int64_t axis, int64_t axes) {
  const int64_t rank = static_cast<int64_t>(c.shape.size());
  if (axis < 0) axis += rank;
  Reduction k{.op = op, .type = c.dtype, .sum = c.dtype};
  if (k.adds()) k.sum = SumType(c.dtype);
  for (int64_t d = 0; d < rank; ++d) {
    (d < axis ? k.outer : d < axis + axes ? k.count : k.inner) *= c.shape[d];
  }
  return k;
}

// A row of the table; `reduction` reads a case, `output` says the result's shape.
Operator MakeOperator(Operator row, ReduceOp op,
                      const std::function<Reduction(const OperatorCase&)>& reduction,
                      const std::function<std::vector<int64_t>(const OperatorCase&)>& output) {
  row.tensors = [output](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, output(c)}};
  };
  row.work = [reduction](const OperatorCase& c) {
    const Reduction k = reduction(c);
    isa::Work work;
    work.gmem_bytes = k.outer * (k.count + 1) * k.inner * ir::ByteSize(k.type);
    work.vector_elements = k.outer * (k.count - 1) * k.inner;
    work.vector_type = k.sum;
    return work;
  };
  // Cores may share a sum; then its parts are added up in another order.
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) {
    row.tolerance_of_largest = 2e-3;
    row.only_card_reorders = true;
  }
  row.reference = [reduction, op](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                  absl::Span<ir::Tensor> out) {
    const Reduction k = reduction(c);
    ReferenceReduce(op, k.outer, k.count, k.inner, in[0], out[0]);
  };
  ScheduleByExpressions(
      row,
      [reduction](te::Graph& g, const OperatorCase& c) {
        return Express(g, reduction(c), c.shape).back();
      },
      row.name);
  return row;
}

absl::Status Check(const Operator& op, const OperatorCase& c) {
  const int64_t rank = static_cast<int64_t>(c.shape.size());
  if (rank == 0) return WrongCase(c, "expected 1 dimension or more");
  RETURN_IF_ERROR(CheckShapes(c, {c.shape.size()}));
  RETURN_IF_ERROR(CheckNumber(op, c, "axis", -rank, rank - 1));
  const int64_t axis = *AttributeInt(op, c, "axis");
  return CheckNumber(op, c, "axes", 1, axis < 0 ? -axis : rank - axis);
}

Operator ReduceRow(const char* name, const char* doc, ReduceOp op) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.floats_only = row.takes_i8 = op == ReduceOp::kMean;
  row.shapes = {"X of 1 or more dimensions"};
  row.attributes = {{"axis", "-1", "the first axis that goes; -1: the last one there is"},
                    {"axes", "1", "how many neighbouring axes go"}};
  const auto shared = std::make_shared<Operator>(row);
  row.check = [shared, op](const OperatorCase& c) {
    using enum Type;
    if (op == ReduceOp::kSum) RETURN_IF_ERROR(CheckType(c, {kF16, kBF16, kF32, kF64, kI32, kI64}));
    return Check(*shared, c);
  };
  const auto reduction = [shared, op](const OperatorCase& c) {
    return Along(op, c, *AttributeInt(*shared, c, "axis"), *AttributeInt(*shared, c, "axes"));
  };
  const auto output = [shared](const OperatorCase& c) {
    int64_t axis = *AttributeInt(*shared, c, "axis");
    if (axis < 0) axis += static_cast<int64_t>(c.shape.size());
    std::vector<int64_t> shape = c.shape;
    shape.erase(shape.begin() + axis, shape.begin() + axis + *AttributeInt(*shared, c, "axes"));
    return shape;
  };
  return MakeOperator(std::move(row), op, reduction, output);
}

Operator GlobalAveragePool() {
  Operator row;
  row.name = "global_avg_pool";
  row.doc = "Y (1, 1, C) = the mean of all rows and columns of X (H, W, C); of floats and i8";
  row.floats_only = row.takes_i8 = true;
  row.shapes = {"image (H, W, C)"};
  row.check = [](const OperatorCase& c) { return CheckShapes(c, {3}); };
  return MakeOperator(
      std::move(row), ReduceOp::kMean,
      [](const OperatorCase& c) { return Along(ReduceOp::kMean, c, 0, 2); },
      [](const OperatorCase& c) { return std::vector<int64_t>{1, 1, c.shape[2]}; });
}

}  // namespace

std::vector<Operator> ReduceOperators() {
  return {
      ReduceRow("reduce_sum", "Y = the sums of X along axes", ReduceOp::kSum),
      ReduceRow("reduce_mean", "Y = the means of X along axes; of floats and i8", ReduceOp::kMean),
      ReduceRow("reduce_max", "Y = the largest elements of X along axes", ReduceOp::kMax),
      ReduceRow("reduce_min", "Y = the smallest elements of X along axes", ReduceOp::kMin),
      GlobalAveragePool()};
}

}  // namespace polynao::kernels
