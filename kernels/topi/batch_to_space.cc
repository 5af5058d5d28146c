#include "kernels/topi/batch_to_space.h"

#include <cmath>
#include <utility>

#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/layout.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;

struct BatchToSpace {
  ir::Type type = ir::Type::kF32;
  te::Shape shape, out_shape;
  te::Shape block, begin;  // per spatial axis, which are the dimensions after the first
};

absl::StatusOr<te::Shape> Numbers(const Operator& row, const OperatorCase& c, const char* name,
                                  size_t count, int64_t low) {
  te::Shape numbers;
  for (const double number : AttributeList(row, c, name)) {
    if (number != std::floor(number) || number < static_cast<double>(low) || number > 1 << 20) {
      return WrongShape(c, "expected whole numbers of ", low, " and more as ", name, ", found ",
                        number);
    }
    numbers.push_back(static_cast<int64_t>(number));
  }
  if (numbers.empty()) numbers.assign(count, low);
  if (numbers.size() == count) return numbers;
  return WrongShape(c, "expected ", count, " numbers as ", name, ", found ", numbers.size());
}

absl::StatusOr<BatchToSpace> Parse(const Operator& row, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {ir::Type::kF32, ir::Type::kI8, ir::Type::kI32}));
  BatchToSpace k;
  k.type = c.dtype;
  k.shape = k.out_shape = c.shape;
  RETURN_IF_ERROR(CheckRank(c, 0, c.shape.size()));
  const size_t axes = AttributeList(row, c, "block_shape").size();
  if (axes == 0 || axes >= c.shape.size()) {
    return WrongShape(c, "expected a block_shape of 1 to ", c.shape.size() - 1, " numbers, found ",
                      axes);
  }
  ASSIGN_OR_RETURN(k.block, Numbers(row, c, "block_shape", axes, 1));
  ASSIGN_OR_RETURN(k.begin, Numbers(row, c, "crop_begin", axes, 0));
  ASSIGN_OR_RETURN(const te::Shape end, Numbers(row, c, "crop_end", axes, 0));
  const int64_t blocks = te::ElementCount(k.block);
  if (c.shape[0] % blocks != 0) {
    return WrongShape(c, "expected a batch that is a multiple of ", blocks);
  }
  k.out_shape[0] /= blocks;
  for (size_t a = 0; a < axes; ++a) {
    k.out_shape[a + 1] = c.shape[a + 1] * k.block[a] - k.begin[a] - end[a];
    if (k.out_shape[a + 1] < 1) return WrongShape(c, "expected an output, found all of it cropped");
  }
  return k;
}

// As in TOPI: reshape, transpose and slice together say where an element comes from.
absl::StatusOr<ir::Function> Build(const BatchToSpace& k, const Target& target) {
  te::Graph g("batch_to_space_nd");
  const te::Tensor data = g.Placeholder("data", k.shape, k.type);
  const te::Tensor output = g.Compute("output", k.out_shape, [&](const Axes& i) {
    Axes from = i;
    Expr block;  // which one of the batch
    for (size_t a = 0; a < k.block.size(); ++a) {
      const Expr place = k.begin[a] == 0 ? i[a + 1] : i[a + 1] + k.begin[a];
      from[a + 1] = place / k.block[a];
      block = block ? block * k.block[a] + place % k.block[a] : place % k.block[a];
    }
    from[0] = block * k.out_shape[0] + i[0];
    return data(from);
  });
  te::Schedule s(output);
  ParallelElementwise(s, output, target);
  if (IsGpu(target.name)) BindElements(s, output);
  return te::Lower(s);
}

}  // namespace

std::vector<Operator> TopiBatchToSpaceOperators() {
  Operator row;
  row.name = "batch_to_space_nd";
  row.doc = "elements of the batch put side by side on spatial axes, and cropped";
  row.shapes = {"data"};
  row.attributes = {
      {.name = "block_shape", .default_value = "", .doc = "per spatial axis", .is_list = true},
      {.name = "crop_begin", .default_value = "", .doc = "elements left out", .is_list = true},
      {.name = "crop_end", .default_value = "", .doc = "elements left out", .is_list = true}};
  return {MakeRow<BatchToSpace>(
      std::move(row),
      {.parse = Parse,
       .tensors =
           [](const BatchToSpace& k) {
             return std::vector<TensorSpec>{{"data", k.type, k.shape},
                                            {"output", k.type, k.out_shape}};
           },
       .reference = [](const BatchToSpace& k, absl::Span<const ir::Tensor> in,
                       ir::Tensor& out) { ReferenceBatchToSpace(k.block, k.begin, in[0], out); },
       .build = Build})};
}

}  // namespace polynao::kernels
