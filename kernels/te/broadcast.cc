#include "kernels/te/broadcast.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/reference/layout.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using te::Axis;
using te::Schedule;
using te::Shape;
using te::Tensor;

using Value = std::function<Expr(Expr a, Expr b)>;

// One dimension of the result, or several neighbouring ones along which the same operands vary.
struct Dimension {
  int64_t extent = 1;
  std::array<bool, 2> varies = {true, true};  // A, B
};

// The shape of the result; absent if the two shapes cannot be broadcast.
std::optional<Shape> ResultShape(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
    const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - d] = x == 1 ? y : x;
  }
  return shape;
}

// The result's dimensions, merged into as few as possible, at least one.
std::vector<Dimension> Dimensions(const Shape& a, const Shape& b) {
  const Shape shape = *ResultShape(a, b);
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const auto varies = [&](const Shape& operand) {
      const size_t missing = shape.size() - operand.size();
      return d >= missing && operand[d - missing] != 1;
    };
    const Dimension dimension = {shape[d], {varies(a), varies(b)}};
    if (!dimensions.empty() && dimensions.back().varies == dimension.varies) {
      dimensions.back().extent *= dimension.extent;
    } else {
      dimensions.push_back(dimension);
    }
  }
  if (dimensions.empty()) dimensions.emplace_back();
  return dimensions;
}

// A case of two shapes.
struct Case {
  std::vector<Dimension> dimensions;
  std::array<Shape, 2> shapes;
  ir::Type type;
  std::string op;

  explicit Case(const OperatorCase& c)
      : dimensions(Dimensions(c.shape, c.operands[0])),
        shapes({c.shape, c.operands[0]}),
        type(c.dtype),
        op(c.op) {}

  // Whether an operand is as large as the result.
  bool IsWhole(size_t operand) const {
    return std::all_of(dimensions.begin(), dimensions.end(),
                       [operand](const Dimension& d) { return d.varies[operand]; });
  }
  Shape ShapeFrom(size_t first, int64_t first_extent) const {
    Shape shape = {first_extent};
    for (size_t d = first + 1; d < dimensions.size(); ++d) shape.push_back(dimensions[d].extent);
    return shape;
  }
  Shape Result() const { return ShapeFrom(0, dimensions[0].extent); }
  // The extents (or indices) of an operand's own dimensions, given those of the result's dimensions
  // from `first` on; `one` is that of a single element.
  template <typename T>
  std::vector<T> Own(size_t operand, const std::vector<T>& all, T one, size_t first = 0) const {
    std::vector<T> own;
    for (size_t d = first; d < dimensions.size(); ++d) {
      if (dimensions[d].varies[operand]) own.push_back(all[d - first]);
    }
    if (own.empty()) own.push_back(one);
    return own;
  }
};

// How the card's cores share the result. For each index of the dimensions before `split`, a core takes a run of
// dimension `split`, in tiles that span this and all later dimensions.
struct Tiling {
  size_t split = 0;
  int64_t core = 1, tile = 1;
  double cycles = 0;  // by PipelinedCycles
  ScheduleChoice choice = {};

  // Whether an operand's part of a tile must be repeated to be as large as the tile,
  bool Spreads(const Case& k, size_t operand) const {
    for (size_t d = split; d < k.dimensions.size(); ++d) {
      const int64_t extent = d == split ? tile : k.dimensions[d].extent;
      if (extent > 1 && !k.dimensions[d].varies[operand]) return true;
    }
    return false;
  }
  // whether its elements are repeated along the last dimension so often that it pays to copy them in
  // groups,
  bool RepeatsElements(const Case& k, size_t operand) const {
    const Dimension& last = k.dimensions.back();
    const int64_t extent = split + 1 == k.dimensions.size() ? tile : last.extent;
    return !last.varies[operand] && extent >= 2 * isa::kVectorGroup;
  }
  // and whether it is the same in all of a core's tiles.
  bool IsSame(const Case& k, size_t operand) const {
    for (size_t d = 0; d <= split; ++d) {
      if (k.dimensions[d].varies[operand]) return false;
    }
    return true;
  }
};

// [tensor-program broadcast begin]
// Operands smaller than the result are repeated on chip, once for all tiles where possible. Then a tile is
// contiguous in every operand, and one instruction computes it.
struct Tensors {
  std::array<Tensor, 2> in;  // in their own dimensions
  std::array<Tensor, 2>
      groups;  // single elements repeated isa::kVectorGroup times; empty if there are none
  std::array<Tensor, 2> full;  // repeated; empty if that is not needed
  Tensor out;
};

Tensors Express(te::Graph& g, const Case& k, const Value& value, const Tiling& t) {
  Tensors result;
  const Shape shape = k.Result();
  std::array<std::function<Expr(const te::Axes&)>, 2> element;
  for (size_t o = 0; o < 2; ++o) {
    const char* name = o == 0 ? "A" : "B";
    const Tensor in =
        g.Reshape(g.Placeholder(name, k.shapes[o], k.type), k.Own<int64_t>(o, shape, 1));
    const Expr zero = g.context().Int(g.index_type(), 0);
    result.in[o] = in;
    element[o] = [=, &k](const te::Axes& at) { return in(k.Own(o, at, zero)); };
    if (!t.Spreads(k, o)) continue;
    const bool same = t.IsSame(k, o);
    const Shape repeated = same ? k.ShapeFrom(t.split, t.tile) : shape;
    std::function<Expr(te::Axes)> part = [=, &k, &t](const te::Axes& at) {
      return in(k.Own(o, at, zero, same ? t.split : 0));
    };
    // Single elements are copied one by one: first a few copies of each, then these copies as a group.
    if (t.RepeatsElements(k, o)) {
      Shape few = repeated;
      few.back() = isa::kVectorGroup;
      const Tensor groups = g.Compute(StrCat(name, ".few"), few, part);
      result.groups[o] = groups;
      part = [groups](te::Axes at) {
        at.back() = at.back() % isa::kVectorGroup;
        return groups(at);
      };
    }
    const Tensor full = g.Compute(StrCat(name, ".full"), repeated, part);
    result.full[o] = full;
    element[o] = [full, same, &t](const te::Axes& at) {
      if (!same) return full(at);
      te::Axes inside(at.begin() + static_cast<ptrdiff_t>(t.split), at.end());
      inside[0] = inside[0] % t.tile;
      return full(inside);
    };
  }
  result.out = g.Compute("C", shape,
                         [&](const te::Axes& at) { return value(element[0](at), element[1](at)); });
  return result;
}

absl::StatusOr<ir::Function> OnCard(Schedule& s, Tensors& t, const Case& k, const Tiling& tiling,
                                    const isa::Machine& m) {
  const Tensor y = t.out;
  std::array<Tensor, 2> in = {s.CacheRead(t.in[0], isa::kNmem), s.CacheRead(t.in[1], isa::kNmem)};
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  std::vector<Axis> axes = s[y].leaves();
  auto [core, rest] = s[y].Split(axes[tiling.split], tiling.core);
  auto [cid, tid] = s[y].Split(core, m.cores_per_cluster());
  auto [tile, element] = s[y].Split(rest, tiling.tile);
  std::vector<Axis> order = {cid, tid};
  order.insert(order.end(), axes.begin(), axes.begin() + static_cast<ptrdiff_t>(tiling.split));
  order.insert(order.end(), {tile, element});
  s[y].Reorder(order)
      .Bind(cid, isa::kClusterAxis)
      .Bind(tid, isa::kCoreAxis)
      .Pragma(element, "memcpy");
  std::optional<Tensor> place;  // that the result may take
  for (size_t o = 0; o < 2; ++o) {
    const bool same = t.full[o] && tiling.IsSame(k, o);
    if (t.groups[o]) s[t.full[o]].Split(s[t.full[o]].leaves().back(), isa::kVectorGroup);
    for (const Tensor& tensor : {in[o], t.groups[o], t.full[o]}) {
      if (!tensor) continue;
      s[tensor].ComputeAt(s[y], same ? tid : tile).SetScope(isa::kNmem);
      s[tensor].Pragma(s[tensor].leaves()[0], "memcpy");
    }
    if (k.IsWhole(o) && !place) {
      place = in[o];
    } else if (!same) {
      s[in[o]].DoubleBuffer();
    }
  }
  s[result]
      .ComputeAt(s[y], tile)
      .SetScope(isa::kNmem)
      .Pragma(s[result].axis(0), k.op)
      .DoubleBuffer();
  if (place) s[result].InPlace(*place);
  return Lower(s);
}
// [tensor-program broadcast end]

// What a tile needs. `once`: cycles of the copies that serve all tiles of a core.
TileNeeds Needs(const Case& k, const isa::Machine& m, const Tiling& t, double& once) {
  const Shape tile = k.ShapeFrom(t.split, t.tile);
  const int64_t elements = te::ElementCount(tile);
  const int64_t bytes = OnChipBytes(elements, k.type);
  const int64_t width = m.Get("vector.bytes");
  TileNeeds needs;
  needs.nmem_bytes = 2 * bytes;
  needs.moved_bytes = elements * ir::ByteSize(k.type);
  needs.compute_cycles = VectorCycles(m, bytes);
  bool has_place = false;
  for (size_t o = 0; o < 2; ++o) {
    const int64_t own = te::ElementCount(k.Own<int64_t>(o, tile, 1, t.split));
    if (!t.Spreads(k, o)) {
      needs.moved_bytes += elements * ir::ByteSize(k.type);
      if (has_place || !k.IsWhole(o)) needs.nmem_bytes += 2 * bytes;
      has_place = has_place || k.IsWhole(o);
      continue;
    }
    needs.nmem_bytes += bytes + 2 * OnChipBytes(own, k.type);
    if (t.RepeatsElements(k, o)) {
      needs.nmem_bytes += OnChipBytes(elements / tile.back() * isa::kVectorGroup, k.type);
    }
    double& cycles = t.IsSame(k, o) ? once : needs.compute_cycles;
    const auto copy = [&](int64_t count, int64_t run) {
      return VectorCycles(m, count / run * RoundUp(run * ir::ByteSize(k.type), width));
    };
    if (t.RepeatsElements(k, o)) {
      cycles +=
          copy(elements / tile.back() * isa::kVectorGroup, 1) + copy(elements, isa::kVectorGroup);
    } else {
      cycles += copy(elements, k.dimensions.back().varies[o] ? tile.back() : 1);
    }
  }
  return needs;
}

// All tilings of a case, the cheapest first.
std::vector<Tiling> Tilings(const Case& k, const OperatorCase& c, const isa::Machine& m) {
  std::vector<Tiling> tilings;
  int64_t outer = 1;
  for (size_t split = 0; split < k.dimensions.size(); ++split) {
    const int64_t extent = k.dimensions[split].extent;
    const int64_t run = std::max<int64_t>(1, CeilDiv(extent, m.cores()));
    // Single elements fill whole groups of the vector unit.
    const int64_t group = split + 1 == k.dimensions.size() ? isa::kVectorGroup : 1;
    Tiling t = {.split = split};
    for (const int64_t size : Fractions(run)) {
      const int64_t tile = std::min(RoundUp(size, group), std::max<int64_t>(1, extent));
      if (t.cycles > 0 && tile == t.tile) continue;
      t.tile = tile;
      t.core = RoundUp(run, t.tile);
      double once = 0;
      const TileNeeds needs = Needs(k, m, t, once);
      t.cycles = once + PipelinedCycles(m, outer * (t.core / t.tile), needs);
      t.choice = {{"split", static_cast<int64_t>(split)}, {"tile", t.tile}};
      if (needs.nmem_bytes <= m.nmem_bytes() && Agrees(t.choice, c.schedule)) tilings.push_back(t);
    }
    outer *= extent;
  }
  std::sort(tilings.begin(), tilings.end(), [](const Tiling& a, const Tiling& b) {
    return std::tie(a.cycles, a.choice) < std::tie(b.cycles, b.choice);
  });
  return tilings;
}

// One loop nest; threads take the outermost dimension.
absl::StatusOr<ir::Function> OnProcessor(Schedule& s, const Tensors& t, const Target& target) {
  if (IsProcessor(target.name)) {
    std::vector<Axis> axes = s[t.out].leaves();
    if (axes.size() == 1) {
      auto [run, element] = s[t.out].Split(axes[0], int64_t{1} << 14);
      axes = {run, element};
    }
    s[t.out].Parallel(axes.front()).Vectorize(axes.back());
  } else if (IsGpu(target.name)) {
    auto [block, thread] = s[t.out].Split(s[t.out].Fuse(s[t.out].leaves()), 256);
    s[t.out].Bind(block, "blockIdx.x").Bind(thread, "threadIdx.x");
  }
  return Lower(s);
}

absl::StatusOr<ir::Function> Build(const OperatorCase& c, const Value& value,
                                   const Target& target) {
  const Case k(c);
  // Not `div`, which is a function of C's library.
  te::Graph g(StrCat(c.op, "_broadcast"));
  if (target.machine == nullptr) {
    // Single elements need no repetition.
    const Tiling none = {.split = k.dimensions.size()};
    Tensors t = Express(g, k, value, none);
    Schedule s(t.out);
    return OnProcessor(s, t, target);
  }
  RETURN_IF_ERROR(CheckInstructions(c, target, {StrCat(c.op, ".", ir::TypeName(c.dtype))}));
  const std::vector<Tiling> tilings = Tilings(k, c, *target.machine);
  if (tilings.empty()) {
    return InvalidInput("operator ", c.op, ": no schedule that fits has ", ChoiceText(c.schedule),
                        " (there are split, tile)");
  }
  const Tiling& tiling = tilings[0];
  Tensors t = Express(g, k, value, tiling);
  Schedule s(t.out);
  return OnCard(s, t, k, tiling, *target.machine);
}

bool IsBroadcast(const OperatorCase& c) { return !c.operands.empty() && c.operands[0] != c.shape; }

}  // namespace

Operator WithBroadcasting(Operator row, BinaryOp op, Value value) {
  const Operator plain = row;
  row.optional_shapes = {"B, if other than A's: repeated as numpy does"};
  row.check = [](const OperatorCase& c) {
    if (!IsBroadcast(c) || ResultShape(c.shape, c.operands[0])) return absl::OkStatus();
    return WrongCase(c, "expected shapes that agree from the last dimension on, or are 1 there");
  };
  row.tensors = [plain](const OperatorCase& c) {
    std::vector<TensorSpec> specs = plain.tensors(c);
    if (!IsBroadcast(c)) return specs;
    specs[1].shape = c.operands[0];
    specs[2].shape = *ResultShape(c.shape, c.operands[0]);
    return specs;
  };
  row.work = [plain](const OperatorCase& c) {
    if (!IsBroadcast(c)) return plain.work(c);
    const int64_t n = te::ElementCount(*ResultShape(c.shape, c.operands[0]));
    isa::Work work;
    work.gmem_bytes =
        (te::ElementCount(c.shape) + te::ElementCount(c.operands[0]) + n) * ir::ByteSize(c.dtype);
    work.vector_elements = n;
    work.vector_type = c.dtype;
    return work;
  };
  row.reference = [op](const OperatorCase&, absl::Span<const ir::Tensor> in,
                       absl::Span<ir::Tensor> out) {
    ReferenceBinary(op, ReferenceBroadcast(in[0], out[0].shape),
                    ReferenceBroadcast(in[1], out[0].shape), out[0]);
  };
  row.build = [plain, value](const OperatorCase& c, const Target& target) {
    return IsBroadcast(c) ? Build(c, value, target) : plain.build(c, target);
  };
  row.schedules = [plain](const OperatorCase& c,
                          const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    if (!IsBroadcast(c)) return plain.schedules(c, target);
    return Ranked(Tilings(Case(c), c, *target.machine));
  };
  return row;
}

}  // namespace polynao::kernels
