#include "kernels/te/matmul.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "base/math.h"
#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/processor_schedule.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axis;
using te::Schedule;
using te::Tensor;

struct Matmul : Epilogue {
  int64_t rows, k, co;

  Matmul(const Operator& op, const OperatorCase& c) : Epilogue(ReadEpilogue(op, c)) {
    rows = c.shape[0], k = c.shape[1], co = c.operands[0][0];
  }
};

// [tensor-program matmul begin]
struct Tensors {
  Tensor x, f, b;          // inputs
  Tensor packed, blocked;  // on processors: weights and product in blocks of channels
  Tensor sums;             // the product
  EpilogueSteps steps;
  Tensor& output() { return steps.tensors.empty() ? sums : steps.tensors.back(); }
};

Tensors Express(te::Graph& g, const Matmul& k) {
  Tensors t;
  t.x = g.Placeholder("X", {k.rows, k.k}, k.in);
  t.f = g.Placeholder("F", {k.co, k.k}, k.in);
  if (k.bias) t.b = g.Placeholder("B", {k.co}, k.sum);
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.k);
  t.sums = g.Compute(
      "S", {k.rows, k.co},
      [&](Expr y, Expr c) { return te::ReduceSum(To(k.sum, t.x(y, i)) * To(k.sum, t.f(c, i)), i); },
      {"y", "c"});
  t.steps = Append(g, k, t.sums, t.b);
  return t;
}
// [tensor-program matmul end]

// How the card's cores share a product. A cluster takes a run of `cluster` rows or output channels. Its cores take
// runs of `core_rows` rows; of `across * block` channels at a time, each core takes one block, whose weights stay in
// WMEM. A tile has `rows` rows.
struct Tiling {
  bool by_rows = true;
  int64_t cluster = 0, core_rows = 0, rows = 0;
  int64_t across = 1, block = 0;
  int64_t depth = 0;    // of the sums: so many products at a time
  bool shared = false;  // weights go by way of SMEM
  double cycles = 0;    // of a simple model of the pipeline
  ScheduleChoice choice = {};
};

// [tensor-program matmul begin]
// The memory core loads weights to SMEM, each core copies its block to WMEM. Then tile by tile: load rows, multiply,
// apply the epilogue, store rows. Sums too long for WMEM are computed part by part.
absl::StatusOr<ir::Function> OnCard(Schedule& s, Tensors& t, const Matmul& k,
                                    const Tiling& tiling) {
  const Tensor y = t.output();
  const Tensor shared = tiling.shared ? s.CacheRead(t.f, isa::kSmem) : t.f;
  const Tensor weights = s.CacheRead(shared, isa::kWmem);
  const Tensor x = s.CacheRead(t.x, isa::kNmem);
  const Tensor bias = t.b ? s.CacheRead(t.b, isa::kNmem) : t.b;
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  t.output() = result;
  auto [cid, rest] = s[y].Split(s[y].axis(tiling.by_rows ? 0 : 1), tiling.cluster);
  const Axis row = tiling.by_rows ? rest : s[y].axis(0);
  const Axis channel = tiling.by_rows ? s[y].axis(1) : rest;
  auto [core_row, core_y] = s[y].Split(row, tiling.core_rows);
  auto [tile, yy] = s[y].Split(core_y, tiling.rows);
  auto [blocks, inside] = s[y].Split(channel, tiling.across * tiling.block);
  auto [core_block, c] = s[y].Split(inside, tiling.block);
  s[y].Reorder({cid, blocks, core_row, core_block, tile, yy, c});
  const Axis tid = s[y].Fuse(core_row, core_block);
  s[y].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(yy, "memcpy");
  const auto at = [&](te::Stage& reader, const Axis& axis, const Tensor& tensor,
                      std::string_view scope, std::string_view instruction) {
    s[tensor].ComputeAt(reader, axis).SetScope(scope).Pragma(s[tensor].axis(0), instruction);
  };
  if (tiling.shared) at(s[y], blocks, shared, isa::kSmem, "memcpy");
  if (t.b) at(s[y], tid, bias, isa::kNmem, "memcpy");
  for (size_t j = 0; j < t.steps.tensors.size(); ++j) {
    at(s[y], tile, t.steps.tensors[j], isa::kNmem, t.steps.instructions[j]);
  }
  te::Stage& sums = s[t.sums];
  if (tiling.depth < k.k) {
    sums.ComputeAt(s[y], tile).SetScope(isa::kNmem);
    auto [part, i] = sums.Split(sums.reduce_axis(0), tiling.depth);
    sums.Reorder({part, sums.axis(0), sums.axis(1), i});
    sums.Pragma(sums.axis(0), "matmul_acc").PragmaInit(sums.axis(0), "fill");
    at(sums, part, weights, isa::kWmem, "memcpy");
    at(sums, part, x, isa::kNmem, "memcpy");
  } else {
    at(s[y], tile, t.sums, isa::kNmem, "matmul");
    at(s[y], tid, weights, isa::kWmem, "memcpy");
    at(s[y], tile, x, isa::kNmem, "memcpy");
  }
  ReusePlaces(s, t.sums, t.steps);
  s[x].DoubleBuffer();
  s[result].DoubleBuffer();
  return Lower(s);
}
// [tensor-program matmul end]

double Cycles(const Matmul& k, const Tiling& t, const isa::Machine& m) {
  const auto get = [&m](std::string_view name) { return static_cast<double>(m.Get(name)); };
  const int64_t bytes = ir::ByteSize(k.in);
  const int64_t channels = t.by_rows ? k.co : t.cluster;
  const int64_t blocks = CeilDiv(channels, t.across * t.block);
  const int64_t tiles = CeilDiv(t.core_rows, t.rows);
  const int64_t results = t.rows * RoundUp(t.block, isa::kTensorLanes);
  const double rate = get(StrCat("tensor.macs_", ir::TypeName(k.in)));
  TileNeeds needs;
  needs.moved_bytes = t.rows * (k.k * bytes + t.block * ir::ByteSize(k.out));
  if (t.block < k.co) needs.store_segments = t.rows;
  needs.compute_cycles =
      get("tensor.start") +
      static_cast<double>(results * RoundUp(k.k * bytes, isa::kTensorUnitAlignment) / bytes) /
          rate +
      k.Cycles(m, results);
  // The weights of all cores cross GMEM, once per cluster if its cores share them.
  const double weights = static_cast<double>(t.across * t.block * k.k * bytes);
  const double runs = t.shared ? 1 : static_cast<double>(m.cores_per_cluster() / t.across);
  const double load = get("io_dma.start") + get("gmem.latency") +
                      weights * runs * get("card.clusters") / m.gmem_bytes_per_cycle();
  const double to_core =
      t.shared ? weights / static_cast<double>(t.across) / get("move_dma.port_bytes") : 0;
  const double times = t.depth < k.k ? static_cast<double>(tiles) : 1;
  return static_cast<double>(blocks) *
         (times * (load + to_core) + PipelinedCycles(m, tiles, needs));
}

// All tilings that fit and agree with the case's schedule, the cheapest first.
absl::StatusOr<std::vector<Tiling>> Tilings(const Matmul& k, const OperatorCase& c,
                                            const isa::Machine& m) {
  std::vector<Tiling> tilings;
  const int64_t bytes = ir::ByteSize(k.in);
  int64_t least_nmem = INT64_MAX;
  // Weights of one channel for each lane; if these are too many, of as many products as fit.
  const int64_t deepest = m.wmem_bytes() / isa::kTensorLanes / isa::kTensorUnitAlignment *
                          isa::kTensorUnitAlignment / bytes;
  const int64_t depth = CeilDiv(k.k, CeilDiv(k.k, deepest));
  const int64_t pitch = RoundUp(depth * bytes, isa::kTensorUnitAlignment);
  const auto try_one = [&](Tiling t) {
    t.depth = depth;
    t.shared = t.across * t.block * k.k * bytes <= m.smem_bytes();
    const int64_t needed =
        2 * OnChipBytes(t.rows * depth, k.in) +
        k.NmemBytes(t.rows * RoundUp(t.block, isa::kTensorLanes), RoundUp(k.co, isa::kTensorLanes));
    least_nmem = std::min(least_nmem, needed);
    t.choice = {{"across", t.across}, {"block", t.block}, {"by_rows", t.by_rows}, {"rows", t.rows}};
    if (needed > m.nmem_bytes() || RoundUp(t.block, isa::kTensorLanes) * pitch > m.wmem_bytes() ||
        !Agrees(t.choice, c.schedule)) {
      return;
    }
    t.cycles = Cycles(k, t, m);
    tilings.push_back(t);
  };
  for (const bool by_rows : {true, false}) {
    Tiling t = {.by_rows = by_rows};
    t.cluster = by_rows ? CeilDiv(k.rows, m.clusters())
                        : std::min(k.co, RoundUp(CeilDiv(k.co, m.clusters()), isa::kTensorLanes));
    const int64_t cluster_rows = by_rows ? t.cluster : k.rows;
    const int64_t channels = by_rows ? k.co : t.cluster;
    for (t.across = 1; t.across <= m.cores_per_cluster(); ++t.across) {
      if (m.cores_per_cluster() % t.across != 0) continue;
      t.core_rows = CeilDiv(cluster_rows, m.cores_per_cluster() / t.across);
      const int64_t most = RoundUp(CeilDiv(channels, t.across), isa::kTensorLanes);
      for (int64_t block = most; block > 0; block -= isa::kTensorLanes) {
        t.block = std::min(block, channels);
        for (const int64_t rows : Fractions(t.core_rows)) {
          t.rows = rows;
          try_one(t);
        }
      }
    }
  }
  if (least_nmem > m.nmem_bytes() || deepest == 0) {
    return absl::ResourceExhaustedError(
        StrCat("operator ", c.op, " ", ShapesText(c), ": its smallest tile needs ", least_nmem,
               " bytes of nmem, which has ", m.nmem_bytes(), ", and ", isa::kTensorLanes * pitch,
               " bytes of wmem, which has ", m.wmem_bytes()));
  }
  if (tilings.empty()) {
    return InvalidInput("operator ", c.op, ": no schedule that fits has ", ChoiceText(c.schedule),
                        " (there are across, block, by_rows, rows)");
  }
  std::sort(tilings.begin(), tilings.end(), [](const Tiling& a, const Tiling& b) {
    return std::tie(a.cycles, a.choice) < std::tie(b.cycles, b.choice);
  });
  return tilings;
}

// The same product for a CPU: weights and sums are packed in blocks of output channels, one block to a vector.
Tensors ExpressBlocked(te::Graph& g, const Matmul& k, int64_t block) {
  Tensors t;
  t.x = g.Placeholder("X", {k.rows, k.k}, k.in);
  t.f = g.Placeholder("F", {k.co, k.k}, k.in);
  if (k.bias) t.b = g.Placeholder("B", {k.co}, k.sum);
  const int64_t blocks = CeilDiv(k.co, block);
  t.packed = g.Compute("F_packed", {blocks, k.k, block},
                       [&](Expr b, Expr i, Expr lane) -> Expr {
                         const Expr c = b * block + lane;
                         const Expr value = t.f(c, i);
                         return k.co % block == 0 ? value : te::Select(c < k.co, value, 0);
                       },
                       {"b", "i", "lane"});
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.k);
  t.blocked =
      g.Compute("S_blocked", {blocks, k.rows, block},
                [&](Expr b, Expr y, Expr lane) {
                  return te::ReduceSum(To(k.sum, t.x(y, i)) * To(k.sum, t.packed(b, i, lane)), i);
                },
                {"b", "y", "lane"});
  t.sums =
      g.Compute("S", {k.rows, k.co},
                [&](Expr y, Expr c) { return t.blocked(c / block, y, c % block); }, {"y", "c"});
  t.steps = Append(g, k, t.sums, t.b);
  return t;
}

absl::StatusOr<ir::Function> OnProcessor(const Matmul& k, const Target& target) {
  te::Graph g("matmul");
  const int64_t block = IsProcessor(target.name) ? ChannelBlock(k.co) : 0;
  Tensors t = block > 0 ? ExpressBlocked(g, k, block) : Express(g, k);
  const Tensor y = t.output();
  Schedule s(y);
  for (size_t j = 0; j + 1 < t.steps.tensors.size(); ++j) s[t.steps.tensors[j]].ComputeInline();
  if (block > 0) {
    ParallelElementwise(s, t.packed, target);
    TileReduction(s, t.blocked,
                  {.row_axis = 1, .rows = RegisterRows(k.rows, block), .vector = block});
    if (!(y == t.sums)) s[t.sums].ComputeInline();
    ParallelElementwise(s, y, target);
    return Lower(s);
  }
  if (!(y == t.sums)) s[t.sums].ComputeAt(s[y], s[y].axis(1));
  if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(y.shape()[0] > 1 ? 0 : 1));
  return Lower(s);
}

// By what Cycles are larger than those of the simulator.
constexpr double kModelPerCycle = 1;

absl::StatusOr<ir::Function> Build(const Matmul& k, const OperatorCase& c, const Target& target) {
  if (target.machine == nullptr) return OnProcessor(k, target);
  te::Graph g("matmul");
  Tensors t = Express(g, k);
  Schedule s(t.output());
  const std::string type(ir::TypeName(k.in));
  RETURN_IF_ERROR(CheckInstructions(c, target, {StrCat("matmul.", type)}));
  if (target.machine->Get(StrCat("tensor.macs_", type)) == 0) {
    return InvalidInput("operator matmul of ", type, ": ", target.machine->name,
                        " has no matrix product of that type (tensor.macs_", type, " = 0)");
  }
  if (c.schedule.contains("stream")) return te::BuildStream(t.output(), target, c.schedule);
  ASSIGN_OR_RETURN(const std::vector<Tiling> tilings, Tilings(k, c, *target.machine));
  return OnCard(s, t, k, tilings[0]);
}

}  // namespace

std::vector<Operator> MatmulOperators() {
  Operator row;
  row.name = "matmul";
  row.doc = "Y (N, CO) = scale * (X (N, K) times the transpose of F (CO, K), + B): a dense layer";
  row.shapes = {"rows (N, K)", "weights (CO, K)"};
  row.attributes = EpilogueAttributes();
  const auto shared = std::make_shared<Operator>(row);
  const auto matmul = [shared](const OperatorCase& c) { return Matmul(*shared, c); };
  row.check = [shared](const OperatorCase& c) {
    RETURN_IF_ERROR(CheckShapes(c, {2, 2}));
    RETURN_IF_ERROR(CheckEpilogue(*shared, c));
    if (c.shape[1] == c.operands[0][1]) return absl::OkStatus();
    return WrongCase(c, "expected weights of as many elements as a row has, ", c.shape[1],
                     ", found ", c.operands[0][1]);
  };
  row.tensors = [matmul](const OperatorCase& c) {
    const Matmul k = matmul(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}, {"F", c.dtype, c.operands[0]}};
    if (k.bias) specs.push_back({"B", k.sum, {k.co}});
    specs.push_back({"Y", k.out, {k.rows, k.co}});
    return specs;
  };
  row.work = [matmul](const OperatorCase& c) {
    const Matmul k = matmul(c);
    isa::Work work;
    work.gmem_bytes = (k.rows + k.co) * k.k * ir::ByteSize(k.in) +
                      k.rows * k.co * ir::ByteSize(k.out) + (k.bias ? 4 * k.co : 0);
    work.macs = k.rows * k.co * k.k;
    work.mac_type = k.in;
    work.vector_elements = k.rows * k.co * k.VectorOperations();
    work.vector_type = Type::kF32;
    return work;
  };
  row.reference = [matmul](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                           absl::Span<ir::Tensor> out) {
    const Matmul k = matmul(c);
    // A dense layer is a convolution of a row of pixels with filters of one.
    const ConvLayer layer = {.h = 1,
                             .w = k.rows,
                             .ci = k.k,
                             .co = k.co,
                             .kh = 1,
                             .kw = 1,
                             .bias = k.bias,
                             .relu = k.relu,
                             .scale = k.scale};
    ReferenceConv2d(layer, in[0], in[1], k.bias ? &in[2] : nullptr, out[0]);
  };
  row.build = [matmul](const OperatorCase& c, const Target& target) {
    return Build(matmul(c), c, target);
  };
  row.schedules = [matmul](const OperatorCase& c,
                           const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    absl::StatusOr<std::vector<RankedSchedule>> ranked;
    const absl::StatusOr<std::vector<Tiling>> tilings = Tilings(matmul(c), c, *target.machine);
    if (tilings.ok()) {
      ranked = Ranked(*tilings);
    } else {
      ranked = tilings.status();
    }
    te::Graph g("matmul");
    Tensors t = Express(g, matmul(c));
    return WithStreams(std::move(ranked), c, t.output(), target, kModelPerCycle, false);
  };
  return {row};
}

}  // namespace polynao::kernels
