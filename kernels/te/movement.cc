#include "kernels/te/movement.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/te/graph.h"
#include "isa/instruction_set.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/layout.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;
using te::Shape;
using te::Tensor;

// The attribute as `count` whole numbers; `otherwise` where the list is empty.
absl::StatusOr<Shape> Numbers(const Operator& op, const OperatorCase& c, const char* name,
                              size_t count, const Shape& otherwise) {
  Shape numbers;
  for (const double number : AttributeList(op, c, name)) {
    if (number != std::floor(number) || std::abs(number) > 0x1p40) {
      return WrongCase(c, "attribute ", name, ": expected whole numbers, found ", number);
    }
    numbers.push_back(static_cast<int64_t>(number));
  }
  if (numbers.empty()) return otherwise;
  if (numbers.size() == count) return numbers;
  return WrongCase(c, "attribute ", name, ": expected ", count, " numbers, found ", numbers.size());
}

absl::Status CheckRank(const OperatorCase& c) {
  if (c.shape.empty()) return WrongCase(c, "expected 1 dimension or more");
  return CheckShapes(c, std::vector<size_t>(1 + c.operands.size(), c.shape.size()));
}

// Each tensor crosses GMEM once.
isa::Work MovedBytes(const std::vector<TensorSpec>& tensors) {
  isa::Work work;
  for (const TensorSpec& spec : tensors) {
    work.gmem_bytes += te::ElementCount(spec.shape) * ir::ByteSize(spec.type);
  }
  return work;
}

// ---- transpose, slice, flip --------------------------------------------------------------------

// Y, whose dimension d runs along X's dimension from[d]: from begin[d] in steps of step[d].
struct Walk {
  Shape output, from, begin, step;
};

Walk WholeOf(const Shape& shape) {
  Walk k = {shape, {}, Shape(shape.size(), 0), Shape(shape.size(), 1)};
  for (size_t d = 0; d < shape.size(); ++d) k.from.push_back(static_cast<int64_t>(d));
  return k;
}

using Walks = absl::StatusOr<Walk> (*)(const Operator&, const OperatorCase&);

absl::StatusOr<Walk> Transposed(const Operator& op, const OperatorCase& c) {
  Walk k = WholeOf(c.shape);
  const Shape order = k.from;
  const Shape reversed(order.rbegin(), order.rend());
  ASSIGN_OR_RETURN(k.from, Numbers(op, c, "perm", order.size(), reversed));
  if (!std::is_permutation(order.begin(), order.end(), k.from.begin())) {
    return WrongCase(c, "attribute perm: expected each number from 0 to ", order.size() - 1,
                     " once, found '", AttributeWord(op, c, "perm"), "'");
  }
  for (size_t d = 0; d < order.size(); ++d) k.output[d] = c.shape[k.from[d]];
  return k;
}

// Bounds as numpy takes them: those below 0 count from the end, and what is beyond the ends is cut off.
absl::StatusOr<Walk> Sliced(const Operator& op, const OperatorCase& c) {
  Walk k = WholeOf(c.shape);
  ASSIGN_OR_RETURN(k.begin, Numbers(op, c, "begin", c.shape.size(), k.begin));
  ASSIGN_OR_RETURN(const Shape end, Numbers(op, c, "end", c.shape.size(), c.shape));
  ASSIGN_OR_RETURN(k.step, Numbers(op, c, "step", c.shape.size(), k.step));
  for (size_t d = 0; d < c.shape.size(); ++d) {
    const auto bound = [&](int64_t i) {
      return std::clamp<int64_t>(i < 0 ? i + c.shape[d] : i, 0, c.shape[d]);
    };
    k.begin[d] = bound(k.begin[d]);
    if (k.step[d] < 1) return WrongCase(c, "attribute step: expected 1 or more, found ", k.step[d]);
    k.output[d] = (bound(end[d]) - k.begin[d] + k.step[d] - 1) / k.step[d];
    if (bound(end[d]) <= k.begin[d]) return WrongCase(c, "dimension ", d, ": the slice is empty");
  }
  return k;
}

absl::StatusOr<Walk> Flipped(const Operator& op, const OperatorCase& c) {
  Walk k = WholeOf(c.shape);
  const int64_t rank = static_cast<int64_t>(c.shape.size());
  RETURN_IF_ERROR(CheckNumber(op, c, "axis", -rank, rank - 1));
  const int64_t axis = (*AttributeInt(op, c, "axis") + rank) % rank;
  k.begin[axis] = c.shape[axis] - 1;
  k.step[axis] = -1;
  return k;
}

// [tensor-program walk begin]
Tensor Express(te::Graph& g, const OperatorCase& c, const Walk& k) {
  const Tensor x = g.Placeholder("X", c.shape, c.dtype);
  return g.Compute("Y", k.output, [&](const Axes& at) {
    Axes place(at.size());
    for (size_t d = 0; d < at.size(); ++d) {
      place[k.from[d]] = at[d] * static_cast<int>(k.step[d]) + static_cast<int>(k.begin[d]);
    }
    return x(place);
  });
}

// A number whose digits have these bases, the first one most significant, is reversed digit by digit.
std::vector<int64_t> DigitsOf(int64_t count) {
  constexpr int64_t kMost = 16;
  std::vector<int64_t> digits;
  while (count > kMost) {
    int64_t base = kMost;
    while (base > 1 && count % base != 0) --base;
    if (base == 1) break;
    digits.insert(digits.begin(), base);
    count /= base;
  }
  digits.insert(digits.begin(), count);
  return digits;
}

// A copy has no negative stride: along the last axis one takes a single element of each row. Of digits it takes all
// elements with one value of a digit.
Tensor ExpressFlip(te::Graph& g, const OperatorCase& c, const Walk& k) {
  const std::vector<int64_t> digits = DigitsOf(c.shape.back());
  if (k.step.back() == 1 || digits.size() == 1) return Express(g, c, k);
  Shape shape = {te::ElementCount(c.shape) / c.shape.back()};
  shape.insert(shape.end(), digits.begin(), digits.end());
  Tensor t = g.Reshape(g.Placeholder("X", c.shape, c.dtype), shape);
  for (size_t d = shape.size(); --d > 0;) {
    t = g.Compute(d == 1 ? "Y" : StrCat("T", d), shape, [&](const Axes& at) {
      Axes from = at;
      from[d] = shape[d] - 1 - at[d];
      return t(from);
    });
  }
  return t;
}
// [tensor-program walk end]

Operator WalkRow(const char* name, const char* doc, std::vector<OperatorAttribute> attributes,
                 Walks walk, decltype(&Express) express = Express) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.shapes = {"X of 1 or more dimensions"};
  row.attributes = std::move(attributes);
  const auto shared = std::make_shared<Operator>(row);
  const auto of = [shared, walk](const OperatorCase& c) { return *walk(*shared, c); };
  row.check = [shared, walk](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckRank(c));
    return walk(*shared, c).status();
  };
  row.tensors = [of](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, of(c).output}};
  };
  row.work = [of](const OperatorCase& c) {
    // What is not in the result need not be read.
    const Shape moved = of(c).output;
    return MovedBytes({{"X", c.dtype, moved}, {"Y", c.dtype, moved}});
  };
  row.reference = [of](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                       absl::Span<ir::Tensor> out) {
    const Walk k = of(c);
    ReferenceWalk(k.from, k.begin, k.step, in[0], out[0]);
  };
  ScheduleByExpressions(
      row, [of, express](te::Graph& g, const OperatorCase& c) { return express(g, c, of(c)); },
      name);
  return row;
}

// What changes no number when it is added: x + 0 is 0 for x = -0.
Expr Nothing(te::Graph& g, ir::Type type) {
  return ir::IsFloat(type) ? g.context().Float(type, -0.0) : g.context().Int(type, 0);
}

// Whether the card adds elements of the type.
bool HasSums(ir::Type type) {
  return isa::DianNao().Find(StrCat("add.", ir::TypeName(type))) != nullptr;
}

// ---- concat ------------------------------------------------------------------------------------

Operator Concat() {
  Operator row;
  row.name = "concat";
  row.doc = "C = A, then B behind it along an axis";
  row.shapes = {"A of 1 or more dimensions", "B, other than A along the axis only"};
  row.attributes = {{"axis", "-1", "the axis along which B follows A; -1: the last one"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto axis_of = [shared](const OperatorCase& c) {
    const int64_t rank = static_cast<int64_t>(c.shape.size());
    return (*AttributeInt(*shared, c, "axis") + rank) % rank;
  };
  const auto output = [axis_of](const OperatorCase& c) {
    Shape shape = c.shape;
    shape[axis_of(c)] += c.operands[0][axis_of(c)];
    return shape;
  };
  row.check = [shared, axis_of](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckRank(c));
    const int64_t rank = static_cast<int64_t>(c.shape.size());
    RETURN_IF_ERROR(CheckNumber(*shared, c, "axis", -rank, rank - 1));
    Shape same = c.operands[0];
    same[axis_of(c)] = c.shape[axis_of(c)];
    if (same == c.shape) return absl::OkStatus();
    return WrongCase(c, "expected shapes that differ along axis ", axis_of(c), " only");
  };
  row.tensors = [output](const OperatorCase& c) {
    return std::vector<TensorSpec>{
        {"A", c.dtype, c.shape}, {"B", c.dtype, c.operands[0]}, {"C", c.dtype, output(c)}};
  };
  row.work = [tensors = row.tensors](const OperatorCase& c) { return MovedBytes(tensors(c)); };
  row.reference = [axis_of](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                            absl::Span<ir::Tensor> out) {
    ReferenceConcat(axis_of(c), in[0], in[1], out[0]);
  };
  ScheduleByExpressions(
      row,
      // [tensor-program concat begin]
      [axis_of, output](te::Graph& g, const OperatorCase& c) {
        const Tensor a = g.Placeholder("A", c.shape, c.dtype);
        const Tensor b = g.Placeholder("B", c.operands[0], c.dtype);
        const int64_t axis = axis_of(c);
        const int split = static_cast<int>(c.shape[axis]);
        return g.Compute("C", output(c), [&](const Axes& at) {
          Axes behind = at;
          behind[axis] = at[axis] - split;
          if (!HasSums(c.dtype)) {
            Axes before = at;
            before[axis] = ir::Min(at[axis], ir::ConstantLike(at[axis], split - 1));
            behind[axis] = ir::Max(behind[axis], ir::ConstantLike(at[axis], 0));
            return te::Select(at[axis] < split, a(before), b(behind));
          }
          const Expr none = Nothing(g, c.dtype);
          return te::Select(at[axis] < split, a(at), none) +
                 te::Select(at[axis] >= split, b(behind), none);
        });
      },
      // [tensor-program concat end]
      "concat");
  // Of types that the card does not add, each part is a nest of copies.
  row.loops_on_card = [](const OperatorCase& c, const Target&) { return !HasSums(c.dtype); };
  return row;
}

// ---- resize_nearest ----------------------------------------------------------------------------

Operator ResizeNearest() {
  Operator row;
  row.name = "resize_nearest";
  row.doc = "Y (H * S, W * S, C) = X (H, W, C), each pixel as a square of S rows and columns";
  row.shapes = {"image (H, W, C)"};
  row.attributes = {{"scale", "2", "S, from 1 to 64"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto scale_of = [shared](const OperatorCase& c) {
    return *AttributeInt(*shared, c, "scale");
  };
  row.check = [shared](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckShapes(c, {3}));
    return CheckNumber(*shared, c, "scale", 1, 64);
  };
  row.tensors = [scale_of](const OperatorCase& c) {
    const int64_t s = scale_of(c);
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape},
                                   {"Y", c.dtype, {c.shape[0] * s, c.shape[1] * s, c.shape[2]}}};
  };
  row.work = [tensors = row.tensors](const OperatorCase& c) { return MovedBytes(tensors(c)); };
  row.reference = [scale_of](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                             absl::Span<ir::Tensor> out) {
    ReferenceResizeNearest(scale_of(c), in[0], out[0]);
  };
  ScheduleByExpressions(
      row,
      // [tensor-program resize_nearest begin]
      [scale_of](te::Graph& g, const OperatorCase& c) {
        const int64_t s = scale_of(c);
        const Tensor x = g.Placeholder("X", c.shape, c.dtype);
        return g.Compute(
            "Y", {c.shape[0], s, c.shape[1], s, c.shape[2]},
            [&](Expr y, Expr, Expr column, Expr, Expr channel) { return x(y, column, channel); });
      },
      // [tensor-program resize_nearest end]
      row.name);
  return row;
}

// ---- resize_bilinear ---------------------------------------------------------------------------

// [tensor-program resize_bilinear begin]
// t with two elements for each along `axis`, these along a new axis behind it.
Tensor Twice(te::Graph& g, const std::string& name, const Tensor& t, size_t axis) {
  const Expr none = Nothing(g, t.type());
  const auto blended = [&](const char* side, bool is_behind) {
    return g.Compute(name + side, t.shape(), [&](const Axes& at) {
      Axes next = at;
      next[axis] = is_behind ? at[axis] + 1 : at[axis] - 1;
      const Expr has_next =
          is_behind ? at[axis] < static_cast<int>(t.shape()[axis]) - 1 : at[axis] >= 1;
      const Expr neighbour =
          te::Select(has_next, t(next), none) + te::Select(ir::Not(has_next), t(at), none);
      return t(at) * 0.75 + neighbour * 0.25;
    });
  };
  const Tensor before = blended(".before", false), behind = blended(".behind", true);
  Shape shape = t.shape();
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, 2);
  return g.Compute(name, shape, [&](const Axes& at) {
    const Expr side = at[axis + 1];
    Axes own = at;
    own.erase(own.begin() + static_cast<ptrdiff_t>(axis) + 1);
    return te::Select(side < 1, before(own), none) + te::Select(side >= 1, behind(own), none);
  });
}
// [tensor-program resize_bilinear end]

Operator ResizeBilinear() {
  Operator row;
  row.name = "resize_bilinear";
  row.doc = "Y (H * 2, W * 2, C): X (H, W, C) between its pixels, edges repeated; of floats";
  row.floats_only = true;
  row.shapes = {"image (H, W, C)"};
  row.check = [](const OperatorCase& c) { return CheckShapes(c, {3}); };
  row.tensors = [](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape},
                                   {"Y", c.dtype, {c.shape[0] * 2, c.shape[1] * 2, c.shape[2]}}};
  };
  row.work = [tensors = row.tensors](const OperatorCase& c) {
    isa::Work work = MovedBytes(tensors(c));
    // A quarter, three quarters and two sums for a row's two elements; then the same for the columns of both.
    work.vector_elements = (4 + 2 * 4) * te::ElementCount(c.shape);
    work.vector_type = c.dtype;
    return work;
  };
  row.reference = [](const OperatorCase&, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) { ReferenceResizeBilinear(in[0], out[0]); };
  ScheduleByExpressions(
      row,
      [](te::Graph& g, const OperatorCase& c) {
        return Twice(g, "Y", Twice(g, "T", g.Placeholder("X", c.shape, c.dtype), 0), 2);
      },
      row.name);
  return row;
}

// ---- rotary ------------------------------------------------------------------------------------

// "RoFormer: Enhanced Transformer with Rotary Position Embedding" (Su et al.); the two numbers of a pair stand half a
// row apart.
Operator Rotary() {
  Operator row;
  row.name = "rotary";
  row.doc = "Y = X * COS + R * SIN, R = (-X1, X0) where a row of X is (X0, X1); of floats";
  row.floats_only = true;
  row.shapes = {"X (.., S, D), D even"};
  row.check = [](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckRank(c));
    if (c.shape.size() >= 2 && c.shape.back() % 2 == 0) return absl::OkStatus();
    return WrongCase(c, "expected 2 dimensions or more, the last one even");
  };
  row.tensors = [](const OperatorCase& c) {
    const Shape table(c.shape.end() - 2, c.shape.end());
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape},
                                   {"COS", c.dtype, table},
                                   {"SIN", c.dtype, table},
                                   {"Y", c.dtype, c.shape}};
  };
  row.work = [tensors = row.tensors](const OperatorCase& c) {
    isa::Work work = MovedBytes(tensors(c));
    work.vector_elements = 3 * te::ElementCount(c.shape);
    work.vector_type = c.dtype;
    return work;
  };
  row.reference = [](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) {
    const int64_t half = c.shape.back() / 2;
    ir::Tensor rotated = in[0], products = in[0], turned = in[0];
    for (int64_t i = 0; i < rotated.element_count(); ++i) {
      const bool is_first = i / half % 2 == 0;
      rotated.SetValue(i, is_first ? 0 - in[0].Float(i + half) : in[0].Float(i - half));
    }
    ReferenceBinary(BinaryOp::kMul, in[0], ReferenceBroadcast(in[1], c.shape), products);
    ReferenceBinary(BinaryOp::kMul, rotated, ReferenceBroadcast(in[2], c.shape), turned);
    ReferenceBinary(BinaryOp::kAdd, products, turned, out[0]);
  };
  ScheduleByExpressions(
      row,
      // [tensor-program rotary begin]
      [](te::Graph& g, const OperatorCase& c) {
        const int64_t rows = c.shape[c.shape.size() - 2], half = c.shape.back() / 2;
        const int64_t outer = te::ElementCount(c.shape) / rows / half / 2;
        const Shape table = {rows, 2, half}, table_of = {rows, 2 * half};
        const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), {outer, rows, 2, half});
        const Tensor cosine = g.Reshape(g.Placeholder("COS", table_of, c.dtype), table);
        const Tensor sine = g.Reshape(g.Placeholder("SIN", table_of, c.dtype), table);
        return g.Compute("Y", x.shape(), [&](Expr o, Expr s, Expr h, Expr d) {
          const Expr first = te::Select(h >= 1, x(o, s, h - 1, d), 0);
          const Expr second = te::Select(h < 1, x(o, s, h + 1, d), 0);
          return x(o, s, h, d) * cosine(s, h, d) + (first - second) * sine(s, h, d);
        });
      },
      // [tensor-program rotary end]
      row.name);
  return row;
}

}  // namespace

std::vector<Operator> MovementOperators() {
  return {
      WalkRow("transpose", "Y = X with its dimensions in another order",
              {{"perm",
                "",
                "the dimension of X that each dimension of Y is, 1:0:2; default: "
                "the last one first",
                {},
                true}},
              Transposed),
      WalkRow("slice", "Y = every step-th element of X from begin to end along each dimension",
              {{"begin", "", "of each dimension, 0:2; below 0: from the end; default: 0", {}, true},
               {"end", "", "of each dimension, behind the last element; default: X's", {}, true},
               {"step", "", "of each dimension, 1 or more; default: 1", {}, true}},
              Sliced),
      WalkRow("flip", "Y = X with the elements along an axis in reverse order",
              {{"axis", "-1", "the axis; -1: the last one"}}, Flipped, ExpressFlip),
      Concat(),
      ResizeNearest(),
      ResizeBilinear(),
      Rotary()};
}

}  // namespace polynao::kernels
