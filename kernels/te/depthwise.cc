#include "kernels/te/depthwise.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/parts_layout.h"
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
                      OnChipBytes(places * channels, k.in);
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

// [tensor-program depthwise begin]
absl::StatusOr<ir::Function> Depthwise(const GroupedConv& k, const GridTiling& tiling) {
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
  const Tensor turned = g.Reshape(f, {k.kh, k.kw, k.co});
  const Tensor filters = wide("FW", turned);
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
  const Tensor f_near = s.CacheRead(turned, isa::kNmem);
  const Tensor b_near = b ? s.CacheRead(b, isa::kNmem) : b;
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  (steps.tensors.empty() ? sums : steps.tensors.back()) = result;
  const auto [block, tile] = TileGrid(s, y, tiling);
  const auto at = [&s](te::Stage& reader, const Axis& axis, const Tensor& tensor,
                       std::string_view instruction, size_t first = 0) {
    s[tensor].ComputeAt(reader, axis).SetScope(isa::kNmem);
    s[tensor].Pragma(s[tensor].axis(first), instruction);
  };
  at(s[y], block, f_near, "memcpy");
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
  ASSIGN_OR_RETURN(ir::Function function, Lower(s));
  ir::AddPartsLayout(function, {.parameter = "F", .rows = k.co, .parts = k.kh * k.kw});
  return function;
}
// [tensor-program depthwise end]

}  // namespace polynao::kernels
