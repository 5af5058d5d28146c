#include "kernels/te/depthwise.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/pragmas.h"
#include "compiler/target/target.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/levels.h"

namespace polynao::kernels {

using ir::Expr;
using ir::Type;
using te::Axis;
using te::Schedule;
using te::Tensor;

Tensor Padded(te::Graph& g, const GroupedConv& k, const Tensor& x) {
  return g.Compute("P", {k.h + 2 * k.pad_h, k.w + 2 * k.pad_w, k.ci},
                   [&](Expr y, Expr column, Expr c) {
                     const Expr value = x(y - k.pad_h, column - k.pad_w, c);
                     if (k.pad_h == 0 && k.pad_w == 0) return value;
                     return te::Select(ir::And(ir::And(k.pad_h <= y, y < k.pad_h + k.h),
                                               ir::And(k.pad_w <= column, column < k.pad_w + k.w)),
                                       value, 0.0);
                   },
                   {"y", "x", "c"});
}

TileNeeds ImageNeeds(const GroupedConv& k, int64_t rows, int64_t columns, int64_t channels) {
  const int64_t in = k.InputRows(rows) * k.InputColumns(columns) * channels;
  const int64_t out = rows * columns * channels * k.co / k.ci;
  TileNeeds needs;
  needs.nmem_bytes = 2 * OnChipBytes(in, k.in);
  needs.moved_bytes = in * ir::ByteSize(k.in) + out * ir::ByteSize(k.out);
  needs.load_segments = Segments({k.h, k.w + 2 * k.pad_w, k.ci}, k.InputRows(rows),
                                 k.InputColumns(columns), channels);
  needs.store_segments = Segments({k.ho(), k.wo(), k.ci}, rows, columns, channels);
  return needs;
}

namespace {

TileNeeds DepthwiseNeeds(const GroupedConv& k, const isa::Machine& m, int64_t rows, int64_t columns,
                         int64_t channels) {
  const int64_t in = k.InputRows(rows) * k.InputColumns(columns) * channels;
  const int64_t out = rows * columns * channels;
  const int64_t places = k.kh * k.kw;
  TileNeeds needs = ImageNeeds(k, rows, columns, channels);
  needs.nmem_bytes += k.NmemBytes(out, channels) +
                      OnChipBytes(out, k.sum) * (k.has_whole_rows() ? 1 : 3) +
                      2 * OnChipBytes(places * channels, k.in);
  if (k.sum != k.in) {
    needs.nmem_bytes += OnChipBytes(in, k.sum) + OnChipBytes(places * channels, k.sum);
    needs.compute_cycles += VectorCycles(m, OnChipBytes(in, k.sum));
  }
  const double pass = VectorCycles(m, OnChipBytes(out, k.sum));
  const double gather = VectorCycles(
      m, rows * columns * RoundUp(channels * ir::ByteSize(k.sum), m.Get("vector.bytes")));
  const double product = k.runs_through() ? static_cast<double>(rows) * VectorCycles(m, 0) + pass
                         : k.has_whole_rows() ? gather + pass
                                              : 2 * gather + pass;
  needs.compute_cycles += static_cast<double>(places) * (product + pass) + k.Cycles(m, out);
  return needs;
}

}  // namespace

absl::StatusOr<std::vector<GridTiling>> DepthwiseTilings(const GroupedConv& k,
                                                         const OperatorCase& c,
                                                         const isa::Machine& m) {
  return GridTilings(c, {k.ho(), k.wo(), k.co}, m, [&](int64_t rows, int64_t columns, int64_t n) {
    return DepthwiseNeeds(k, m, rows, columns, n);
  });
}

int64_t OwnFilters(const GroupedConv& k, const isa::Machine& m) {
  return RoundUp(CeilDiv(k.co, m.cores_per_cluster()), isa::kVectorGroup);
}

bool SharesFilters(const GroupedConv& k, const GridTiling& tiling, const isa::Machine& m) {
  const int64_t places = k.kh * k.kw, own = OwnFilters(k, m);
  const int64_t all_bytes = OnChipBytes(places * k.co, k.in);
  const TileNeeds tile = DepthwiseNeeds(k, m, tiling.rows, tiling.columns, tiling.channels);
  const int64_t nmem = tile.nmem_bytes - OnChipBytes(places * tiling.channels, k.in) +
                       2 * OnChipBytes(places * own, k.in);
  const int64_t hops = 2 * (m.Get("move_dma.start") + m.Get("smem.latency") + m.Get("sync.drain")) +
                       m.Get("sync.cluster") + all_bytes / m.Get("move_dma.port_bytes");
  return places * (tiling.core_channels - own) > 2 * hops && all_bytes <= m.smem_bytes() &&
         nmem <= m.nmem_bytes();
}

// [tensor-program depthwise begin]
absl::StatusOr<ir::Function> Depthwise(const GroupedConv& k, const GridTiling& tiling,
                                       const isa::Machine& m) {
  te::Graph g("conv2d");
  const Tensor in = g.Placeholder("X", {k.h, k.w, k.ci}, k.in);
  const Tensor f = g.Placeholder("F", {k.co, k.kh, k.kw, 1}, k.in);
  const Tensor b = k.bias ? g.Placeholder("B", {k.co}, k.sum) : Tensor();
  const te::Shape out = {k.ho(), k.wo(), k.co};
  const te::Shape places = {k.kh, k.kw, k.ho(), k.wo(), k.co};
  const bool widens = k.sum != k.in;
  const Tensor padded = Padded(g, k, in);
  const auto wide = [&](const char* name, const Tensor& from) {
    if (!widens) return from;
    return g.Compute(name, from.shape(),
                     [&](Expr i, Expr j, Expr c) { return To(k.sum, from(i, j, c)); });
  };
  const Tensor image = wide("PW", padded);
  const Tensor turned =
      g.Compute("FT", {k.kh, k.kw, k.co}, [&](Expr r, Expr s, Expr c) { return f(c, r, s, 0); });
  const bool shares = SharesFilters(k, tiling, m);
  const Tensor shared =
      shares ? g.Compute("FS", turned.shape(), [&](const te::Axes& at) { return turned(at); })
             : turned;
  const Tensor filters = wide("FW", shared);
  // Rows of any length: filters (and biases) are repeated for each pixel.
  const bool repeats = !k.has_whole_rows();
  const Tensor repeated =
      repeats ? g.Compute("FR", places,
                          [&](Expr r, Expr s, Expr, Expr, Expr c) { return filters(r, s, c); })
              : Tensor();
  const Tensor place = g.Compute("G", places, [&](Expr r, Expr s, Expr y, Expr x, Expr c) {
    return image(y * k.stride + r * k.dilation, x * k.stride + s * k.dilation, c);
  });
  const Tensor product = g.Compute("M", places, [&](Expr r, Expr s, Expr y, Expr x, Expr c) {
    return place(r, s, y, x, c) * (repeats ? repeated(r, s, y, x, c) : filters(r, s, c));
  });
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s_axis = g.ReduceAxisOf("s", k.kw);
  Tensor sums = g.Compute("S", out, [&](Expr y, Expr x, Expr c) {
    return te::ReduceSum(product(r, s_axis, y, x, c), r, s_axis);
  });
  const Tensor biases =
      b && repeats ? g.Compute("BR", out, [&](Expr, Expr, Expr c) { return b(c); }) : b;
  EpilogueSteps steps = Append(g, k, sums, biases);

  const Tensor y = steps.tensors.empty() ? sums : steps.tensors.back();
  Schedule s(y);
  const Tensor f_near = s.CacheRead(f, isa::kNmem);
  const Tensor sorted = shares ? s.CacheRead(shared, isa::kNmem) : turned;
  const Tensor b_near = b ? s.CacheRead(b, isa::kNmem) : b;
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  (steps.tensors.empty() ? sums : steps.tensors.back()) = result;
  const auto [cluster, block, tile] = TileGrid(s, y, tiling);
  const auto at = [&s](te::Stage& reader, const Axis& axis, const Tensor& tensor,
                       std::string_view instruction, size_t first = 0) {
    s[tensor].ComputeAt(reader, axis).SetScope(isa::kNmem);
    s[tensor].Pragma(s[tensor].axis(first), instruction);
  };
  if (shares) {
    te::Stage& sharing = s[shared];
    const auto [core, own] = sharing.Split(sharing.axis(2), OwnFilters(k, m));
    sharing.Reorder({core, sharing.axis(0), sharing.axis(1), own});
    sharing.ComputeAt(s[y], cluster).SetScope(isa::kSmem);
    sharing.Bind(core, isa::kCoreAxis).Pragma(sharing.axis(0), "memcpy");
    at(sharing, core, f_near, "memcpy");
    at(sharing, core, turned, "memcpy");
  } else {
    at(s[y], block, f_near, "memcpy");
  }
  at(s[y], block, sorted, "memcpy");
  if (widens) at(s[y], block, filters, "cast");
  if (b) at(s[y], block, b_near, "memcpy");
  if (b && repeats) at(s[y], tile, biases, "memcpy");
  at(s[y], tile, padded, pragma::kPad);
  if (widens) at(s[y], tile, image, "cast");
  for (size_t j = 0; j < steps.tensors.size(); ++j) {
    at(s[y], tile, steps.tensors[j], steps.instructions[j]);
  }
  ReusePlaces(s, sums, steps);
  te::Stage& sum = s[sums];
  const Axis rr = sum.reduce_axis(0), ss = sum.reduce_axis(1);
  sum.ComputeAt(s[y], tile).SetScope(isa::kNmem);
  sum.Reorder({rr, ss, sum.axis(0), sum.axis(1), sum.axis(2)});
  sum.Pragma(sum.axis(0), "add").PragmaInit(sum.axis(0), "fill");
  at(sum, ss, product, repeats ? "mul" : "row_mul", 2);
  if (repeats) at(sum, ss, repeated, "memcpy", 2);
  if (k.runs_through()) {
    s[place].ComputeInline();
  } else {
    at(sum, ss, place, "memcpy", 2);
    s[product].InPlace(place);
  }
  s[padded].DoubleBuffer();
  s[result].DoubleBuffer();
  return Lower(s);
}
// [tensor-program depthwise end]

}  // namespace polynao::kernels
