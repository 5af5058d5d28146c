#include "kernels/topi/reduction.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::ReduceAxis;
using te::Reducer;
using te::Schedule;
using te::Tensor;

struct Reduction {
  Type in = Type::kF32;
  Type out = Type::kF32;
  te::Shape shape, out_shape;
  std::vector<bool> is_reduced;  // per dimension
  bool keepdims = false;
  Reducer reducer = Reducer::kSum;
  bool premap = false;  // sqrt(exp(x)) instead of x

  bool is_arg() const { return te::IsArgReducer(reducer); }
};

void Reference(const Reduction& r, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
  const int64_t outputs = out.element_count();
  std::vector<double> best(outputs);
  std::vector<int64_t> index(outputs, -1);
  std::vector<int64_t> at(r.shape.size(), 0);
  for (int64_t i = 0; i < in[0].element_count(); ++i) {
    int64_t rest = i;
    for (size_t d = r.shape.size(); d-- > 0; rest /= r.shape[d]) at[d] = rest % r.shape[d];
    int64_t to = 0, among = 0;
    for (size_t d = 0; d < r.shape.size(); ++d) {
      int64_t& number = r.is_reduced[d] ? among : to;
      number = number * r.shape[d] + at[d];
    }
    const double x = in[0].Value(i);
    const double value = r.premap ? std::sqrt(std::exp(x)) : x;
    const bool is_min = r.reducer == Reducer::kMin || r.reducer == Reducer::kArgMin;
    if (index[to] < 0) {
      best[to] = value;
      index[to] = among;
    } else if (r.reducer == Reducer::kSum) {
      best[to] += value;
    } else if (is_min ? value < best[to] : value > best[to]) {
      best[to] = value;
      index[to] = among;
    }
  }
  for (int64_t i = 0; i < outputs; ++i) {
    out.SetValue(i, r.is_arg() ? static_cast<double>(index[i]) : best[i]);
  }
}

Expr Premap(const Reduction& r, Expr x) {
  if (!r.premap) return x;
  ir::Context& context = x.context();
  return context.Call(x.type(), "sqrt", {context.Call(x.type(), "exp", {x})});
}

// The input's indices from those of the output and of the reduced dimensions.
Axes InputIndices(const Reduction& r, const Axes& out, const std::vector<Expr>& reduced) {
  Axes indices;
  size_t next_out = 0, next_reduced = 0;
  for (size_t d = 0; d < r.shape.size(); ++d) {
    if (r.is_reduced[d]) {
      indices.push_back(reduced[next_reduced++]);
      if (r.keepdims) ++next_out;
    } else {
      indices.push_back(out[next_out++]);
    }
  }
  return indices;
}

te::Shape ReducedExtents(const Reduction& r) {
  te::Shape extents;
  for (size_t d = 0; d < r.shape.size(); ++d) {
    if (r.is_reduced[d]) extents.push_back(r.shape[d]);
  }
  return extents;
}

// Which of the reduced elements this is, in row-major order.
Expr Position(const std::vector<Expr>& reduced, const te::Shape& extents) {
  Expr position = reduced[0];
  for (size_t i = 1; i < reduced.size(); ++i) position = position * extents[i] + reduced[i];
  return position;
}

struct Parts {
  Tensor partial;  // of every so many elements along the last dimension
  Tensor output;
};

// One reduction over all axes. With lanes > 1, every `lanes`-th element of the last axis is reduced first.
Parts Express(te::Graph& g, const Reduction& r, int64_t lanes) {
  Parts parts;
  const Tensor x = g.Placeholder("data", r.shape, r.in);
  const te::Shape extents = ReducedExtents(r);
  std::vector<ReduceAxis> k;
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t extent = i + 1 == extents.size() ? extents[i] / lanes : extents[i];
    k.push_back(g.ReduceAxisOf(StrCat("k", i), extent));
  }
  std::vector<Expr> reduced(k.begin(), k.end());
  if (r.is_arg()) {
    const std::vector<Tensor> pair = g.ComputeMany("output", r.out_shape, [&](const Axes& i) {
      return te::ArgReduce(r.reducer, g.context().Cast(r.out, Position(reduced, extents)),
                           Premap(r, x(InputIndices(r, i, reduced))), k);
    });
    parts.output = pair[0];
    return parts;
  }
  if (lanes == 1) {
    parts.output = g.Compute("output", r.out_shape, [&](const Axes& i) {
      return te::Body(r.reducer, Premap(r, x(InputIndices(r, i, reduced))), k);
    });
    return parts;
  }
  te::Shape shape = r.out_shape;
  shape.push_back(lanes);
  parts.partial = g.Compute("partial", shape, [&](const Axes& i) {
    const Axes out(i.begin(), i.end() - 1);
    std::vector<Expr> at = reduced;
    at.back() = at.back() * lanes + i.back();
    return te::Body(r.reducer, Premap(r, x(InputIndices(r, out, at))), k);
  });
  const ReduceAxis lane = g.ReduceAxisOf("lane", lanes);
  parts.output = g.Compute("output", r.out_shape, [&](const Axes& i) {
    Axes from = i;
    from.push_back(lane);
    return te::Body(r.reducer, parts.partial(from), {lane});
  });
  return parts;
}

// As in TOPI: all reduced axes are one loop, whose iterations the threads of a block share in turn; with many
// outputs, one thread for each.
absl::StatusOr<ir::Function> BuildForGpu(const Reduction& r) {
  te::Graph g("reduce");
  const int64_t outputs = te::ElementCount(r.out_shape);
  constexpr int64_t kManyOutputs = 1 << 14;
  if (outputs >= kManyOutputs) {
    const Parts parts = Express(g, r, 1);
    Schedule s(parts.output);
    BindElements(s, parts.output);
    return te::Lower(s);
  }
  const Tensor x = g.Placeholder("data", r.shape, r.in);
  const te::Shape extents = ReducedExtents(r);
  const int64_t count = te::ElementCount(extents);
  const int64_t threads = count >= 1024 ? 256 : 32;
  const ReduceAxis k = g.ReduceAxisOf("k", CeilDiv(count, threads));
  te::Shape shape = r.out_shape;
  shape.push_back(threads);
  const auto bodies = [&](const Axes& i) -> std::vector<te::Body> {
    const Axes out(i.begin(), i.end() - 1);
    const Expr at = k * threads + i.back();
    std::vector<Expr> reduced(extents.size());
    Expr rest = at;
    for (size_t d = extents.size(); d-- > 0;) {
      reduced[d] = d == 0 ? rest : rest % extents[d];
      rest = rest / extents[d];
    }
    Expr value = Premap(r, x(InputIndices(r, out, reduced)));
    if (count % threads != 0) {
      value = te::Select(at < count, value, te::Identity(r.reducer, g.context(), r.in));
    }
    if (r.is_arg()) return te::ArgReduce(r.reducer, g.context().Cast(r.out, at), value, {k});
    return {te::Body(r.reducer, value, {k})};
  };
  const std::vector<Tensor> partial = g.ComputeMany("partial", shape, bodies);
  const ReduceAxis t = g.ReduceAxisOf("t", threads);
  const Tensor output = g.ComputeMany("output", r.out_shape, [&](const Axes& i) {
    Axes from = i;
    from.push_back(t);
    if (r.is_arg()) return te::ArgReduce(r.reducer, partial[0](from), partial[1](from), {t});
    return std::vector<te::Body>{te::Body(r.reducer, partial[0](from), {t})};
  })[0];
  Schedule s(output);
  ReduceAcrossThreads(s, output, partial[0]);
  return te::Lower(s);
}

absl::StatusOr<ir::Function> Build(const Reduction& r, const Target& target) {
  if (IsGpu(target.name)) return BuildForGpu(r);
  te::Graph g("reduce");
  // Along contiguous elements, which a vector takes at once.
  const int64_t lanes = IsProcessor(target.name) && r.is_reduced.back() && !r.is_arg()
                            ? DivisorUpTo(r.shape.back(), 16)
                            : 1;
  Parts parts = Express(g, r, lanes);
  Schedule s(parts.output);
  if (!IsProcessor(target.name)) return te::Lower(s);
  te::Stage& output = s[parts.output];
  const auto all_axes = [](te::Stage& stage, size_t count) {
    std::vector<te::Axis> axes;
    for (size_t d = 0; d < count; ++d) axes.push_back(stage.axis(d));
    return axes;
  };
  if (parts.partial) {
    te::Stage& partial = s[parts.partial];
    const size_t rank = parts.output.rank();
    const te::Axis place = output.Fuse(all_axes(output, rank));
    // A loop of one iteration needs no threads.
    if (te::ElementCount(r.out_shape) > 1) output.Parallel(place);
    partial.ComputeAt(output, place);
    std::vector<te::Axis> loops;
    for (size_t i = 0; i < partial.data().reduce.size(); ++i)
      loops.push_back(partial.reduce_axis(i));
    loops.push_back(partial.axis(rank));
    partial.Reorder(loops);
    partial.Vectorize(partial.axis(rank)).SetScope("local");
    return te::Lower(s);
  }
  if (!r.is_reduced.back() && !r.is_arg() && !r.out_shape.empty()) {
    TileReduction(s, parts.output,
                  {.row_axis = parts.output.rank() - 1, .vector = DivisorUpTo(r.shape.back(), 32)});
    return te::Lower(s);
  }
  if (te::ElementCount(r.out_shape) > 1)
    output.Parallel(output.Fuse(all_axes(output, parts.output.rank())));
  return te::Lower(s);
}

absl::StatusOr<Reduction> Parse(const Operator& row, const OperatorCase& c) {
  Reduction r;
  r.shape = c.shape;
  r.in = r.out = c.dtype;
  RETURN_IF_ERROR(CheckRank(c, 0, c.shape.size()));
  const std::vector<double> axes = AttributeList(row, c, "axes");
  r.is_reduced.assign(c.shape.size(), axes.empty());
  for (const double axis : axes) {
    if (axis < 0 || axis >= static_cast<double>(c.shape.size()) || axis != std::floor(axis)) {
      return WrongShape(c, "expected axes from 0 to ", c.shape.size() - 1, ", found ", axis);
    }
    r.is_reduced[static_cast<size_t>(axis)] = true;
  }
  if (c.shape.empty()) return WrongShape(c, "expected a dimension or more");
  ASSIGN_OR_RETURN(const int64_t keepdims, NumberFrom(row, c, "keepdims", 0));
  r.keepdims = keepdims != 0;
  for (size_t d = 0; d < c.shape.size(); ++d) {
    if (!r.is_reduced[d]) {
      r.out_shape.push_back(c.shape[d]);
    } else if (r.keepdims) {
      r.out_shape.push_back(1);
    }
  }
  const std::string& type = AttributeWord(row, c, "reduce_type");
  r.reducer = type == "sum"                    ? Reducer::kSum
              : type == "max" || type == "any" ? Reducer::kMax
              : type == "min" || type == "all" ? Reducer::kMin
              : type == "argmax"               ? Reducer::kArgMax
                                               : Reducer::kArgMin;
  const bool is_truth = type == "any" || type == "all";
  RETURN_IF_ERROR(CheckTypes(
      c, is_truth ? std::vector<Type>{Type::kI1} : std::vector<Type>{Type::kF32, Type::kF64}));
  if (r.is_arg()) r.out = Type::kI32;
  r.premap = AttributeWord(row, c, "premap") != "none";
  if (r.premap && is_truth) return WrongShape(c, "expected no premap of truths");
  return r;
}

}  // namespace

std::vector<Operator> TopiReductionOperators() {
  Operator row;
  row.name = "reduce";
  row.doc = "output = sum, largest, smallest, all, any, or index of largest or smallest, of data";
  row.shapes = {"data"};
  row.attributes = {
      {.name = "axes", .default_value = "", .doc = "to reduce; none: all", .is_list = true},
      {"keepdims", "0", "whether they stay with one element"},
      {"reduce_type", "sum", "what", {"sum", "max", "min", "all", "any", "argmax", "argmin"}},
      {"premap", "none", "of each element before", {"none", "sqrt(exp(x))"}}};
  return {MakeRow<Reduction>(std::move(row), {.parse = Parse,
                                              .tensors =
                                                  [](const Reduction& r) {
                                                    return std::vector<TensorSpec>{
                                                        {"data", r.in, r.shape},
                                                        {"output", r.out, r.out_shape}};
                                                  },
                                              .reference = Reference,
                                              .build = Build})};
}

}  // namespace polynao::kernels
