#include "kernels/te/reduce.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/pragmas.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/reference/reduce.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axis;
using te::Schedule;
using te::Tensor;

// A case: X (outer, count, inner) becomes Y (outer, inner).
struct Reduction {
  ReduceOp op;
  Type type, sum;
  int64_t outer = 1, count = 1, inner = 1;

  // Means of one element are that element.
  bool has_mean() const { return op == ReduceOp::kMean && count > 1; }
  bool adds() const { return op == ReduceOp::kSum || op == ReduceOp::kMean; }
  // The vector unit's instruction that takes in one more row.
  const char* combine() const { return adds() ? "add" : op == ReduceOp::kMax ? "max" : "min"; }
  // The instruction that reduces rows of whole groups.
  std::string whole() const { return StrCat("reduce_", adds() ? "sum" : combine()); }
  // Whether rows of so many results start where instructions may.
  bool IsAligned(int64_t results) const {
    return results % isa::kVectorGroup == 0 && results * ir::ByteSize(sum) % kOnChipAlignment == 0;
  }
  te::Reducer reducer() const {
    return adds()                 ? te::Reducer::kSum
           : op == ReduceOp::kMax ? te::Reducer::kMax
                                  : te::Reducer::kMin;
  }
};

// How the card reduces. Along rows: there are few results, and the elements of each stand, or are moved, side by
// side in a row that one instruction reduces. Otherwise row by row: one instruction for each of the `count` rows
// computes neighbouring results together.
struct Tiling {
  bool along_rows = false;
  // A core takes a run of `core` outer elements, `tile` at a time; or, of one outer element after the
  // other, a run of `core` inner ones, `tile` at a time.
  bool by_outer = true;
  int64_t core = 1, tile = 1;
  int64_t rows = 1;       // of `count` that are in NMEM at a time
  bool gathered = false;  // a row is copied to where instructions may start
  int64_t tiles = 0;      // of a core
  TileNeeds needs = {};
  double cycles = 0;  // by PipelinedCycles
  ScheduleChoice choice = {};
};

// Sizes rounded up to the vector unit's groups, and to rows of groups.

// [tensor-program reduce begin]
struct Tensors {
  Tensor x;
  Tensor side;  // along rows: rows side by side, filled up to a whole group; else empty
  Tensor wide;  // in the sum's type
  Tensor row;   // row by row: one row of what is reduced; else empty
  Tensor reduced;
  Tensor mean, narrow;  // of means; in the result's type
  Tensor output() const { return narrow ? narrow : mean ? mean : reduced; }
};

Tensors Express(te::Graph& g, const Reduction& k, const te::Shape& shape, const Tiling& tiling) {
  Tensors t;
  t.x = g.Reshape(g.Placeholder("X", shape, k.type), {k.outer, k.count, k.inner});
  const bool narrows = k.sum != k.type;
  const char* reduced = k.has_mean() || narrows ? "S" : "Y";
  const te::Shape result = {k.outer, k.inner};
  const auto cast = [&](const Tensor& from) {
    return g.Compute("W", from.shape(),
                     [&](Expr a, Expr b, Expr c) { return To(k.sum, from(a, b, c)); });
  };
  if (tiling.along_rows) {
    const int64_t whole = RoundUp(k.count, isa::kVectorGroup);
    t.side = g.Compute("P", {k.outer, k.inner, whole}, [&](Expr o, Expr i, Expr r) {
      const Expr value = t.x(o, r, i);
      const Expr nothing = te::Identity(k.reducer(), g.context(), k.type);
      return whole == k.count ? value : te::Select(r < k.count, value, nothing);
    });
    if (narrows) t.wide = cast(t.side);
    const Tensor from = narrows ? t.wide : t.side;
    const te::ReduceAxis r = g.ReduceAxisOf("r", whole);
    t.reduced = g.Compute(
        reduced, result, [&](Expr o, Expr i) { return te::Body(k.reducer(), from(o, i, r), {r}); });
  } else {
    if (narrows) t.wide = cast(t.x);
    const Tensor from = narrows ? t.wide : t.x;
    t.row = g.Compute("G", {k.count, k.outer, k.inner},
                      [&](Expr r, Expr o, Expr i) { return from(o, r, i); });
    const te::ReduceAxis r = g.ReduceAxisOf("r", k.count);
    t.reduced = g.Compute(reduced, result, [&](Expr o, Expr i) {
      return te::Body(k.reducer(), t.row(r, o, i), {r});
    });
  }
  if (k.has_mean()) {
    t.mean = g.Compute(narrows ? "M" : "Y", result, [&](Expr o, Expr i) {
      const Expr sum = t.reduced(o, i);
      return sum * ir::ConstantLike(sum, 1.0 / static_cast<double>(k.count));
    });
  }
  if (narrows) {
    const Tensor last = t.output();
    t.narrow = g.Compute("Y", result, [&](Expr o, Expr i) { return To(k.type, last(o, i)); });
  }
  return t;
}

absl::StatusOr<ir::Function> OnCard(Schedule& s, Tensors& t, const Reduction& k,
                                    const Tiling& tiling, const isa::Machine& m) {
  const Tensor y = t.output();
  const Tensor x = s.CacheRead(t.x, isa::kNmem);
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  (t.narrow ? t.narrow : t.mean ? t.mean : t.reduced) = result;
  auto [core, rest] = s[y].Split(s[y].axis(tiling.by_outer ? 0 : 1), tiling.core);
  auto [cid, tid] = s[y].Split(core, m.cores_per_cluster());
  auto [tile, element] = s[y].Split(rest, tiling.tile);
  if (tiling.by_outer) {
    s[y].Reorder({cid, tid, tile, element});
  } else {
    s[y].Reorder({cid, tid, s[y].axis(0), tile, element});
  }
  s[y].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(element, "memcpy");
  const auto at = [&](te::Stage& reader, Axis axis, const Tensor& tensor,
                      std::string_view instruction) {
    if (!tensor) return;
    s[tensor].ComputeAt(reader, axis).SetScope(isa::kNmem);
    if (!instruction.empty()) s[tensor].Pragma(s[tensor].axis(0), instruction);
  };
  at(s[y], tile, t.narrow, "cast");
  at(s[y], tile, t.mean, "muls");
  te::Stage& sum = s[t.reduced];
  if (t.mean) s[t.mean].InPlace(t.reduced);
  if (tiling.along_rows) {
    at(s[y], tile, t.reduced, k.whole().c_str());
    at(s[y], tile, t.wide, "cast");
    if (k.inner == 1 && k.count % isa::kVectorGroup == 0) {
      s[t.side].ComputeInline();
    } else {
      at(s[y], tile, t.side,
         k.count % isa::kVectorGroup == 0 ? std::string_view("memcpy") : pragma::kPad);
    }
    at(s[y], tile, x, "memcpy");
  } else {
    at(s[y], tile, t.reduced, "");
    auto [rows, row] = sum.Split(sum.reduce_axis(0), tiling.rows);
    sum.Reorder({rows, row, sum.axis(0), sum.axis(1)});
    sum.Pragma(sum.axis(0), k.combine()).PragmaInit(sum.axis(0), "fill");
    // If a core computes parts of rows, there are gaps between them: rows are cast one by one.
    const bool has_gaps = !tiling.by_outer && k.inner % tiling.tile != 0 && !tiling.gathered;
    at(sum, has_gaps ? row : rows, t.wide, "cast");
    at(sum, rows, x, "memcpy");
    if (tiling.gathered) {
      at(sum, row, t.row, "memcpy");
    } else {
      s[t.row].ComputeInline();
    }
  }
  s[x].DoubleBuffer();
  s[result].DoubleBuffer();
  return Lower(s);
}
// [tensor-program reduce end]

TileNeeds Needs(const Reduction& k, const isa::Machine& m, const Tiling& t) {
  const int64_t outer = t.by_outer ? t.tile : 1;
  const int64_t results = t.by_outer ? outer * k.inner : t.tile;
  const int64_t elements = results * t.rows;
  const int64_t wide_bytes =
      OnChipBytes(results * RoundUp(t.rows, t.along_rows ? isa::kVectorGroup : 1), k.sum);
  const int64_t result_bytes = OnChipBytes(results, k.sum);
  TileNeeds needs;
  needs.nmem_bytes = 2 * OnChipBytes(elements, k.type) + result_bytes * 3;
  if (k.sum != k.type) {
    needs.nmem_bytes += wide_bytes;
    needs.compute_cycles += VectorCycles(m, wide_bytes);
  }
  needs.moved_bytes = elements * ir::ByteSize(k.type);
  if (!t.by_outer && t.tile < k.inner) needs.load_segments = t.rows;
  const int64_t width = m.Get("vector.bytes");
  if (t.along_rows) {
    const bool is_in_place = k.inner == 1 && k.count % isa::kVectorGroup == 0;
    if (!is_in_place) {
      needs.nmem_bytes += OnChipBytes(results * RoundUp(k.count, isa::kVectorGroup), k.type);
      const int64_t segment =
          k.inner == 1 ? RoundUp(k.count * ir::ByteSize(k.type), width) : k.count * width;
      needs.compute_cycles += VectorCycles(m, results * segment);
    }
    needs.compute_cycles += VectorCycles(m, wide_bytes);
  } else {
    const double pass = VectorCycles(m, result_bytes);
    const double rows = static_cast<double>(t.rows);
    if (t.gathered) {
      needs.nmem_bytes += result_bytes;
      needs.compute_cycles +=
          rows * VectorCycles(m, outer * RoundUp(results / outer * ir::ByteSize(k.sum), width));
    }
    needs.compute_cycles += rows * pass * static_cast<double>(t.gathered ? 1 : outer);
  }
  needs.compute_cycles += 3 * VectorCycles(m, result_bytes);
  return needs;
}

absl::StatusOr<std::vector<Tiling>> Tilings(const Reduction& k, const OperatorCase& c,
                                            const Target& target) {
  const isa::Machine& m = *target.machine;
  // The smallest integers have no instruction along rows.
  const std::string whole = StrCat(k.whole(), ".", ir::TypeName(k.sum));
  const bool has_whole = target.instructions->Find(whole) != nullptr;
  const std::string combine = StrCat(k.combine(), ".", ir::TypeName(k.sum));
  RETURN_IF_ERROR(CheckInstructions(c, target, {k.inner == 1 ? whole : combine}));
  std::vector<Tiling> tilings;
  int64_t least = INT64_MAX, least_wanted = INT64_MAX;
  ScheduleChoice nearest;  // of those with what the case names
  const auto try_one = [&](Tiling t) {
    t.needs = Needs(k, m, t);
    least = std::min(least, t.needs.nmem_bytes);
    t.choice = {{"by_outer", t.by_outer}, {"rows", t.rows}, {"tile", t.tile}};
    if (!Agrees(t.choice, c.schedule)) return;
    if (t.needs.nmem_bytes > m.nmem_bytes()) {
      if (t.needs.nmem_bytes < least_wanted) least_wanted = t.needs.nmem_bytes, nearest = t.choice;
      return;
    }
    t.tiles = CeilDiv(t.core, t.tile) * (t.by_outer ? 1 : k.outer) * CeilDiv(k.count, t.rows);
    t.cycles = PipelinedCycles(m, t.tiles, t.needs);
    tilings.push_back(t);
  };
  const int64_t core_outer = CeilDiv(k.outer, m.cores());
  for (int64_t tile : Fractions(core_outer)) {
    // There are few columns, or only one: rows of one column each.
    if (k.inner < isa::kVectorGroup && has_whole) {
      try_one({.along_rows = true, .core = core_outer, .tile = tile, .rows = k.count});
    }
    if (k.inner == 1) continue;
    for (int64_t rows : Fractions(k.count)) {
      // Of several outer elements a part of the last rows would not run through memory.
      if (tile > 1 && k.count % rows != 0) continue;
      Tiling t = {.core = core_outer, .tile = tile, .rows = rows, .gathered = true};
      try_one(t);
      t.gathered = false;
      if (k.IsAligned(k.inner)) try_one(t);
    }
  }
  if (k.inner > 1) {
    const int64_t core = RoundUp(CeilDiv(k.inner, m.cores()), isa::kVectorGroup);
    int64_t last = 0;
    for (int64_t part : Fractions(core)) {
      const int64_t tile = std::min(RoundUp(part, isa::kVectorGroup), k.inner);
      if (tile == std::exchange(last, tile)) continue;
      for (int64_t rows : Fractions(k.count)) {
        Tiling t = {.by_outer = false, .core = RoundUp(core, tile), .tile = tile, .rows = rows};
        t.gathered = !k.IsAligned(tile);
        try_one(t);
      }
    }
  }
  if (least > m.nmem_bytes()) {
    return absl::ResourceExhaustedError(StrCat("operator ", c.op, " ", ShapesText(c),
                                               ": its smallest tile needs ", least,
                                               " bytes of nmem, which has ", m.nmem_bytes()));
  }
  if (tilings.empty()) {
    return NoSchedule(
        c, nearest.empty() ? "" : te::DoesNotFit("nmem", least_wanted, m.nmem_bytes(), nearest));
  }
  std::sort(tilings.begin(), tilings.end(), [](const Tiling& a, const Tiling& b) {
    return std::tie(a.cycles, a.choice) < std::tie(b.cycles, b.choice);
  });
  return tilings;
}

absl::StatusOr<ir::Function> OnProcessor(Schedule& s, const Tensors& t, const Target& target) {
  const Tensor y = t.output();
  if (t.wide) s[t.wide].ComputeInline();
  s[t.row].ComputeInline();
  if (!(y == t.reduced)) s[t.reduced].ComputeAt(s[y], s[y].axis(1));
  if (t.mean && t.narrow) s[t.mean].ComputeInline();
  const bool is_wide = y.shape()[0] > 1;
  if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(is_wide ? 0 : 1));
  return Lower(s);
}

absl::StatusOr<ir::Function> Build(const Reduction& k, const OperatorCase& c,
                                   const Target& target) {
  te::Graph g(c.op);
  if (target.machine == nullptr) {
    const Tensors t = Express(g, k, c.shape, Tiling());
    Schedule s(t.output());
    return OnProcessor(s, t, target);
  }
  ASSIGN_OR_RETURN(const std::vector<Tiling> tilings, Tilings(k, c, target));
  const Tiling& tiling = tilings[0];
  Tensors t = Express(g, k, c.shape, tiling);
  Schedule s(t.output());
  return OnCard(s, t, k, tiling, *target.machine);
}

// The axes from `axis` on, `axes` of them, of which `axis` may be counted from the end.
Reduction Along(ReduceOp op, const OperatorCase& c, int64_t axis, int64_t axes) {
  const int64_t rank = static_cast<int64_t>(c.shape.size());
  if (axis < 0) axis += rank;
  Reduction k{.op = op, .type = c.dtype, .sum = c.dtype};
  if (k.adds()) k.sum = SumType(c.dtype);
  for (int64_t d = 0; d < rank; ++d) {
    (d < axis ? k.outer : d < axis + axes ? k.count : k.inner) *= c.shape[d];
  }
  return k;
}

// A row of the table; `reduction` reads a case, `output` says the result's shape.
Operator MakeOperator(Operator row, ReduceOp op,
                      const std::function<Reduction(const OperatorCase&)>& reduction,
                      const std::function<std::vector<int64_t>(const OperatorCase&)>& output) {
  row.tensors = [output](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, output(c)}};
  };
  row.work = [reduction](const OperatorCase& c) {
    const Reduction k = reduction(c);
    isa::Work work;
    work.gmem_bytes = k.outer * (k.count + 1) * k.inner * ir::ByteSize(k.type);
    work.vector_elements = k.outer * (k.count - 1) * k.inner;
    work.vector_type = k.sum;
    return work;
  };
  row.reference = [reduction, op](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                                  absl::Span<ir::Tensor> out) {
    const Reduction k = reduction(c);
    ReferenceReduce(op, k.outer, k.count, k.inner, in[0], out[0]);
  };
  row.build = [reduction](const OperatorCase& c, const Target& target) {
    return Build(reduction(c), c, target);
  };
  row.schedules = [reduction](const OperatorCase& c,
                              const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    ASSIGN_OR_RETURN(const std::vector<Tiling> tilings, Tilings(reduction(c), c, target));
    return Ranked(tilings);
  };
  row.estimate = [reduction](const OperatorCase& c,
                             const Target& target) -> absl::StatusOr<mapping::Estimate> {
    ASSIGN_OR_RETURN(const std::vector<Tiling> tilings, Tilings(reduction(c), c, target));
    return EstimateOfTiles(*target.machine, tilings[0]);
  };
  return row;
}

absl::Status Check(const Operator& op, const OperatorCase& c) {
  const int64_t rank = static_cast<int64_t>(c.shape.size());
  if (rank == 0) return WrongCase(c, "expected 1 dimension or more");
  RETURN_IF_ERROR(CheckShapes(c, {c.shape.size()}));
  RETURN_IF_ERROR(CheckNumber(op, c, "axis", -rank, rank - 1));
  const int64_t axis = *AttributeInt(op, c, "axis");
  return CheckNumber(op, c, "axes", 1, axis < 0 ? -axis : rank - axis);
}

Operator ReduceRow(const char* name, const char* doc, ReduceOp op) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.floats_only = op == ReduceOp::kMean;
  row.shapes = {"X of 1 or more dimensions"};
  row.attributes = {{"axis", "-1", "the first axis that goes; -1: the last one there is"},
                    {"axes", "1", "how many neighbouring axes go"}};
  const auto shared = std::make_shared<Operator>(row);
  row.check = [shared, op](const OperatorCase& c) {
    using enum Type;
    if (op == ReduceOp::kSum) RETURN_IF_ERROR(CheckType(c, {kF16, kBF16, kF32, kF64, kI32, kI64}));
    return Check(*shared, c);
  };
  const auto reduction = [shared, op](const OperatorCase& c) {
    return Along(op, c, *AttributeInt(*shared, c, "axis"), *AttributeInt(*shared, c, "axes"));
  };
  const auto output = [shared](const OperatorCase& c) {
    int64_t axis = *AttributeInt(*shared, c, "axis");
    if (axis < 0) axis += static_cast<int64_t>(c.shape.size());
    std::vector<int64_t> shape = c.shape;
    shape.erase(shape.begin() + axis, shape.begin() + axis + *AttributeInt(*shared, c, "axes"));
    return shape;
  };
  return MakeOperator(std::move(row), op, reduction, output);
}

Operator GlobalAveragePool() {
  Operator row;
  row.name = "global_avg_pool";
  row.doc = "Y (1, 1, C) = the mean of all rows and columns of X (H, W, C); of floats";
  row.floats_only = true;
  row.shapes = {"image (H, W, C)"};
  row.check = [](const OperatorCase& c) { return CheckShapes(c, {3}); };
  return MakeOperator(
      std::move(row), ReduceOp::kMean,
      [](const OperatorCase& c) { return Along(ReduceOp::kMean, c, 0, 2); },
      [](const OperatorCase& c) { return std::vector<int64_t>{1, 1, c.shape[2]}; });
}

}  // namespace

std::vector<Operator> ReduceOperators() {
  return {ReduceRow("reduce_sum", "Y = the sums of X along axes", ReduceOp::kSum),
          ReduceRow("reduce_mean", "Y = the means of X along axes; of floats", ReduceOp::kMean),
          ReduceRow("reduce_max", "Y = the largest elements of X along axes", ReduceOp::kMax),
          ReduceRow("reduce_min", "Y = the smallest elements of X along axes", ReduceOp::kMin),
          GlobalAveragePool()};
}

}  // namespace polynao::kernels
