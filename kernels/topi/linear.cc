#include "kernels/topi/linear.h"

#include <algorithm>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/topi/row.h"
#include "kernels/topi/schedules.h"
#include "kernels/topi/spatial.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Schedule;
using te::Tensor;

// out[b, m, n] = sum over k of x[b, m, k] * y[b, n, k], with a tail. A batch of one serves all.
struct Product {
  std::string name;
  Type in = Type::kF32;
  Type acc = Type::kF32;
  int64_t x_batch = 1, y_batch = 1, m = 1, n = 1, k = 1;
  bool is_dense = false;     // without a batch
  bool large_batch = false;  // dense: the weights are packed
  Tail tail;

  int64_t batch() const { return std::max(x_batch, y_batch); }
};

std::vector<TensorSpec> Tensors(const Product& p) {
  if (!p.is_dense) {
    return {{"x", p.in, {p.x_batch, p.m, p.k}},
            {"y", p.in, {p.y_batch, p.n, p.k}},
            {"output", p.acc, {p.batch(), p.m, p.n}}};
  }
  std::vector<TensorSpec> specs = {{"data", p.in, {p.m, p.k}}, {"weight", p.in, {p.n, p.k}}};
  if (p.tail.bias) specs.push_back({"bias", p.acc, {p.n}});
  specs.push_back({"output", p.acc, {p.m, p.n}});
  return specs;
}

void Reference(const Product& p, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
  std::vector<double> x(in[0].element_count()), y(in[1].element_count());
  for (size_t i = 0; i < x.size(); ++i) x[i] = in[0].Value(static_cast<int64_t>(i));
  for (size_t i = 0; i < y.size(); ++i) y[i] = in[1].Value(static_cast<int64_t>(i));
  for (int64_t b = 0; b < p.batch(); ++b) {
    for (int64_t i = 0; i < p.m * p.n; ++i) {
      const double* row = &x[((p.x_batch == 1 ? 0 : b) * p.m + i / p.n) * p.k];
      const double* column = &y[((p.y_batch == 1 ? 0 : b) * p.n + i % p.n) * p.k];
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k) sum += row[k] * column[k];
      if (p.tail.bias) sum += in[2].Value(i % p.n);
      if (p.tail.relu) sum = std::max(sum, 0.0);
      out.SetValue(b * p.m * p.n + i, sum);
    }
  }
}

Expr To(Type type, Expr e) { return e.context().Cast(type, e); }

// The last step of the output, which reads the sum of row (b, m) and column n.
struct Parts {
  Tensor x, y, bias;
  Tensor packed;   // y in blocks of columns
  Tensor partial;  // sums over every so many k
  Tensor sums;
  Tensor output;
};

Expr XAt(const Product& p, const Parts& t, Expr b, Expr m, Expr k) {
  if (p.is_dense) return To(p.acc, t.x(m, k));
  return To(p.acc, p.x_batch == 1 ? t.x(0, m, k) : t.x(b, m, k));
}
Expr YAt(const Product& p, const Parts& t, Expr b, Expr n, Expr k) {
  if (p.is_dense) return t.y(n, k);
  return p.y_batch == 1 ? t.y(0, n, k) : t.y(b, n, k);
}

// The output from a function that gives the sum of b, m, n.
template <typename F>
void Finish(te::Graph& g, const Product& p, Parts& t, const F& sum) {
  const auto tail = [&](Expr value, Expr n) {
    if (p.tail.bias) value = value + t.bias(n);
    return p.tail.relu ? ir::Max(value, ir::ConstantLike(value, 0)) : value;
  };
  if (p.is_dense) {
    t.output = g.Compute("output", {p.m, p.n},
                         [&](Expr m, Expr n) { return tail(sum(Expr(), m, n), n); }, {"m", "n"});
  } else {
    t.output = g.Compute("output", {p.batch(), p.m, p.n},
                         [&](Expr b, Expr m, Expr n) { return sum(b, m, n); }, {"b", "m", "n"});
  }
}

// Sums as written, in an inner loop of `step` products at a time.
void ExpressDirect(te::Graph& g, const Product& p, Parts& t, int64_t step) {
  std::vector<te::ReduceAxis> axes = {g.ReduceAxisOf("k", p.k / step)};
  if (step > 1) axes.push_back(g.ReduceAxisOf("kb", step));
  const Expr k = step > 1 ? axes[0] * step + axes[1] : Expr(axes[0]);
  const te::Shape shape = p.is_dense ? te::Shape{p.m, p.n} : te::Shape{p.batch(), p.m, p.n};
  const bool plain = !p.tail.bias && !p.tail.relu;
  t.sums = g.Compute(
      plain ? "output" : "product", shape,
      [&](const te::Axes& i) {
        const Expr m = i[i.size() - 2], n = i.back();
        return te::ReduceSum(XAt(p, t, i[0], m, k) * To(p.acc, YAt(p, t, i[0], n, k)), axes);
      },
      p.is_dense ? std::vector<std::string>{"m", "n"} : std::vector<std::string>{"b", "m", "n"});
  t.output = t.sums;
  if (!plain) Finish(g, p, t, [&](Expr, Expr m, Expr n) { return t.sums(m, n); });
}

// TOPI's dense_nopack: each lane of a vector sums every `lanes`-th product; the lanes are added up at the end.
void ExpressLanes(te::Graph& g, const Product& p, int64_t lanes, Parts& t) {
  const te::ReduceAxis k = g.ReduceAxisOf("k", p.k / lanes);
  t.partial =
      g.Compute("partial", {p.batch(), p.m, p.n, lanes},
                [&](Expr b, Expr m, Expr n, Expr lane) {
                  const Expr at = k * lanes + lane;
                  return te::ReduceSum(XAt(p, t, b, m, at) * To(p.acc, YAt(p, t, b, n, at)), k);
                },
                {"b", "m", "n", "lane"});
  const te::ReduceAxis lane = g.ReduceAxisOf("lane", lanes);
  t.sums = g.Compute(
      "sums", {p.batch(), p.m, p.n},
      [&](Expr b, Expr m, Expr n) { return te::ReduceSum(t.partial(b, m, n, lane), lane); },
      {"b", "m", "n"});
  Finish(g, p, t,
         [&](Expr b, Expr m, Expr n) { return p.is_dense ? t.sums(0, m, n) : t.sums(b, m, n); });
}

// TOPI's dense_pack: the weights in blocks of columns, one block to a vector.
void ExpressPacked(te::Graph& g, const Product& p, int64_t block, Parts& t) {
  t.packed =
      g.Compute("packed_weight", {p.n / block, p.k, block},
                [&](Expr n, Expr k, Expr lane) { return YAt(p, t, Expr(), n * block + lane, k); },
                {"n", "k", "lane"});
  const te::ReduceAxis k = g.ReduceAxisOf("k", p.k);
  t.sums = g.Compute("sums", {p.n / block, p.m, block},
                     [&](Expr n, Expr m, Expr lane) {
                       return te::ReduceSum(
                           XAt(p, t, Expr(), m, k) * To(p.acc, t.packed(n, k, lane)), k);
                     },
                     {"n", "m", "lane"});
  Finish(g, p, t, [&](Expr, Expr m, Expr n) { return t.sums(n / block, m, n % block); });
}

// Small batches: one block for each element, whose threads share the products. Others: tiles of both factors in
// shared memory, four products of bytes at a time.
absl::StatusOr<ir::Function> BuildForGpu(te::Graph& g, const Product& p, Parts& t) {
  constexpr int64_t kThreads = 64;
  if (p.is_dense && !p.large_batch && !ir::IsInt(p.in)) {
    ExpressLanes(g, p, DivisorUpTo(p.k, kThreads), t);
    te::Schedule s(t.output);
    ReduceAcrossThreads(s, t.sums, t.partial);
    BindElements(s, t.output);
    return te::Lower(s);
  }
  const bool by_four = ir::IsInt(p.in) && p.k % 4 == 0;
  ExpressDirect(g, p, t, by_four ? 4 : 1);
  te::Schedule s(t.output);
  GpuTile tile;
  const te::Shape& shape = t.sums.shape();
  tile.threads.assign(shape.size(), 1);
  tile.each.assign(shape.size(), 1);
  const size_t last = shape.size() - 1;
  for (const auto& [d, threads] : {std::pair(last, 16), std::pair(last - 1, 8)}) {
    tile.each[d] = std::min<int64_t>(shape[d], p.is_dense ? 4 : 2);
    tile.threads[d] = std::min<int64_t>(CeilDiv(shape[d], tile.each[d]), threads);
  }
  tile.reduce = {std::min<int64_t>(by_four ? p.k / 4 : p.k, 16)};
  if (by_four) tile.reduce.push_back(4);
  tile.dot_of_four = by_four;
  // Threads read columns, one word of each row: rows are a word longer than they need be.
  const int64_t pitch = by_four ? 4 * tile.reduce[0] + 4 : tile.reduce[0] + 1;
  TileOnGpu(s, t.output, t.sums, tile,
            {{.tensor = t.x, .pitch = pitch}, {.tensor = t.y, .pitch = pitch}});
  return te::Lower(s);
}

absl::StatusOr<ir::Function> Build(const Product& p, const Target& target) {
  te::Graph g(p.name);
  Parts t;
  const std::vector<TensorSpec> specs = Tensors(p);
  t.x = g.Placeholder(specs[0].name, specs[0].shape, p.in);
  t.y = g.Placeholder(specs[1].name, specs[1].shape, p.in);
  if (p.tail.bias) t.bias = g.Placeholder("bias", {p.n}, p.acc);
  const int64_t block = DivisorUpTo(p.n, 16);
  const int64_t lanes = DivisorUpTo(p.k, 16);
  if (IsGpu(target.name)) return BuildForGpu(g, p, t);
  if (!IsProcessor(target.name)) {
    ExpressDirect(g, p, t, 1);
  } else if (p.large_batch && block >= 8) {
    ExpressPacked(g, p, block, t);
  } else {
    ExpressLanes(g, p, lanes, t);
  }
  Schedule s(t.output);
  if (!IsProcessor(target.name)) return te::Lower(s);
  ParallelElementwise(s, t.output, target);
  if (t.packed) {
    ParallelElementwise(s, t.packed, target);
    TileReduction(s, t.sums, {.row_axis = 1, .rows = DivisorUpTo(p.m, 6), .vector = block});
  } else {
    TileReduction(s, t.partial, {.row_axis = 2, .rows = DivisorUpTo(p.n, 4), .vector = lanes});
    s[t.sums].Parallel(s[t.sums].Fuse({s[t.sums].axis(0), s[t.sums].axis(1), s[t.sums].axis(2)}));
  }
  return te::Lower(s);
}

Operator Finished(
    Operator row,
    std::function<absl::StatusOr<Product>(const Operator&, const OperatorCase&)> parse) {
  return MakeRow<Product>(std::move(row),
                          {.parse = std::move(parse),
                           .tensors = Tensors,
                           .reference = Reference,
                           .build = Build,
                           .macs = [](const Product& p) { return p.batch() * p.m * p.n * p.k; }});
}

absl::StatusOr<Product> ParseDense(const Operator& row, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {Type::kF32, Type::kI8}));
  RETURN_IF_ERROR(CheckRank(c, 0, 2));
  RETURN_IF_ERROR(CheckRank(c, 1, 2));
  if (c.shape[1] != c.operands[0][1]) {
    return WrongShape(c, "expected weights of as many elements as a row has, ", c.shape[1],
                      ", found ", c.operands[0][1]);
  }
  Product p;
  p.tail = ReadTail(row, c);
  p.name = p.tail.word == "none" ? "dense" : StrCat("dense_", p.tail.word);
  p.in = c.dtype;
  p.acc = ir::IsInt(c.dtype) ? Type::kI32 : c.dtype;
  p.m = c.shape[0], p.k = c.shape[1], p.n = c.operands[0][0];
  p.is_dense = true;
  p.large_batch = AttributeWord(row, c, "impl") == "large_batch";
  return p;
}

absl::StatusOr<Product> ParseBatchMatmul(const Operator&, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckTypes(c, {Type::kF32}));
  RETURN_IF_ERROR(CheckRank(c, 0, 3));
  RETURN_IF_ERROR(CheckRank(c, 1, 3));
  const std::vector<int64_t>& y = c.operands[0];
  if (c.shape[2] != y[2] || (c.shape[0] != y[0] && c.shape[0] != 1 && y[0] != 1)) {
    return WrongShape(c, "expected rows of ", c.shape[2], " elements and a batch of ", c.shape[0],
                      " or 1, found ", ShapeText(y));
  }
  Product p;
  p.name = "batch_matmul";
  p.x_batch = c.shape[0], p.y_batch = y[0], p.m = c.shape[1], p.n = y[1], p.k = y[2];
  return p;
}

}  // namespace

std::vector<Operator> TopiLinearOperators() {
  Operator dense;
  dense.name = "dense";
  dense.doc = "output (B, O) = data (B, I) times the transpose of weight (O, I), + bias";
  dense.shapes = {"data (B, I)", "weight (O, I)"};
  dense.attributes = {
      TailAttribute({"none", "bias", "relu", "bias_relu"}),
      {"impl", "large_batch", "how it is scheduled", {"small_batch", "large_batch", "int8"}}};
  Operator batch_matmul;
  batch_matmul.name = "batch_matmul";
  batch_matmul.doc = "output (B, M, N) = x (B, M, K) times the transpose of y (B, N, K)";
  batch_matmul.shapes = {"x (B, M, K)", "y (B, N, K)"};
  return {Finished(std::move(dense), ParseDense),
          Finished(std::move(batch_matmul), ParseBatchMatmul)};
}

}  // namespace polynao::kernels
