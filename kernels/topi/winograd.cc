// output = A^T [ (G w G^T) . (B^T d B) ] A, tile by tile; the product in the middle is, for each place of
// a transformed tile, a matrix product over the input channels.
#include "kernels/topi/winograd.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
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
using te::Axes;
using te::Tensor;
using Matrix = std::vector<std::vector<double>>;

struct Winograd : Spatial {
  int64_t m = 2;     // extent of a tile's output
  size_t first = 0;  // axes from here on are transformed
  bool channels_last = false;

  // The type of the products' sums. The transforms of seven taps give numbers five times as large as the result on
  // each axis; on three axes, sums in f32 would be off by 3e-5 of the largest value.
  ir::Type SumType() const {
    int64_t wide_axes = 0;
    for (size_t a = first; a < rank(); ++a) wide_axes += alpha(a) >= 8 ? 1 : 0;
    return wide_axes == 3 ? ir::Type::kF64 : acc;
  }

  // Taps of a dilated filter.
  int64_t r(size_t a) const { return (axes[a].kernel - 1) * axes[a].dilation + 1; }
  int64_t alpha(size_t a) const { return m + r(a) - 1; }
  int64_t tiles(size_t a) const { return CeilDiv(axes[a].out, m); }
  int64_t p() const {
    int64_t count = n;
    for (size_t a = first; a < rank(); ++a) count *= tiles(a);
    return count;
  }
};

// F(m, r): output = A^T [ (G w) . (B^T d) ], by Toom and Cook, with polynomials evaluated at these
// points and at infinity. Small numbers and their reciprocals keep the rounding errors small.
struct Transforms {
  Matrix at;  // m x alpha
  Matrix g;   // alpha x r
  Matrix bt;  // alpha x alpha
};
constexpr double kPoints[] = {0, 1, -1, 0.5, -2, -0.5, 2, 4, -0.25};
constexpr int64_t kMostAlpha = std::size(kPoints) + 1;

Transforms TransformsOf(int64_t m, int64_t r) {
  const int64_t alpha = m + r - 1;
  POLYNAO_CHECK(alpha <= kMostAlpha) << m << " " << r;
  const int64_t points = alpha - 1;
  // The coefficients of the product of x - p over all points p but `without`, lowest first.
  const auto product = [points](int64_t without) {
    std::vector<double> polynomial = {1};
    for (int64_t j = 0; j < points; ++j) {
      if (j == without) continue;
      polynomial.insert(polynomial.begin(), 0);
      for (size_t i = 0; i + 1 < polynomial.size(); ++i) {
        polynomial[i] -= kPoints[j] * polynomial[i + 1];
      }
    }
    return polynomial;
  };
  const auto powers = [](double x, int64_t count, double scale) {
    std::vector<double> row;
    for (int64_t i = 0; i < count; ++i, scale *= x) row.push_back(scale);
    return row;
  };
  Transforms t;
  t.at.assign(m, std::vector<double>(alpha, 0));
  for (int64_t j = 0; j < points; ++j) {
    double difference = 1;
    for (int64_t i = 0; i < points; ++i) {
      if (i != j) difference *= kPoints[j] - kPoints[i];
    }
    t.g.push_back(powers(kPoints[j], r, 1 / difference));
    t.bt.push_back(product(j));
    t.bt.back().resize(alpha, 0);
    const std::vector<double> row = powers(kPoints[j], m, 1);
    for (int64_t i = 0; i < m; ++i) t.at[i][j] = row[i];
  }
  t.g.emplace_back(r, 0);
  t.g.back().back() = 1;
  t.bt.push_back(product(-1));
  t.at[m - 1][alpha - 1] = 1;
  return t;
}

// result[.., e, ..] = sum over k of matrix[e][k] * t[.., k, ..], e and k on dimension `d`. TOPI writes this as a
// reduction whose factors are a chain of selects over e and k and unrolls both loops. The terms that are not 0
// remain, for each e; they are written here directly.
Tensor Transform(te::Graph& g, const std::string& name, const Tensor& t, size_t d,
                 const Matrix& matrix) {
  te::Shape shape = t.shape();
  const int64_t rows = static_cast<int64_t>(matrix.size());
  shape[d] = rows;
  return g.Compute(name, shape, [&](const Axes& i) {
    const auto row = [&](int64_t e) {
      Expr sum;
      for (size_t k = 0; k < matrix[e].size(); ++k) {
        const double factor = matrix[e][k];
        if (factor == 0) continue;
        Axes from = i;
        from[d] = ir::ConstantLike(i[d], static_cast<int64_t>(k));
        const Expr term = factor == 1 ? t(from) : t(from) * factor;
        sum = sum ? sum + term : term;
      }
      return sum;
    };
    Expr value = row(rows - 1);
    for (int64_t e = rows - 1; e-- > 0;) {
      value = te::Select(ir::Eq(i[d] % rows, ir::ConstantLike(i[d], e)), row(e), value);
    }
    return value;
  });
}

struct Stages {
  SpatialInputs in;
  Tensor pad, kernel, tile;
  // One transform after the other, with the dimension that each is on.
  std::vector<std::pair<Tensor, size_t>> kernel_pack, data_pack, inverse;
  Tensor bgemm, output;
};

// Writes the stages. Their dimensions: places of a transformed tile, then the depth if it is not transformed, then two
// of channels and tiles in the order of `channels_last`.
class Expression {
 public:
  Expression(te::Graph& g, const Winograd& k) : g_(g), k_(k), dims_(k.rank() - k.first) {
    for (size_t a = k.first; a < k.rank(); ++a) transforms_.push_back(TransformsOf(k.m, k.r(a)));
  }

  Stages Make() {
    Stages t;
    t.in = Placeholders(g_, k_);
    Spatial padded = k_;
    for (size_t a = k_.first; a < k_.rank(); ++a) {
      padded.after[a] += k_.tiles(a) * k_.m - k_.axes[a].out;
    }
    t.pad = Pad(g_, padded, t.in.data);
    t.kernel = DilatedFilter(t.in.weight);
    t.kernel_pack = Chain("kernel_pack", t.kernel, &Transforms::g);
    t.tile = InputTiles(t.pad);
    t.data_pack = Chain("data_pack", t.tile, &Transforms::bt);
    t.bgemm = Products(t.kernel_pack.back().first, t.data_pack.back().first);
    t.inverse = Chain("inverse", t.bgemm, &Transforms::at);
    t.output = Output(t.in, t.inverse.back().first);
    return t;
  }

 private:
  using Chained = std::vector<std::pair<Tensor, size_t>>;

  bool has_depth() const { return k_.first > 0; }
  te::Shape ShapeOf(int64_t depth, int64_t channels) const {
    te::Shape shape;
    for (size_t a = k_.first; a < k_.rank(); ++a) shape.push_back(k_.alpha(a));
    if (has_depth()) shape.push_back(depth);
    shape.push_back(k_.channels_last ? k_.p() : channels);
    shape.push_back(k_.channels_last ? channels : k_.p());
    return shape;
  }
  // From the indices of a stage: channel and tile.
  Expr ChannelOf(const Axes& i) const { return k_.channels_last ? i.back() : i[i.size() - 2]; }
  Expr TileOf(const Axes& i) const { return k_.channels_last ? i[i.size() - 2] : i.back(); }

  // One transform after the other along the dimensions of a tile.
  Chained Chain(const char* stage, Tensor from, Matrix Transforms::* matrix) {
    Chained tensors;
    for (size_t d = 0; d < dims_; ++d) {
      const std::string name = d + 1 == dims_ ? std::string(stage) : StrCat(stage, d);
      from = Transform(g_, name, from, d, transforms_[d].*matrix);
      tensors.emplace_back(from, d);
    }
    return tensors;
  }

  // The filter, dilated: taps, [depth], input and output channel.
  Tensor DilatedFilter(const Tensor& weight) {
    te::Shape shape;
    for (size_t a = k_.first; a < k_.rank(); ++a) shape.push_back(k_.r(a));
    if (has_depth()) shape.push_back(k_.axes[0].kernel);
    shape.push_back(k_.ci);
    shape.push_back(k_.co);
    return g_.Compute("kernel", shape, [&](const Axes& i) -> Expr {
      std::vector<Expr> taps;
      Expr element;
      if (has_depth()) taps.push_back(i[dims_]);
      for (size_t a = k_.first; a < k_.rank(); ++a) {
        const Expr place = i[a - k_.first];
        const int64_t dilation = k_.axes[a].dilation;
        taps.push_back(dilation == 1 ? place : place / dilation);
        if (dilation == 1) continue;
        const Expr here = ir::Eq(place % dilation, ir::ConstantLike(place, 0));
        element = element ? ir::And(element, here) : here;
      }
      Axes from;
      size_t next = 0;
      for (const char letter : k_.kernel_layout) {
        from.push_back(letter == 'O' ? i.back() : letter == 'I' ? i[i.size() - 2] : taps[next++]);
      }
      return element ? te::Select(element, weight(from), 0) : weight(from);
    });
  }

  Tensor InputTiles(const Tensor& pad) {
    const int64_t depth = has_depth() ? pad.shape()[k_.layout.find('D')] : 0;
    return g_.Compute("input_tile", ShapeOf(depth, k_.ci), [&](const Axes& i) {
      Expr p = TileOf(i);
      std::vector<Expr> places(k_.rank());
      for (size_t a = k_.rank(); a-- > k_.first;) {
        places[a] = p % k_.tiles(a) * k_.m + i[a - k_.first];
        p = p / k_.tiles(a);
      }
      if (has_depth()) places[0] = i[dims_];
      return pad(InLayout(k_.layout, p, ChannelOf(i), places));
    });
  }

  // Sums over input channels (and a depth that is not transformed) of transformed filter times transformed tile.
  Tensor Products(const Tensor& u, const Tensor& v) {
    const te::ReduceAxis rc = g_.ReduceAxisOf("rc", k_.ci);
    std::vector<te::ReduceAxis> axes = {rc};
    if (has_depth()) axes.push_back(g_.ReduceAxisOf("rd", k_.axes[0].kernel));
    const int64_t depth = has_depth() ? k_.axes[0].out : 0;
    return g_.Compute("bgemm", ShapeOf(depth, k_.co), [&](const Axes& i) {
      Axes from_u(i.begin(), i.begin() + static_cast<int64_t>(dims_));
      Axes from_v = from_u;
      if (has_depth()) {
        from_u.push_back(axes[1]);
        from_v.push_back(i[dims_] * k_.axes[0].stride + axes[1] * k_.axes[0].dilation);
      }
      from_u.push_back(rc);
      from_u.push_back(ChannelOf(i));
      from_v.push_back(k_.channels_last ? TileOf(i) : Expr(rc));
      from_v.push_back(k_.channels_last ? Expr(rc) : TileOf(i));
      const auto to_sum = [&](Expr e) { return g_.context().Cast(k_.SumType(), e); };
      return te::ReduceSum(to_sum(u(from_u)) * to_sum(v(from_v)), axes);
    });
  }

  Tensor Output(const SpatialInputs& in, const Tensor& y) {
    return g_.Compute(
        "output", k_.out_shape,
        [&](const Axes& i) {
          const std::vector<Expr> places = SpatialLetters(k_.layout, i);
          const Expr c = Letter(k_.layout, i, 'C');
          Expr p = Letter(k_.layout, i, 'N');
          Axes from;
          for (size_t a = k_.first; a < k_.rank(); ++a) {
            p = p * k_.tiles(a) + places[a] / k_.m;
            from.push_back(places[a] % k_.m);
          }
          if (has_depth()) from.push_back(places[0]);
          from.push_back(k_.channels_last ? p : c);
          from.push_back(k_.channels_last ? c : p);
          return ApplyTail(k_, in, g_.context().Cast(k_.out, y(from)), c);
        },
        AxisNames(k_.layout));
  }

  te::Graph& g_;
  const Winograd& k_;
  const size_t dims_;
  std::vector<Transforms> transforms_;
};

// As many lanes as a vector of the last dimension should have: a divisor if there is a good one.
int64_t Lanes(int64_t extent) {
  const int64_t divisor = DivisorUpTo(extent, 32);
  return divisor >= 8 ? divisor : std::min<int64_t>(extent, 16);
}

// A thread transforms one row of a tile, which it keeps in registers; the products read tiles in shared memory.
absl::StatusOr<ir::Function> BuildForGpu(te::Schedule& s, const Winograd& k, Stages& t) {
  if (!(t.pad == t.in.data)) s[t.pad].ComputeInline();
  for (const auto* chain : {&t.kernel_pack, &t.data_pack, &t.inverse}) {
    for (const auto& [tensor, d] : *chain) BindElements(s, tensor, d);
  }
  // The loop over threads is the one outside the unrolled rows.
  te::Stage& first = s[t.data_pack[0].first];
  s[t.tile].SetScope("local").ComputeAt(first, first.leaves()[1]);
  BindElements(s, t.output);
  const te::Shape& shape = t.bgemm.shape();
  const size_t last = shape.size() - 1;
  GpuTile tile;
  tile.threads.assign(shape.size(), 1);
  tile.each.assign(shape.size(), 1);
  for (const auto& [d, threads] : {std::pair(last, 16), std::pair(last - 1, 8)}) {
    tile.each[d] = std::min<int64_t>(shape[d], 4);
    tile.threads[d] = std::min<int64_t>(CeilDiv(shape[d], tile.each[d]), threads);
  }
  tile.reduce.assign(k.first > 0 ? 2 : 1, 1);
  tile.reduce[0] = std::min<int64_t>(k.ci, 8);
  const auto lanes = [&](const Tensor& tensor, size_t d) -> int64_t {
    return tensor.shape().back() % 4 == 0 && tile.threads[d] * tile.each[d] % 4 == 0 ? 4 : 1;
  };
  const Tensor u = t.kernel_pack.back().first, v = t.data_pack.back().first;
  TileOnGpu(s, t.bgemm, t.bgemm, tile,
            {{.tensor = u, .lanes = lanes(u, k.channels_last ? last : last - 1)},
             {.tensor = v, .lanes = k.channels_last ? 1 : lanes(v, last)}});
  return te::Lower(s);
}

absl::StatusOr<ir::Function> Build(const Winograd& k, const Target& target) {
  te::Graph g(k.name);
  Stages t = Expression(g, k).Make();
  te::Schedule s(t.output);
  s[t.kernel].ComputeInline();
  if (IsGpu(target.name)) return BuildForGpu(s, k, t);
  s[t.tile].ComputeInline();
  if (!IsProcessor(target.name)) return te::Lower(s);
  if (!(t.pad == t.in.data)) ParallelElementwise(s, t.pad, target);
  ParallelElementwise(s, t.output, target);
  for (const auto* chain : {&t.kernel_pack, &t.data_pack, &t.inverse}) {
    for (const auto& [tensor, d] : *chain) {
      UnrollElementwise(s, tensor, d, std::min<int64_t>(16, Lanes(tensor.shape().back())));
    }
  }
  const size_t last = t.bgemm.rank() - 1;
  const int64_t lanes = Lanes(t.bgemm.shape()[last]);
  const int64_t most = lanes > 16 ? 3 : 6;
  TileReduction(s, t.bgemm,
                {.row_axis = last - 1,
                 .rows = std::max(DivisorUpTo(t.bgemm.shape()[last - 1], most), int64_t{1}),
                 .vector = lanes});
  return te::Lower(s);
}

absl::StatusOr<Winograd> Parse(const Operator& row, const OperatorCase& c,
                               const SpatialForm& form) {
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(row, c, form));
  Winograd k{std::move(spatial), 2, 0, form.layout.back() == 'C'};
  ASSIGN_OR_RETURN(k.m, NumberFrom(row, c, "tile_size", 1));
  if (k.rank() == 3) {
    ASSIGN_OR_RETURN(const int64_t depth, NumberFrom(row, c, "winograd_depth", 0));
    k.first = depth == 0 ? 1 : 0;
  }
  for (size_t a = k.first; a < k.rank(); ++a) {
    if (k.axes[a].stride != 1)
      return WrongShape(c, "expected a stride of 1, found ", k.axes[a].stride);
    if (k.alpha(a) > kMostAlpha || k.r(a) < 2) {
      return WrongShape(c, "expected a filter of 2 to ", kMostAlpha + 1 - k.m,
                        " places for tiles of ", k.m, ", found ", k.r(a));
    }
  }
  return k;
}

Operator Of(std::string name, std::string doc, const SpatialForm& form, const char* tile_size) {
  Operator row;
  row.name = std::move(name);
  row.doc = std::move(doc);
  row.shapes = {StrCat("data (", form.layout, ")"), StrCat("weight (", form.kernel_layout, ")")};
  row.attributes = SpatialAttributes(form);
  row.attributes.push_back({"tile_size", tile_size, "m of F(m, r)"});
  if (form.layout.find('D') != std::string::npos) {
    row.attributes.push_back({"winograd_depth", "1", "whether the depth is transformed, too"});
  }
  row.attributes.push_back(TailAttribute({"none", "bias", "relu", "bias_relu"}));
  return MakeRow<Winograd>(
      std::move(row),
      {.parse = [form](const Operator& r, const OperatorCase& c) { return Parse(r, c, form); },
       .tensors = [](const Winograd& k) { return SpatialTensors(k); },
       .reference =
           [](const Winograd& k, absl::Span<const ir::Tensor> in, ir::Tensor& out) {
             FinishReference(k, ReferenceSpatial(ToProblem(k), in[0], in[1]), in, out);
           },
       .build = Build,
       .macs = [](const Winograd& k) { return SpatialMacs(k); }});
}

}  // namespace

std::vector<Operator> TopiWinogradOperators() {
  const std::string doc = "sums of windows times filters by Winograd's transforms, ";
  return {Of("conv2d_winograd", doc + "NCHW", {"NCHW", "OIHW"}, "4"),
          Of("conv2d_nhwc_winograd", doc + "NHWC", {"NHWC", "HWIO"}, "4"),
          Of("conv3d_winograd", doc + "NCDHW", {"NCDHW", "OIDHW"}, "2")};
}

}  // namespace polynao::kernels
