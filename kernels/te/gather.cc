#include "kernels/te/gather.h"

#include <algorithm>
#include <cstddef>

#include "base/status.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/random_value.h"
#include "compiler/te/graph.h"
#include "kernels/reference/layout.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Shape;
using te::Tensor;

Shape ResultShape(const OperatorCase& c) {
  Shape shape = c.operands[0];
  shape.insert(shape.end(), c.shape.begin() + 1, c.shape.end());
  return shape;
}

// [tensor-program gather begin]
// Numbers are a list and rows are flat, whatever dimensions they have, so that cores share them evenly.
Tensor Express(te::Graph& g, const OperatorCase& c) {
  const int64_t rows = c.shape[0], count = te::ElementCount(c.operands[0]);
  const int64_t length = te::ElementCount(c.shape) / rows;
  const Tensor x = g.Placeholder("X", {rows, length}, c.dtype);
  const Tensor i = g.Placeholder("I", {count}, Type::kI32);
  return g.Compute("Y", {count, length}, [&](Expr k, Expr column) {
    const Expr number = i(k);
    const Expr last = ir::ConstantLike(number, rows - 1);
    return x(ir::Min(ir::Max(number, ir::ConstantLike(number, 0)), last), column);
  });
}
// [tensor-program gather end]

}  // namespace

std::vector<Operator> GatherOperators() {
  Operator row;
  row.name = "gather";
  row.doc = "Y[i, ..] = X[I[i], ..], I of i32; a number outside of X takes X's nearest row";
  row.shapes = {"X (N, ..)", "I of 1 or more dimensions"};
  row.check = [](const OperatorCase& c) {
    if (c.shape.empty() || c.operands[0].empty()) {
      return WrongCase(c, "expected 1 dimension or more");
    }
    RETURN_IF_ERROR(CheckShapes(c, {c.shape.size(), c.operands[0].size()}));
    if (c.shape[0] < int64_t{1} << 31) return absl::OkStatus();
    return WrongCase(c, "expected at most 2^31 rows, as I's type can number, found ", c.shape[0]);
  };
  row.tensors = [](const OperatorCase& c) {
    return std::vector<TensorSpec>{
        {"X", c.dtype, c.shape}, {"I", Type::kI32, c.operands[0]}, {"Y", c.dtype, ResultShape(c)}};
  };
  // Numbers from two below X's first row to two behind its last one; X has any values.
  row.input = [tensors = row.tensors](const OperatorCase& c, size_t i, uint64_t seed) {
    const TensorSpec spec = tensors(c)[i];
    if (i == 0) return ir::RandomTensor(spec.type, spec.shape, seed, ir::Values::kAll);
    ir::Tensor tensor(spec.type, spec.shape);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      const uint64_t number =
          ir::Splitmix(seed, static_cast<uint64_t>(k)) % static_cast<uint64_t>(c.shape[0] + 4);
      tensor.SetInt(k, static_cast<int64_t>(number) - 2);
    }
    return tensor;
  };
  row.work = [tensors = row.tensors](const OperatorCase& c) {
    // Rows that are taken several times need cross GMEM once only.
    const std::vector<TensorSpec> specs = tensors(c);
    const int64_t moved = te::ElementCount(specs[2].shape);
    isa::Work work;
    work.gmem_bytes = te::ElementCount(specs[1].shape) * ir::ByteSize(Type::kI32) +
                      (moved + std::min(moved, te::ElementCount(c.shape))) * ir::ByteSize(c.dtype);
    return work;
  };
  row.reference = [](const OperatorCase&, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) { ReferenceGather(in[0], in[1], out[0]); };
  ScheduleByExpressions(row, Express, row.name);
  return {row};
}

}  // namespace polynao::kernels
