#include "kernels/te/normalization.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/normalization.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axes;
using te::Tensor;

// X (outer, count, inner), of which the `count` elements of each (o, i) belong together.
struct Rows {
  int64_t outer = 1, count = 1, inner = 1;
};

Rows RowsOf(const OperatorCase& c, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(c.shape.size());
  if (axis < 0) axis += rank;
  Rows k;
  for (int64_t d = 0; d < rank; ++d) {
    (d < axis ? k.outer : d == axis ? k.count : k.inner) *= c.shape[d];
  }
  return k;
}

// All is computed in the type of sums and rounded once.
Expr Wide(Expr value) { return To(SumType(value.type()), value); }

Expr Rsqrt(Expr x) { return x.context().Call(x.type(), "rsqrt", {x}); }

// Parts of so many places that cores share evenly: the largest power of two up to 32 that divides them if that is a
// few, else the largest divisor up to 32.
int64_t PartsOf(int64_t places) {
  constexpr int64_t kMost = 32, kFew = 8;
  int64_t power = 1, divisor = 1;
  for (int64_t n = 1; n <= kMost && n <= places; ++n) {
    if (places % n != 0) continue;
    divisor = n;
    if ((n & (n - 1)) == 0) power = n;
  }
  return power >= kFew ? power : divisor;
}

// [tensor-program normalization begin]
// A tensor's first half and its second one, by `half`. Nothing is added: x - 0.0 is x.
Expr EitherOf(Expr half, Expr first, Expr second) {
  return te::Select(half < 1, first, -0.0) +
         te::Select(half < 1, ir::ConstantLike(second, -0.0), second);
}

// Of columns: the largest element and the sum of exponentials of each part, then those of all. One tensor has both of
// each, so that one pass over X finds them, and another one needs no more.
Tensor SoftmaxOfColumns(te::Graph& g, const OperatorCase& c, const Rows& k) {
  const int64_t parts = PartsOf(k.count), length = k.count / parts;
  const te::ReduceAxis r = g.ReduceAxisOf("r", length), p = g.ReduceAxisOf("p", parts);
  const te::Shape whole = {k.outer, parts, length, k.inner}, of_parts = {k.outer, parts, k.inner},
                  of_columns = {k.outer, k.inner};
  const auto exponential = [&](Expr e) { return g.context().Call(e.type(), "exp", {e}); };
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor part = g.Compute(
      "P.max", of_parts, [&](Expr o, Expr q, Expr i) { return te::ReduceMax(x(o, q, r, i), r); });
  const Tensor part_max =
      g.Compute("P.top", of_parts, [&](const Axes& at) { return Wide(part(at)); });
  const Tensor part_sum = g.Compute("P.sum", of_parts, [&](Expr o, Expr q, Expr i) {
    return te::ReduceSum(exponential(Wide(x(o, q, r, i)) - part_max(o, q, i)), r);
  });
  const Tensor both =
      g.Compute("P", {k.outer, 2, parts, k.inner}, [&](Expr o, Expr b, Expr q, Expr i) {
        return EitherOf(b, part_max(o, q, i), part_sum(o, q, i));
      });
  const Tensor m = g.Compute("M", of_columns,
                             [&](Expr o, Expr i) { return te::ReduceMax(both(o, 0, p, i), p); });
  const Tensor s = g.Compute("S", of_columns, [&](Expr o, Expr i) {
    return te::ReduceSum(both(o, 1, p, i) * exponential(both(o, 0, p, i) - m(o, i)), p);
  });
  // One quotient for a column.
  const Tensor q = g.Compute("Q", of_columns, [&](Expr o, Expr i) { return 1 / s(o, i); });
  const Tensor line = g.Compute("L", {k.outer, 2, k.inner}, [&](Expr o, Expr b, Expr i) {
    return EitherOf(b, m(o, i), q(o, i));
  });
  return g.Compute("Y", whole, [&](Expr o, Expr q, Expr l, Expr i) {
    return To(c.dtype, exponential(Wide(x(o, q, l, i)) - line(o, 0, i)) * line(o, 1, i));
  });
}

Tensor SoftmaxOfRows(te::Graph& g, const OperatorCase& c, const Rows& k) {
  const te::Shape whole = {k.outer, k.count};
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.count);
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor m = g.Compute("M", {k.outer}, [&](Expr o) { return te::ReduceMax(x(o, r), r); });
  const Tensor e = g.Compute("E", whole, [&](Expr o, Expr i) {
    const Expr difference = Wide(x(o, i)) - Wide(m(o));
    return g.context().Call(difference.type(), "exp", {difference});
  });
  const Tensor s = g.Compute("S", {k.outer}, [&](Expr o) { return te::ReduceSum(e(o, r), r); });
  // One quotient for a row.
  const Tensor q = g.Compute("Q", {k.outer}, [&](Expr o) { return 1 / s(o); });
  return g.Compute("Y", whole, [&](Expr o, Expr i) { return To(c.dtype, e(o, i) * q(o)); });
}

Tensor Softmax(te::Graph& g, const OperatorCase& c, int64_t axis) {
  const Rows k = RowsOf(c, axis);
  return k.inner > 1 ? SoftmaxOfColumns(g, c, k) : SoftmaxOfRows(g, c, k);
}

// The mean along the rows of what `element` says.
template <typename F>
Tensor Mean(te::Graph& g, const char* name, const Rows& k, const F& element) {
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.count);
  const Tensor sum = g.Compute(StrCat(name, ".sum"), {k.outer},
                               [&](Expr o) { return te::ReduceSum(element(o, r), r); });
  return g.Compute(name, {k.outer}, [&](Expr o) {
    return sum(o) * ir::ConstantLike(sum(o), 1.0 / static_cast<double>(k.count));
  });
}

Tensor LayerNorm(te::Graph& g, const OperatorCase& c, double epsilon) {
  const Rows k = RowsOf(c, -1);
  const te::Shape whole = {k.outer, k.count};
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor gamma = g.Placeholder("GAMMA", {k.count}, c.dtype);
  const Tensor beta = g.Placeholder("BETA", {k.count}, c.dtype);
  const Tensor w = g.Compute("W", whole, [&](Expr o, Expr i) { return Wide(x(o, i)); });
  const Tensor m = Mean(g, "M", k, [&](Expr o, Expr i) { return w(o, i); });
  const Tensor d = g.Compute("D", whole, [&](Expr o, Expr i) { return w(o, i) - m(o); });
  const Tensor v = Mean(g, "V", k, [&](Expr o, Expr i) { return d(o, i) * d(o, i); });
  const Tensor q = g.Compute("Q", {k.outer},
                             [&](Expr o) { return Rsqrt(v(o) + ir::ConstantLike(v(o), epsilon)); });
  return g.Compute("Y", whole, [&](Expr o, Expr i) {
    return To(c.dtype, d(o, i) * q(o) * Wide(gamma(i)) + Wide(beta(i)));
  });
}

Tensor RmsNorm(te::Graph& g, const OperatorCase& c, double epsilon) {
  const Rows k = RowsOf(c, -1);
  const te::Shape whole = {k.outer, k.count};
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor gamma = g.Placeholder("GAMMA", {k.count}, c.dtype);
  const Tensor w = g.Compute("W", whole, [&](Expr o, Expr i) { return Wide(x(o, i)); });
  const Tensor v = Mean(g, "V", k, [&](Expr o, Expr i) { return w(o, i) * w(o, i); });
  const Tensor q = g.Compute("Q", {k.outer},
                             [&](Expr o) { return Rsqrt(v(o) + ir::ConstantLike(v(o), epsilon)); });
  return g.Compute("Y", whole,
                   [&](Expr o, Expr i) { return To(c.dtype, w(o, i) * q(o) * Wide(gamma(i))); });
}

// Of images (N, .., C) with the channels in `groups` groups: mean and sum of squared differences of each channel in
// each part of the pixels (Chan, Golub, LeVeque 1983), then those of groups, then factors and summands of channels. One
// tensor has both of each, so that one pass over X finds them, and another one needs no more.
Tensor GroupNorm(te::Graph& g, const OperatorCase& c, int64_t groups, double epsilon) {
  const int64_t images = c.shape[0], size = c.shape.back() / groups;
  const int64_t pixels = te::ElementCount(c.shape) / images / c.shape.back();
  const int64_t parts = PartsOf(pixels), length = pixels / parts;
  const te::Shape whole = {images, parts, length, groups, size}, row = {groups, size};
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor gamma = g.Reshape(g.Placeholder("GAMMA", {c.shape.back()}, c.dtype), row);
  const Tensor beta = g.Reshape(g.Placeholder("BETA", {c.shape.back()}, c.dtype), row);
  const auto over = [](Expr sum, int64_t count) {
    return sum * ir::ConstantLike(sum, 1.0 / static_cast<double>(count));
  };
  const te::ReduceAxis r = g.ReduceAxisOf("r", length), p = g.ReduceAxisOf("p", parts),
                       k = g.ReduceAxisOf("k", size);
  const te::Shape of_parts = {images, parts, groups, size};
  const Tensor sum = g.Compute("P.sum", of_parts, [&](Expr n, Expr o, Expr i, Expr j) {
    return te::ReduceSum(Wide(x(n, o, r, i, j)), r);
  });
  const Tensor mean =
      g.Compute("P.mean", of_parts, [&](const Axes& at) { return over(sum(at), length); });
  const Tensor squares = g.Compute("P.squares", of_parts, [&](Expr n, Expr o, Expr i, Expr j) {
    const Expr d = Wide(x(n, o, r, i, j)) - mean(n, o, i, j);
    return te::ReduceSum(d * d, r);
  });
  const Tensor both =
      g.Compute("P", {images, 2, parts, groups, size}, [&](Expr n, Expr b, Expr o, Expr i, Expr j) {
        return EitherOf(b, mean(n, o, i, j), squares(n, o, i, j));
      });
  const Tensor m = g.Compute("M", {images, groups}, [&](Expr n, Expr i) {
    return te::ReduceSum(over(both(n, 0, p, i, k), parts * size), {p, k});
  });
  const Tensor v = g.Compute("V", {images, groups}, [&](Expr n, Expr i) {
    const Expr d = both(n, 0, p, i, k) - m(n, i);
    return te::ReduceSum(over(d * d, parts * size) + over(both(n, 1, p, i, k), pixels * size),
                         {p, k});
  });
  const te::Shape of_channels = {images, groups, size};
  const Tensor factor = g.Compute("F", of_channels, [&](Expr n, Expr i, Expr j) {
    return Rsqrt(v(n, i) + ir::ConstantLike(v(n, i), epsilon)) * Wide(gamma(i, j));
  });
  const Tensor summand = g.Compute("S", of_channels, [&](Expr n, Expr i, Expr j) {
    return Wide(beta(i, j)) - m(n, i) * factor(n, i, j);
  });
  const Tensor line =
      g.Compute("L", {images, 2, groups, size}, [&](Expr n, Expr b, Expr i, Expr j) {
        return EitherOf(b, factor(n, i, j), summand(n, i, j));
      });
  return g.Compute("Y", whole, [&](Expr n, Expr o, Expr l, Expr i, Expr j) {
    return To(c.dtype, Wide(x(n, o, l, i, j)) * line(n, 0, i, j) + line(n, 1, i, j));
  });
}
// The same of images that fit on chip: mean and variance of all pixels in one pass.
Tensor GroupNormOnChip(te::Graph& g, const OperatorCase& c, int64_t groups, double epsilon) {
  const int64_t images = c.shape[0], size = c.shape.back() / groups;
  const int64_t pixels = te::ElementCount(c.shape) / images / c.shape.back();
  const te::Shape whole = {images, pixels, groups, size}, row = {groups, size};
  const te::Shape of_channels = {images, groups, size}, of_groups = {images, groups};
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor gamma = g.Reshape(g.Placeholder("GAMMA", {c.shape.back()}, c.dtype), row);
  const Tensor beta = g.Reshape(g.Placeholder("BETA", {c.shape.back()}, c.dtype), row);
  const te::ReduceAxis p = g.ReduceAxisOf("p", pixels), k = g.ReduceAxisOf("k", size);
  // The mean of each group of what `element` says: sums of channels, then those of groups.
  const auto mean = [&](const std::string& name, const auto& element) {
    const Tensor sum = g.Compute(name + ".sum", of_channels, [&](Expr n, Expr i, Expr j) {
      return te::ReduceSum(element(n, p, i, j), p);
    });
    return g.Compute(name, of_groups, [&](Expr n, Expr i) {
      const Expr part = sum(n, i, k);
      return te::ReduceSum(part * ir::ConstantLike(part, 1.0 / static_cast<double>(pixels * size)),
                           k);
    });
  };
  const Tensor w = g.Compute("W", whole, [&](const Axes& at) { return Wide(x(at)); });
  const Tensor m = mean("M", [&](const auto&... at) { return w(at...); });
  const Tensor d = g.Compute(
      "D", whole, [&](Expr n, Expr l, Expr i, Expr j) { return w(n, l, i, j) - m(n, i); });
  const Tensor v = mean("V", [&](const auto&... at) { return d(at...) * d(at...); });
  const Tensor factor = g.Compute("F", of_channels, [&](Expr n, Expr i, Expr j) {
    return Rsqrt(v(n, i) + ir::ConstantLike(v(n, i), epsilon)) * Wide(gamma(i, j));
  });
  return g.Compute("Y", whole, [&](Expr n, Expr l, Expr i, Expr j) {
    return To(c.dtype, d(n, l, i, j) * factor(n, i, j) + Wide(beta(i, j)));
  });
}
// [tensor-program normalization end]

// A row of the table. X, then `parameters` of a row's length, in; `operations` of the vector unit for each element.
Operator MakeOperator(Operator row, const std::vector<std::string>& parameters, int64_t operations,
                      const Expressions& express, decltype(&ScheduleByLoops) schedule) {
  row.floats_only = true;
  // Sums of f32 in another order than the reference's, and what is between is rounded to f32.
  row.tolerance_of_largest = 2e-3;
  row.tensors = [parameters](const OperatorCase& c) {
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}};
    for (const std::string& name : parameters) specs.push_back({name, c.dtype, {c.shape.back()}});
    specs.push_back({"Y", c.dtype, c.shape});
    return specs;
  };
  row.work = [tensors = row.tensors, operations](const OperatorCase& c) {
    isa::Work work;
    for (const TensorSpec& spec : tensors(c)) {
      work.gmem_bytes += te::ElementCount(spec.shape) * ir::ByteSize(spec.type);
    }
    work.vector_elements = operations * te::ElementCount(c.shape);
    work.vector_type = SumType(c.dtype);
    return work;
  };
  schedule(row, express, row.name);
  return row;
}

absl::Status CheckRank(const OperatorCase& c) {
  if (c.shape.empty()) return WrongCase(c, "expected 1 dimension or more");
  return CheckShapes(c, {c.shape.size()});
}

// Rows of fewer elements fit NMEM, or have few parts.
constexpr int64_t kLongRow = 4096;

Operator SoftmaxRow() {
  Operator row;
  row.name = "softmax";
  row.doc = "Y = exp(X) / (the sum of exp(X) along an axis); of floats";
  row.shapes = {"X of 1 or more dimensions"};
  row.attributes = {{"axis", "-1", "the axis along which Y adds up to 1; -1: the last one"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto axis = [shared](const OperatorCase& c) { return *AttributeInt(*shared, c, "axis"); };
  row.check = [shared](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckRank(c));
    const int64_t rank = static_cast<int64_t>(c.shape.size());
    return CheckNumber(*shared, c, "axis", -rank, rank - 1);
  };
  row.reference = [axis](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                         absl::Span<ir::Tensor> out) {
    const Rows k = RowsOf(c, axis(c));
    ReferenceSoftmax(k.outer, k.count, k.inner, in[0], out[0]);
  };
  // The difference, exp, the sum, the product; the largest element is found in X's type.
  row = MakeOperator(
      std::move(row), {}, 4,
      [axis](te::Graph& g, const OperatorCase& c) { return Softmax(g, c, axis(c)); },
      ScheduleByExpressions);
  // Columns are several groups that cross GMEM; and so are rows in parts, where a whole one does not fit NMEM: then
  // what fits takes each element by itself.
  row.loops_on_card = [axis, first = row.first_schedules](const OperatorCase& c,
                                                          const Target& target) {
    const Rows k = RowsOf(c, axis(c));
    if (k.inner > 1 || k.count < kLongRow) return k.inner > 1;
    constexpr double kFar = 4, kStart = 20'000;
    const double bytes = 2.0 * static_cast<double>(te::ElementCount(c.shape)) *
                         static_cast<double>(ir::ByteSize(c.dtype));
    const double limit = kStart + kFar * bytes / target.machine->gmem_bytes_per_cycle();
    const auto whole = first(c, target, limit);
    return !whole.ok() || whole->empty() || (*whole)[0].cycles > limit;
  };
  row.build = [axis, build = row.build](const OperatorCase& c,
                                        const Target& target) -> absl::StatusOr<ir::Function> {
    const Rows k = RowsOf(c, axis(c));
    if (!IsInterpreter(target.name) || k.count < kLongRow) return build(c, target);
    te::Graph g(c.op);
    return Lower(te::Schedule(SoftmaxOfColumns(g, c, k)));
  };
  return row;
}

OperatorAttribute Epsilon() {
  return {"eps", "1e-5", "is added to the mean of squares; more than 0"};
}

double EpsilonOf(const Operator& row, const OperatorCase& c) {
  double value;
  return absl::SimpleAtod(ToAbsl(AttributeWord(row, c, "eps")), &value) ? value : 0;
}

absl::Status CheckEpsilon(const Operator& row, const OperatorCase& c) {
  // Down to the least normal f32.
  const double epsilon = EpsilonOf(row, c);
  if (epsilon >= 0x1p-126 && epsilon <= 1) return absl::OkStatus();
  return WrongCase(c, "attribute eps: expected a number above 0 and up to 1, found ", epsilon);
}

Operator NormRow(const char* name, const char* doc, const std::vector<std::string>& parameters,
                 int64_t operations, Tensor (*express)(te::Graph&, const OperatorCase&, double),
                 void (*reference)(double, absl::Span<const ir::Tensor>, ir::Tensor&)) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.shapes = {"X of 1 or more dimensions"};
  row.attributes = {Epsilon()};
  const auto shared = std::make_shared<Operator>(row);
  const auto epsilon = [shared](const OperatorCase& c) { return EpsilonOf(*shared, c); };
  row.check = [shared](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckRank(c));
    return CheckEpsilon(*shared, c);
  };
  row.reference = [epsilon, reference](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                       absl::Span<ir::Tensor> out) {
    reference(epsilon(c), in, out[0]);
  };
  return MakeOperator(
      std::move(row), parameters, operations,
      [epsilon, express](te::Graph& g, const OperatorCase& c) { return express(g, c, epsilon(c)); },
      ScheduleByExpressions);
}

// `of_channels`: each channel is a group of its own.
Operator GroupNormRow(const char* name, const char* doc, bool of_channels) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.shapes = {"images (N, .., C)"};
  row.attributes = {Epsilon()};
  if (!of_channels) row.attributes.push_back({"groups", "1", "of channels; it divides C"});
  const auto shared = std::make_shared<Operator>(row);
  const auto groups = [shared, of_channels](const OperatorCase& c) {
    return of_channels ? c.shape.back() : AttributeInt(*shared, c, "groups").value_or(0);
  };
  row.check = [shared, groups](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckRank(c));
    if (c.shape.size() < 2) return WrongCase(c, "expected 2 dimensions or more");
    RETURN_IF_ERROR(CheckEpsilon(*shared, c));
    if (groups(c) >= 1 && c.shape.back() % groups(c) == 0) return absl::OkStatus();
    return WrongCase(c, "attribute groups: expected a divisor of ", c.shape.back(), ", found ",
                     AttributeWord(*shared, c, "groups"));
  };
  row.reference = [shared, groups](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                   absl::Span<ir::Tensor> out) {
    ReferenceGroupNorm(te::ElementCount(c.shape) / c.shape[0] / c.shape.back(), groups(c),
                       EpsilonOf(*shared, c), in[0], in[1], in[2], out[0]);
  };
  const Expressions in_parts = [shared, groups](te::Graph& g, const OperatorCase& c) {
    return GroupNorm(g, c, groups(c), EpsilonOf(*shared, c));
  };
  row = MakeOperator(
      std::move(row), {"GAMMA", "BETA"}, 7,
      [shared, groups](te::Graph& g, const OperatorCase& c) {
        return GroupNormOnChip(g, c, groups(c), EpsilonOf(*shared, c));
      },
      ScheduleByExpressions);
  OrByLoops(row, in_parts, row.name, /*if_cheaper=*/true);
  return row;
}

}  // namespace

std::vector<Operator> NormalizationOperators() {
  return {SoftmaxRow(),
          NormRow("layer_norm",
                  "Y = (X - mean) / sqrt(variance + eps) * GAMMA + BETA, of each row; of floats",
                  {"GAMMA", "BETA"}, 7, LayerNorm,
                  [](double epsilon, absl::Span<const ir::Tensor> in, ir::Tensor& y) {
                    ReferenceLayerNorm(epsilon, in[0], in[1], in[2], y);
                  }),
          NormRow("rms_norm", "Y = X / sqrt(mean of X * X + eps) * GAMMA, of each row; of floats",
                  {"GAMMA"}, 4, RmsNorm,
                  [](double epsilon, absl::Span<const ir::Tensor> in, ir::Tensor& y) {
                    ReferenceRmsNorm(epsilon, in[0], in[1], y);
                  }),
          GroupNormRow("group_norm",
                       "Y = (X - mean) / sqrt(variance + eps) * GAMMA + BETA, of each image and "
                       "group of channels; of floats",
                       false),
          GroupNormRow("instance_norm",
                       "Y = (X - mean) / sqrt(variance + eps) * GAMMA + BETA, of each image and "
                       "channel; of floats",
                       true)};
}

}  // namespace polynao::kernels
