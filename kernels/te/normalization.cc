#include "kernels/te/normalization.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/te/graph.h"
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

// [tensor-program normalization begin]
Tensor Softmax(te::Graph& g, const OperatorCase& c, int64_t axis) {
  const Rows k = RowsOf(c, axis);
  te::Shape whole = {k.outer, k.count, k.inner}, result = {k.outer, k.inner};
  // Rows of single elements would be repeated one by one.
  if (k.inner == 1) whole.pop_back(), result.pop_back();
  const auto of = [](const Axes& at) {
    Axes row = at;
    row.erase(row.begin() + 1);
    return row;
  };
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.count);
  const auto along = [&r](const Axes& row) {
    Axes at = row;
    at.insert(at.begin() + 1, r);
    return at;
  };
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor m =
      g.Compute("M", result, [&](const Axes& row) { return te::ReduceMax(x(along(row)), r); });
  const auto exponential = [&](const Axes& at) {
    const Expr difference = Wide(x(at)) - Wide(m(of(at)));
    return g.context().Call(difference.type(), "exp", {difference});
  };
  // Columns do not stay on chip: their exponentials are computed again.
  Tensor stored;
  if (k.inner == 1) stored = g.Compute("E", whole, exponential);
  const auto e = [&](const Axes& at) { return stored ? stored(at) : exponential(at); };
  const Tensor s =
      g.Compute("S", result, [&](const Axes& row) { return te::ReduceSum(e(along(row)), r); });
  // One quotient for a row.
  const Tensor q = g.Compute("Q", result, [&](const Axes& row) { return 1 / s(row); });
  return g.Compute("Y", whole, [&](const Axes& at) { return To(c.dtype, e(at) * q(of(at))); });
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
// Of images (N, .., C) with the channels in `groups` groups: means over all pixels, then over a group's channels.
Tensor GroupNorm(te::Graph& g, const OperatorCase& c, int64_t groups, double epsilon) {
  const int64_t images = c.shape[0], size = c.shape.back() / groups;
  const int64_t pixels = te::ElementCount(c.shape) / images / c.shape.back();
  const te::Shape whole = {images, pixels, groups, size}, row = {groups, size};
  const Tensor x = g.Reshape(g.Placeholder("X", c.shape, c.dtype), whole);
  const Tensor gamma = g.Reshape(g.Placeholder("GAMMA", {c.shape.back()}, c.dtype), row);
  const Tensor beta = g.Reshape(g.Placeholder("BETA", {c.shape.back()}, c.dtype), row);
  const auto mean = [&](const char* name, const auto& element) {
    const te::ReduceAxis p = g.ReduceAxisOf("p", pixels), k = g.ReduceAxisOf("k", size);
    const Tensor of_channels =
        g.Compute(StrCat(name, ".channels"), {images, groups, size},
                  [&](Expr n, Expr i, Expr j) { return te::ReduceSum(element(n, p, i, j), p); });
    return g.Compute(name, {images, groups}, [&](Expr n, Expr i) {
      const Expr sum = of_channels(n, i, k);
      return te::ReduceSum(sum * ir::ConstantLike(sum, 1.0 / static_cast<double>(pixels * size)),
                           k);
    });
  };
  const Tensor m = mean("M", [&](Expr n, Expr p, Expr i, Expr j) { return Wide(x(n, p, i, j)); });
  const auto d = [&](Expr n, Expr p, Expr i, Expr j) { return Wide(x(n, p, i, j)) - m(n, i); };
  const Tensor v =
      mean("V", [&](Expr n, Expr p, Expr i, Expr j) { return d(n, p, i, j) * d(n, p, i, j); });
  return g.Compute("Y", whole, [&](Expr n, Expr p, Expr i, Expr j) {
    const Expr q = Rsqrt(v(n, i) + ir::ConstantLike(v(n, i), epsilon));
    return To(c.dtype, d(n, p, i, j) * q * Wide(gamma(i, j)) + Wide(beta(i, j)));
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
  // Columns are several groups that cross GMEM.
  row.loops_on_card = [axis](const OperatorCase& c) { return RowsOf(c, axis(c)).inner > 1; };
  return MakeOperator(
      std::move(row), {}, 4,
      [axis](te::Graph& g, const OperatorCase& c) { return Softmax(g, c, axis(c)); },
      ScheduleByExpressions);
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
  return MakeOperator(
      std::move(row), {"GAMMA", "BETA"}, 7,
      [shared, groups](te::Graph& g, const OperatorCase& c) {
        return GroupNorm(g, c, groups(c), EpsilonOf(*shared, c));
      },
      ScheduleByLoops);
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
