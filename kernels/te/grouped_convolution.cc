#include "kernels/te/grouped_convolution.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/pragmas.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axis;
using te::Schedule;
using te::Tensor;

struct Conv : ConvLayer, Epilogue {
  using Epilogue::bias;
  using Epilogue::relu;
  using Epilogue::scale;

  Conv(const ConvLayer& layer, const Epilogue& e) : ConvLayer(layer), Epilogue(e) {}

  int64_t group_co() const { return co / groups; }
  int64_t InputRows(int64_t rows) const { return (rows - 1) * stride + (kh - 1) * dilation + 1; }
  int64_t InputColumns(int64_t n) const { return (n - 1) * stride + (kw - 1) * dilation + 1; }
  bool is_depthwise() const { return groups == ci && groups == co; }
  // Whether the products of whole rows of pixels are contiguous and start at an aligned address.
  bool has_whole_rows() const { return ci % isa::kVectorGroup == 0; }
  bool runs_through() const { return has_whole_rows() && stride == 1; }
};

// The image with zeros around it.
Tensor Padded(te::Graph& g, const Conv& k, const Tensor& x) {
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

// Bytes, moved segments and cycles that every kind of tile of rows x columns x channels has.
TileNeeds ImageNeeds(const Conv& k, int64_t rows, int64_t columns, int64_t channels) {
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

// ---- depthwise ---------------------------------------------------------------------------------

TileNeeds DepthwiseNeeds(const Conv& k, const isa::Machine& m, int64_t rows, int64_t columns,
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

absl::StatusOr<std::vector<GridTiling>> DepthwiseTilings(const Conv& k, const OperatorCase& c,
                                                         const isa::Machine& m) {
  return GridTilings(c, {k.ho(), k.wo(), k.co}, m, [&](int64_t rows, int64_t columns, int64_t n) {
    return DepthwiseNeeds(k, m, rows, columns, n);
  });
}

// The channels whose filters a core turns if the cores of its cluster share that.
int64_t OwnFilters(const Conv& k, const isa::Machine& m) {
  return RoundUp(CeilDiv(k.co, m.cores_per_cluster()), isa::kVectorGroup);
}

// Whether that fits and pays: cycles of elements that a core need not turn, against copies to and out of SMEM with a
// barrier between them; twice these, since scalar code and waits are not counted (230 to 370 cycles in all, simulated
// with 3 to 96 channels on mlu270).
bool SharesFilters(const Conv& k, const GridTiling& tiling, const isa::Machine& m) {
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
// Clusters share rows, cores share rows and channels. For each position (r, s) in the window, the elements of all
// windows at this position are multiplied by the filters' element and added to the sums. Filters are turned from
// [channel][place] to [place][channel], a cycle an element: each core of a cluster turns a part, all read it from SMEM;
// where they are too few or too many, each core turns its own.
absl::StatusOr<ir::Function> Depthwise(const Conv& k, const GridTiling& tiling,
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

// ---- groups ------------------------------------------------------------------------------------

TileNeeds GroupNeeds(const Conv& k, const isa::Machine& m, int64_t rows, int64_t columns) {
  const auto get = [&m](std::string_view name) { return static_cast<double>(m.Get(name)); };
  const int64_t in = k.InputRows(rows) * k.InputColumns(columns);
  const int64_t pixels = rows * columns;
  const int64_t lanes = RoundUp(k.group_co(), isa::kTensorLanes);
  const int64_t bytes = ir::ByteSize(k.in);
  const int64_t pitch = RoundUp(k.kh * k.kw * k.group_ci() * bytes, 64);
  const int64_t width = m.Get("vector.bytes");
  TileNeeds needs = ImageNeeds(k, rows, columns, k.ci);
  needs.nmem_bytes += OnChipBytes(in * k.group_ci(), k.in) + k.NmemBytes(pixels * lanes, lanes) +
                      2 * OnChipBytes(pixels * k.co, k.out);
  const double group =
      get("tensor.start") +
      static_cast<double>(pixels * lanes * pitch / bytes) /
          get(StrCat("tensor.macs_", ir::TypeName(k.in))) +
      VectorCycles(m, in * RoundUp(k.group_ci() * bytes, width)) + k.Cycles(m, pixels * lanes) +
      VectorCycles(m, pixels * RoundUp(k.group_co() * ir::ByteSize(k.out), width)) +
      // Its filters come from SMEM.
      get("move_dma.start") +
      get("smem.latency") * (1 + static_cast<double>(k.group_co()) / get("move_dma.outstanding"));
  needs.compute_cycles = static_cast<double>(k.groups) * group;
  return needs;
}

// Tiles have all channels.
absl::StatusOr<std::vector<GridTiling>> GroupTilings(const Conv& k, const OperatorCase& c,
                                                     const isa::Machine& m) {
  const int64_t wmem =
      RoundUp(k.group_co(), isa::kTensorLanes) *
      RoundUp(k.kh * k.kw * k.group_ci() * ir::ByteSize(k.in), isa::kTensorUnitAlignment);
  if (wmem > m.wmem_bytes()) {
    return absl::ResourceExhaustedError(StrCat("operator conv2d ", ShapesText(c),
                                               ": the filters of a group need ", wmem,
                                               " bytes of wmem, which has ", m.wmem_bytes()));
  }
  // Output channels are not tiled: a part of them would be stored pixel by pixel.
  return GridTilings(c, {k.ho(), k.wo(), 1}, m, [&](int64_t rows, int64_t columns, int64_t) {
    return GroupNeeds(k, m, rows, columns);
  });
}

// [tensor-program groups begin]
// Clusters and cores share rows. A tile is loaded with all channels. Group by group, its channels are convolved, and
// the results are stored between those of the other groups.
absl::StatusOr<ir::Function> Groups(const Conv& k, const GridTiling& tiling, bool shared_filters) {
  te::Graph g("conv2d");
  const int64_t gci = k.group_ci(), gco = k.group_co();
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.ci}, k.in);
  const Tensor f = g.Placeholder("F", {k.co, k.kh, k.kw, gci}, k.in);
  const Tensor b = k.bias ? g.Placeholder("B", {k.co}, k.sum) : Tensor();
  const Tensor padded = Padded(g, k, x);
  const Tensor part = g.Compute(
      "Q", {k.groups, padded.shape()[0], padded.shape()[1], gci},
      [&](Expr group, Expr y, Expr column, Expr i) { return padded(y, column, group * gci + i); });
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s_axis = g.ReduceAxisOf("s", k.kw);
  const te::ReduceAxis i = g.ReduceAxisOf("i", gci);
  const te::Shape out = {k.ho(), k.wo(), k.groups, gco};
  const Tensor sums = g.Compute("S", out, [&](Expr y, Expr column, Expr group, Expr c) {
    const Expr value =
        part(group, y * k.stride + r * k.dilation, column * k.stride + s_axis * k.dilation, i);
    const Expr weight = f(group * gco + c, r, s_axis, i);
    return te::ReduceSum(To(k.sum, value) * To(k.sum, weight), r, s_axis, i);
  });
  const Tensor biases = b ? g.Reshape(b, {k.groups, gco}) : b;
  const EpilogueSteps steps = Append(g, k, sums, biases);
  const Tensor last = steps.tensors.empty() ? sums : steps.tensors.back();
  const auto copy = [&](const char* name, const Tensor& from) {
    return g.Compute(name, out, [&](const te::Axes& at) { return from(at); });
  };
  const Tensor whole = copy("YW", last);
  const Tensor y = copy("Y", whole);

  Schedule s(y);
  const Tensor shared = shared_filters ? s.CacheRead(f, isa::kSmem) : f;
  const Tensor filters = s.CacheRead(shared, isa::kWmem);
  const Tensor b_near = b ? s.CacheRead(biases, isa::kNmem) : b;
  auto [cid, row] = s[y].Split(s[y].axis(0), tiling.cluster_rows);
  auto [tid, core_y] = s[y].Split(row, tiling.core_rows);
  auto [tile_row, yy] = s[y].Split(core_y, tiling.rows);
  auto [tile_column, xx] = s[y].Split(s[y].axis(1), tiling.columns);
  s[y].Reorder({cid, tid, tile_row, tile_column, yy, xx});
  const Axis tile = s[y].Fuse(tile_row, tile_column);
  s[y].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(yy, "memcpy");
  const auto at = [&s](te::Stage& reader, const Axis& axis, const Tensor& tensor,
                       std::string_view scope, std::string_view instruction) {
    s[tensor].ComputeAt(reader, axis).SetScope(scope).Pragma(s[tensor].axis(0), instruction);
  };
  if (shared_filters) at(s[y], cid, shared, isa::kSmem, "memcpy");
  at(s[y], tile, padded, isa::kNmem, pragma::kPad);
  te::Stage& results = s[whole];
  const Axis group = results.axis(2);
  results.ComputeAt(s[y], tile).SetScope(isa::kNmem);
  results.Reorder({group, results.axis(0), results.axis(1), results.axis(3)});
  results.Pragma(results.axis(0), "memcpy");
  at(results, group, part, isa::kNmem, "memcpy");
  at(results, group, filters, isa::kWmem, "memcpy");
  if (b) at(results, group, b_near, isa::kNmem, "memcpy");
  at(results, group, sums, isa::kNmem, "conv");
  for (size_t j = 0; j < steps.tensors.size(); ++j) {
    at(results, group, steps.tensors[j], isa::kNmem, steps.instructions[j]);
  }
  ReusePlaces(s, sums, steps);
  s[padded].DoubleBuffer();
  s[whole].DoubleBuffer();
  return Lower(s);
}
// [tensor-program groups end]

absl::StatusOr<std::vector<GridTiling>> Tilings(const Conv& k, const OperatorCase& c,
                                                const isa::Machine& m) {
  return k.is_depthwise() ? DepthwiseTilings(k, c, m) : GroupTilings(k, c, m);
}

}  // namespace

absl::StatusOr<ir::Function> BuildGroupedConvolution(const ConvLayer& layer, const Epilogue& e,
                                                     const OperatorCase& c, const Target& target) {
  const Conv k(layer, e);
  const isa::Machine& m = *target.machine;
  const std::string type(ir::TypeName(k.in));
  if (!k.is_depthwise()) {
    RETURN_IF_ERROR(CheckInstructions(c, target, {StrCat("conv.", type)}));
    if (m.Get(StrCat("tensor.macs_", type)) == 0) {
      return InvalidInput("operator conv2d of ", type, ": ", m.name,
                          " has no convolution of that type (tensor.macs_", type, " = 0)");
    }
  }
  ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(k, c, m));
  const GridTiling& tiling = tilings[0];
  if (k.is_depthwise()) return Depthwise(k, tiling, m);
  const int64_t filters = k.co * k.kh * k.kw * k.group_ci() * ir::ByteSize(k.in);
  return Groups(k, tiling, filters <= m.smem_bytes());
}

absl::StatusOr<std::vector<RankedSchedule>> GroupedConvolutionSchedules(const ConvLayer& layer,
                                                                        const Epilogue& e,
                                                                        const OperatorCase& c,
                                                                        const Target& target) {
  ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings,
                   Tilings(Conv(layer, e), c, *target.machine));
  return Ranked(tilings);
}

}  // namespace polynao::kernels
