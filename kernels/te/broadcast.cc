#include "kernels/te/broadcast.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/layout.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axis;
using te::Schedule;
using te::Shape;
using te::Tensor;

using Value = std::function<Expr(Expr a, Expr b)>;

// One dimension of the result, or several neighbouring ones along which the same operands vary.
struct Dimension {
  int64_t extent = 1;
  std::array<bool, 2> varies = {true, true};  // A, B
};

// The shape of the result; absent if the two shapes cannot be broadcast.
std::optional<Shape> ResultShape(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
    const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - d] = x == 1 ? y : x;
  }
  return shape;
}

// The result's dimensions, merged into as few as possible, at least one.
std::vector<Dimension> Dimensions(const Shape& a, const Shape& b) {
  const Shape shape = *ResultShape(a, b);
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const auto varies = [&](const Shape& operand) {
      const size_t missing = shape.size() - operand.size();
      return d >= missing && operand[d - missing] != 1;
    };
    const Dimension dimension = {shape[d], {varies(a), varies(b)}};
    if (!dimensions.empty() && dimensions.back().varies == dimension.varies) {
      dimensions.back().extent *= dimension.extent;
    } else {
      dimensions.push_back(dimension);
    }
  }
  if (dimensions.empty()) dimensions.emplace_back();
  return dimensions;
}

// A case of two shapes.
struct Case {
  std::vector<Dimension> dimensions;
  std::array<Shape, 2> shapes;
  ir::Type type;
  std::string op;

  explicit Case(const OperatorCase& c)
      : dimensions(Dimensions(c.shape, c.operands[0])),
        shapes({c.shape, c.operands[0]}),
        type(c.dtype),
        op(c.op) {}

  // Whether an operand is as large as the result.
  bool IsWhole(size_t operand) const {
    return std::all_of(dimensions.begin(), dimensions.end(),
                       [operand](const Dimension& d) { return d.varies[operand]; });
  }
  Shape ShapeFrom(size_t first, int64_t first_extent) const {
    Shape shape = {first_extent};
    for (size_t d = first + 1; d < dimensions.size(); ++d) shape.push_back(dimensions[d].extent);
    return shape;
  }
  Shape Result() const { return ShapeFrom(0, dimensions[0].extent); }
  // The extents (or indices) of an operand's own dimensions, given those of the result's dimensions
  // from `first` on; `one` is that of a single element.
  template <typename T>
  std::vector<T> Own(size_t operand, const std::vector<T>& all, T one, size_t first = 0) const {
    std::vector<T> own;
    for (size_t d = first; d < dimensions.size(); ++d) {
      if (dimensions[d].varies[operand]) own.push_back(all[d - first]);
    }
    if (own.empty()) own.push_back(one);
    return own;
  }
};

// [tensor-program broadcast begin]
Tensor Express(te::Graph& g, const Case& k, const Value& value) {
  const Shape shape = k.Result();
  std::array<Tensor, 2> in;  // in their own dimensions
  for (size_t o = 0; o < 2; ++o) {
    in[o] = g.Reshape(g.Placeholder(o == 0 ? "A" : "B", k.shapes[o], k.type),
                      k.Own<int64_t>(o, shape, 1));
  }
  return g.Compute("C", shape, [&](const te::Axes& at) {
    const Expr zero = g.context().Int(g.index_type(), 0);
    return value(in[0](k.Own(0, at, zero)), in[1](k.Own(1, at, zero)));
  });
}
// [tensor-program broadcast end]

bool IsBroadcast(const OperatorCase& c) { return !c.operands.empty() && c.operands[0] != c.shape; }

}  // namespace

Operator WithBroadcasting(Operator row, BinaryOp op, Value value) {
  const Operator plain = row;
  row.optional_shapes = {"B, if other than A's: repeated as numpy does"};
  row.check = [](const OperatorCase& c) {
    if (!IsBroadcast(c) || ResultShape(c.shape, c.operands[0])) return absl::OkStatus();
    return WrongCase(c, "expected shapes that agree from the last dimension on, or are 1 there");
  };
  row.tensors = [plain](const OperatorCase& c) {
    std::vector<TensorSpec> specs = plain.tensors(c);
    if (!IsBroadcast(c)) return specs;
    specs[1].shape = c.operands[0];
    specs[2].shape = *ResultShape(c.shape, c.operands[0]);
    return specs;
  };
  row.work = [plain](const OperatorCase& c) {
    if (!IsBroadcast(c)) return plain.work(c);
    const int64_t n = te::ElementCount(*ResultShape(c.shape, c.operands[0]));
    isa::Work work;
    work.gmem_bytes =
        (te::ElementCount(c.shape) + te::ElementCount(c.operands[0]) + n) * ir::ByteSize(c.dtype);
    work.vector_elements = n;
    work.vector_type = c.dtype;
    return work;
  };
  row.reference = [op](const OperatorCase&, absl::Span<const ir::Tensor> in,
                       absl::Span<ir::Tensor> out) {
    ReferenceBinary(op, ReferenceBroadcast(in[0], out[0].shape),
                    ReferenceBroadcast(in[1], out[0].shape), out[0]);
  };
  Operator broadcast = plain;
  ScheduleByExpressions(
      broadcast,
      [value](te::Graph& g, const OperatorCase& c) { return Express(g, Case(c), value); },
      StrCat(plain.name, "_broadcast"));
  const auto either = [](const auto& of_two_shapes, const auto& of_one) {
    return [of_two_shapes, of_one](const OperatorCase& c, const auto&... rest) {
      return IsBroadcast(c) ? of_two_shapes(c, rest...) : of_one(c, rest...);
    };
  };
  row.build = either(broadcast.build, plain.build);
  row.schedules = either(broadcast.schedules, plain.schedules);
  row.first_schedules = either(broadcast.first_schedules, plain.first_schedules);
  row.estimate = either(broadcast.estimate, plain.estimate);
  return row;
}

}  // namespace polynao::kernels
