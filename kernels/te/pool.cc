#include "kernels/te/pool.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/pragmas.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/reference/layout.h"
#include "kernels/reference/reduce.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Schedule;
using te::Tensor;

Expr Within(Expr v, int64_t begin, int64_t count) { return ir::And(begin <= v, v < begin + count); }

// x with `value` around it, or x itself.
Expr Padded(const Tensor& x, int64_t before, int64_t after, Expr value, Expr row, Expr column,
            Expr channel) {
  if (before == 0 && after == 0) return x(row, column, channel);
  const int64_t h = x.shape()[0], w = x.shape()[1];
  return te::Select(ir::And(Within(row, before, h), Within(column, before, w)),
                    x(row - before, column - before, channel), value);
}

// ---- pooling -----------------------------------------------------------------------------------

// A case of pooling, its attributes read.
struct Pool : PoolLayer {
  bool is_max;
  Type type, sum;

  Pool(const Operator& op, const OperatorCase& c) {
    h = c.shape[0], w = c.shape[1], this->c = c.shape[2];
    window = *AttributeInt(op, c, "window");
    stride = AttributeInt(op, c, "stride").value_or(window);
    pad = *AttributeInt(op, c, "pad");
    is_max = op.name == "max_pool2d";
    type = c.dtype;
    sum = is_max ? type : SumType(type);
  }

  // Whether the elements of a window's place in all windows of a row stand side by side, from a
  // multiple of the vector unit's group on.
  bool runs_through() const {
    return stride == 1 && c % isa::kVectorGroup == 0 &&
           c * ir::ByteSize(sum) % kOnChipAlignment == 0;
  }
  // Means of one element are that element.
  bool has_mean() const { return !is_max && window > 1; }
  const char* combine() const { return is_max ? "max" : "add"; }
};

// [tensor-program pool begin]
// The tensors of pooling, in the order of their computation. For each position (r, s) in the window, the elements of
// all windows at this position form one tensor. These tensors are added up, or their maximum is taken, one by one:
// each instruction reads contiguous memory, for any number of channels.
struct PoolTensors {
  Tensor x;
  Tensor padded;
  Tensor wide;  // in the sum's type; empty if that is the input's
  Tensor place;
  Tensor reduced;
  Tensor mean, narrow;  // of means
  Tensor output() const { return narrow ? narrow : mean ? mean : reduced; }
};

PoolTensors Express(te::Graph& g, const Pool& k) {
  PoolTensors t;
  const std::vector<std::string> names = {"y", "x", "c"};
  t.x = g.Placeholder("X", {k.h, k.w, k.c}, k.type);
  const Expr around = k.is_max ? te::Identity(te::Reducer::kMax, g.context(), k.type)
                               : ir::ConstantLike(t.x(0, 0, 0), 0);
  t.padded = g.Compute(
      "P", {k.h + 2 * k.pad, k.w + 2 * k.pad, k.c},
      [&](Expr y, Expr x, Expr c) { return Padded(t.x, k.pad, k.pad, around, y, x, c); }, names);
  Tensor from = t.padded;
  if (k.sum != k.type) {
    t.wide = g.Compute(
        "W", t.padded.shape(), [&](Expr y, Expr x, Expr c) { return To(k.sum, t.padded(y, x, c)); },
        names);
    from = t.wide;
  }
  const te::Shape shape = {k.ho(), k.wo(), k.c};
  t.place = g.Compute("G", {k.window, k.window, k.ho(), k.wo(), k.c},
                      [&](Expr r, Expr s, Expr y, Expr x, Expr c) {
                        return from(y * k.stride + r, x * k.stride + s, c);
                      },
                      {"r", "s", "y", "x", "c"});
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.window), s = g.ReduceAxisOf("s", k.window);
  const bool narrows = k.sum != k.type;
  t.reduced = g.Compute(
      k.has_mean() || narrows ? "S" : "Y", shape,
      [&](Expr y, Expr x, Expr c) {
        const Expr value = t.place(r, s, y, x, c);
        return k.is_max ? te::ReduceMax(value, r, s) : te::ReduceSum(value, r, s);
      },
      names);
  if (k.has_mean()) {
    const double factor = 1.0 / static_cast<double>(k.window * k.window);
    t.mean = g.Compute(
        narrows ? "M" : "Y", shape,
        [&](Expr y, Expr x, Expr c) {
          const Expr sum = t.reduced(y, x, c);
          return sum * ir::ConstantLike(sum, factor);
        },
        names);
  }
  if (narrows) {
    const Tensor wide = t.output();
    t.narrow = g.Compute(
        "Y", shape, [&](Expr y, Expr x, Expr c) { return To(k.type, wide(y, x, c)); }, names);
  }
  return t;
}

// Clusters share rows, cores share rows and channels. Tile by tile: load the image, pad it, add one position of the
// window after the other to the result, store the result.
absl::StatusOr<ir::Function> OnCard(Schedule& s, PoolTensors& t, const Pool& k,
                                    const GridTiling& tiling) {
  const Tensor y = t.output();
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  (t.narrow ? t.narrow : t.mean ? t.mean : t.reduced) = result;
  const te::Axis tile = TileGrid(s, y, tiling).tile;
  const auto at_tile = [&](const Tensor& tensor, std::string_view instruction) {
    if (!tensor) return;
    s[tensor].ComputeAt(s[y], tile).SetScope(isa::kNmem).Pragma(s[tensor].axis(0), instruction);
  };
  at_tile(t.padded, pragma::kPad);
  at_tile(t.wide, "cast");
  at_tile(t.mean, "muls");
  at_tile(t.narrow, "cast");
  if (t.mean) s[t.mean].InPlace(t.reduced);
  te::Stage& sum = s[t.reduced];
  const te::Axis r = sum.reduce_axis(0), w = sum.reduce_axis(1);
  sum.ComputeAt(s[y], tile).SetScope(isa::kNmem);
  sum.Reorder({r, w, sum.axis(0), sum.axis(1), sum.axis(2)});
  sum.Pragma(sum.axis(0), k.combine()).PragmaInit(sum.axis(0), "fill");
  if (k.runs_through()) {
    s[t.place].ComputeInline();
  } else {
    s[t.place].ComputeAt(sum, w).SetScope(isa::kNmem).Pragma(s[t.place].axis(2), "memcpy");
  }
  s[t.padded].DoubleBuffer();
  s[result].DoubleBuffer();
  return Lower(s);
}
// [tensor-program pool end]

TileNeeds Needs(const Pool& k, const isa::Machine& m, int64_t rows, int64_t columns,
                int64_t channels) {
  const int64_t in_rows = (rows - 1) * k.stride + k.window;
  const int64_t in_columns = (columns - 1) * k.stride + k.window;
  const int64_t in = in_rows * in_columns * channels;
  const int64_t out = rows * columns * channels;
  const int64_t sum_bytes = OnChipBytes(out, k.sum);
  TileNeeds needs;
  needs.nmem_bytes = 2 * OnChipBytes(in, k.type) + sum_bytes * (k.runs_through() ? 1 : 2) +
                     OnChipBytes(out, k.type) * (k.sum == k.type ? 1 : 2);
  needs.moved_bytes = (in + out) * ir::ByteSize(k.type);
  needs.load_segments = Segments({k.h, k.w + 2 * k.pad, k.c}, in_rows, in_columns, channels);
  needs.store_segments = Segments({k.ho(), k.wo(), k.c}, rows, columns, channels);
  const double pass = VectorCycles(m, sum_bytes);
  const double gather = VectorCycles(
      m, rows * columns * RoundUp(channels * ir::ByteSize(k.sum), m.Get("vector.bytes")));
  const double reduce =
      k.runs_through() ? static_cast<double>(rows) * VectorCycles(m, 0) + pass : gather + pass;
  needs.compute_cycles = static_cast<double>(k.window * k.window) * reduce + 3 * pass;
  if (k.sum != k.type) {
    needs.nmem_bytes += OnChipBytes(in, k.sum);
    needs.compute_cycles += VectorCycles(m, OnChipBytes(in, k.sum));
  }
  return needs;
}

absl::StatusOr<std::vector<GridTiling>> Tilings(const Pool& k, const OperatorCase& c,
                                                const isa::Machine& m) {
  return GridTilings(c, {k.ho(), k.wo(), k.c}, m, [&](int64_t rows, int64_t columns, int64_t n) {
    return Needs(k, m, rows, columns, n);
  });
}

// On a CPU: pads the image once, then computes rows in parallel.
absl::StatusOr<ir::Function> OnProcessor(Schedule& s, const PoolTensors& t, const Pool& k,
                                         const Target& target) {
  const Tensor y = t.output();
  if (k.pad == 0) s[t.padded].ComputeInline();
  if (t.wide) s[t.wide].ComputeInline();
  s[t.place].ComputeInline();
  if (!(y == t.reduced)) s[t.reduced].ComputeAt(s[y], s[y].axis(1));
  if (t.mean && t.narrow) s[t.mean].ComputeInline();
  if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(0));
  return Lower(s);
}

absl::StatusOr<ir::Function> Build(const Pool& k, const OperatorCase& c, const Target& target) {
  te::Graph g(c.op);
  PoolTensors t = Express(g, k);
  Schedule s(t.output());
  if (target.machine == nullptr) return OnProcessor(s, t, k, target);
  RETURN_IF_ERROR(CheckInstructions(c, target, {StrCat(k.combine(), ".", ir::TypeName(k.sum))}));
  ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(k, c, *target.machine));
  return OnCard(s, t, k, tilings[0]);
}

absl::Status Check(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckShapes(c, {3}));
  RETURN_IF_ERROR(CheckNumber(op, c, "window", 1));
  if (AttributeWord(op, c, "stride") != "window") RETURN_IF_ERROR(CheckNumber(op, c, "stride", 1));
  const int64_t window = *AttributeInt(op, c, "window");
  // Each window then covers a part of the image.
  RETURN_IF_ERROR(CheckNumber(op, c, "pad", 0, window - 1));
  const Pool k(op, c);
  if (k.h + 2 * k.pad < window || k.w + 2 * k.pad < window) {
    return WrongCase(c, "the window is larger than the padded image");
  }
  return absl::OkStatus();
}

Operator PoolRow(const char* name, const char* doc, bool floats_only) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.floats_only = floats_only;
  row.shapes = {"image (H, W, C)"};
  row.attributes = {
      {"window", "2", "rows and columns of a window"},
      {"stride", "window", "distance between windows; window: as many as it has rows"},
      {"pad", "0", "rows and columns around the image; fewer than the window's"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto pool = [shared](const OperatorCase& c) { return Pool(*shared, c); };
  row.check = [shared](const OperatorCase& c) { return Check(*shared, c); };
  row.tensors = [pool](const OperatorCase& c) {
    const Pool k = pool(c);
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, {k.ho(), k.wo(), k.c}}};
  };
  row.work = [pool](const OperatorCase& c) {
    const Pool k = pool(c);
    // Rows (columns) that some window reads.
    const auto read = [&k](int64_t extent, int64_t outputs) {
      int64_t count = 0, end = 0;
      for (int64_t y = 0; y < outputs; ++y) {
        const int64_t begin = std::max(end, y * k.stride - k.pad);
        end = std::clamp(y * k.stride - k.pad + k.window, begin, std::max(begin, extent));
        count += end - begin;
      }
      return count;
    };
    const int64_t outputs = k.ho() * k.wo() * k.c;
    isa::Work work;
    work.gmem_bytes =
        (read(k.h, k.ho()) * read(k.w, k.wo()) * k.c + outputs) * ir::ByteSize(k.type);
    work.vector_elements = outputs * (k.window * k.window - (k.is_max ? 1 : 0));
    work.vector_type = k.sum;
    return work;
  };
  row.reference = [pool](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                         absl::Span<ir::Tensor> out) {
    const Pool k = pool(c);
    ReferencePool2d(k.is_max ? ReduceOp::kMax : ReduceOp::kMean, k, in[0], out[0]);
  };
  row.build = [pool](const OperatorCase& c, const Target& target) {
    return Build(pool(c), c, target);
  };
  row.schedules = [pool](const OperatorCase& c,
                         const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(pool(c), c, *target.machine));
    return Ranked(tilings);
  };
  row.estimate = [pool](const OperatorCase& c,
                        const Target& target) -> absl::StatusOr<mapping::Estimate> {
    ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(pool(c), c, *target.machine));
    return EstimateOfTiles(*target.machine, tilings[0]);
  };
  return row;
}

// ---- pad ---------------------------------------------------------------------------------------

struct Pad {
  int64_t h, w, c, before, after;
  double value;
  Type type;

  Pad(const Operator& op, const OperatorCase& k) {
    h = k.shape[0], w = k.shape[1], c = k.shape[2];
    before = *AttributeInt(op, k, "before");
    after = AttributeInt(op, k, "after").value_or(before);
    if (!absl::SimpleAtod(ToAbsl(AttributeWord(op, k, "value")), &value)) value = 0;
    type = k.dtype;
  }
  te::Shape output() const { return {before + h + after, before + w + after, c}; }
};

absl::StatusOr<std::vector<GridTiling>> Tilings(const Pad& k, const OperatorCase& c,
                                                const isa::Machine& m) {
  return GridTilings(c, k.output(), m, [&](int64_t rows, int64_t columns, int64_t channels) {
    const int64_t bytes = OnChipBytes(rows * columns * channels, k.type);
    const int64_t segments = Segments(k.output(), rows, columns, channels);
    return TileNeeds{.nmem_bytes = 2 * bytes,
                     .moved_bytes = 2 * bytes,
                     .load_segments = std::max(rows, segments),
                     .store_segments = segments,
                     .compute_cycles = VectorCycles(m, bytes)};
  });
}

absl::StatusOr<ir::Function> Build(const Pad& k, const OperatorCase& c, const Target& target) {
  // [tensor-program pad begin]
  te::Graph g("pad");
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.c}, k.type);
  const Expr value = ir::IsFloat(k.type) ? g.context().Float(k.type, k.value)
                                         : g.context().Int(k.type, static_cast<int64_t>(k.value));
  const Tensor y = g.Compute("Y", k.output(),
                             [&](Expr row, Expr column, Expr channel) {
                               return Padded(x, k.before, k.after, value, row, column, channel);
                             },
                             {"y", "x", "c"});
  Schedule s(y);
  if (target.machine == nullptr) {
    if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(0));
    return Lower(s);
  }
  ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(k, c, *target.machine));
  const Tensor padded = s.CacheWrite(y, isa::kNmem);
  const GridTiling& tiling = tilings[0];
  s[padded].ComputeAt(s[y], TileGrid(s, y, tiling).tile).SetScope(isa::kNmem).DoubleBuffer();
  s[padded].Pragma(s[padded].axis(0), pragma::kPad);
  return Lower(s);
  // [tensor-program pad end]
}

absl::Status CheckPad(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckShapes(c, {3}));
  RETURN_IF_ERROR(CheckNumber(op, c, "before", 0));
  if (AttributeWord(op, c, "after") != "before") RETURN_IF_ERROR(CheckNumber(op, c, "after", 0));
  const double value = Pad(op, c).value;
  const bool is_whole = std::trunc(value) == value && std::abs(value) <= 0x1p53;
  if (ir::IsInt(c.dtype) && !(is_whole && ir::FitsInt(c.dtype, static_cast<int64_t>(value)))) {
    return WrongCase(c, "attribute value: expected a value of ", ir::TypeName(c.dtype), ", found ",
                     value);
  }
  return absl::OkStatus();
}

Operator PadRow() {
  Operator row;
  row.name = "pad";
  row.doc =
      "Y (B + H + A, B + W + A, C) = X (H, W, C) with B rows and columns before and A after it";
  row.shapes = {"image (H, W, C)"};
  row.attributes = {{"before", "1", "rows above and columns left of the image"},
                    {"after", "before", "rows below and columns right of it; before: as many"},
                    {"value", "0", "of the new elements"}};
  const auto shared = std::make_shared<Operator>(row);
  const auto pad = [shared](const OperatorCase& c) { return Pad(*shared, c); };
  row.check = [shared](const OperatorCase& c) { return CheckPad(*shared, c); };
  row.tensors = [pad](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, pad(c).output()}};
  };
  row.work = [pad](const OperatorCase& c) {
    isa::Work work;
    work.gmem_bytes =
        (te::ElementCount(c.shape) + te::ElementCount(pad(c).output())) * ir::ByteSize(c.dtype);
    return work;
  };
  row.reference = [pad](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                        absl::Span<ir::Tensor> out) {
    const Pad k = pad(c);
    ReferencePad(k.before, k.after, k.value, in[0], out[0]);
  };
  row.build = [pad](const OperatorCase& c, const Target& target) {
    return Build(pad(c), c, target);
  };
  row.schedules = [pad](const OperatorCase& c,
                        const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(pad(c), c, *target.machine));
    return Ranked(tilings);
  };
  row.estimate = [pad](const OperatorCase& c,
                       const Target& target) -> absl::StatusOr<mapping::Estimate> {
    ASSIGN_OR_RETURN(const std::vector<GridTiling> tilings, Tilings(pad(c), c, *target.machine));
    return EstimateOfTiles(*target.machine, tilings[0]);
  };
  return row;
}

}  // namespace

std::vector<Operator> PoolOperators() {
  return {
      PoolRow("max_pool2d", "Y (HO, WO, C) = the largest element of each window of X (H, W, C)",
              false),
      PoolRow("avg_pool2d",
              "Y (HO, WO, C) = the mean of each window of X (H, W, C), zeros around it counted; "
              "of floats",
              true),
      PadRow()};
}

}  // namespace polynao::kernels
