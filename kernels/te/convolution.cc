#include "kernels/te/convolution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/numbers.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/pragmas.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/channel_map.h"
#include "isa/granularity.h"
#include "isa/levels.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/grouped_convolution.h"
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

// A case of conv2d, its attributes read.
struct Conv : ConvLayer {
  Epilogue end;

  Conv(const Operator& op, const OperatorCase& c) {
    h = c.shape[0], w = c.shape[1], ci = c.shape[2];
    co = c.operands[0][0], kh = c.operands[0][1], kw = c.operands[0][2];
    stride = *AttributeInt(op, c, "stride");
    dilation = *AttributeInt(op, c, "dilation");
    groups = *AttributeInt(op, c, "groups");
    const std::optional<int64_t> pad = AttributeInt(op, c, "pad");
    pad_h = pad.value_or(dilation * (kh - 1) / 2);
    pad_w = pad.value_or(dilation * (kw - 1) / 2);
    end = ReadEpilogue(op, c);
    bias = end.bias, relu = end.relu, scale = end.scale;  // for the reference
  }

  int64_t filter_elements() const { return kh * kw * group_ci(); }  // of one output channel
  // Rows of the image that `rows` rows of the output read; columns likewise.
  int64_t InputRows(int64_t rows) const { return (rows - 1) * stride + (kh - 1) * dilation + 1; }
  int64_t InputColumns(int64_t n) const { return (n - 1) * stride + (kw - 1) * dilation + 1; }
};

Expr Within(Expr v, int64_t begin, int64_t count) { return ir::And(begin <= v, v < begin + count); }

// [tensor-program conv begin]
// The tensors of a convolution, in the order of their computation.
struct Tensors {
  Tensor x, f, b;          // inputs
  Tensor padded;           // x with zeros around it
  Tensor packed, blocked;  // on processors: filters and sums in blocks of output channels
  Tensor sums;             // the convolution
  EpilogueSteps steps;     // from the sums to the output, elementwise
  Tensor& output() { return steps.tensors.empty() ? sums : steps.tensors.back(); }
};

// The inputs and the padded image.
Tensors ExpressInputs(te::Graph& g, const Conv& k) {
  Tensors t;
  t.x = g.Placeholder("X", {k.h, k.w, k.ci}, k.end.in);
  t.f = g.Placeholder("F", {k.co, k.kh, k.kw, k.group_ci()}, k.end.in);
  if (k.bias) t.b = g.Placeholder("B", {k.co}, k.end.sum);
  t.padded = g.Compute("P", {k.h + 2 * k.pad_h, k.w + 2 * k.pad_w, k.ci},
                       [&](Expr y, Expr x, Expr c) {
                         if (k.pad_h == 0 && k.pad_w == 0) return t.x(y, x, c);
                         const Expr value = t.x(y - k.pad_h, x - k.pad_w, c);
                         return te::Select(
                             ir::And(Within(y, k.pad_h, k.h), Within(x, k.pad_w, k.w)), value, 0.0);
                       },
                       {"y", "x", "c"});
  return t;
}

Tensors Express(te::Graph& g, const Conv& k) {
  Tensors t = ExpressInputs(g, k);
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s = g.ReduceAxisOf("s", k.kw);
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.group_ci());
  const int64_t group_co = k.co / k.groups;
  t.sums = g.Compute(
      "S", {k.ho(), k.wo(), k.co},
      [&](Expr y, Expr x, Expr c) {
        const Expr from = k.groups == 1 ? Expr(i) : c / group_co * k.group_ci() + i;
        const Expr value =
            t.padded(y * k.stride + r * k.dilation, x * k.stride + s * k.dilation, from);
        return te::ReduceSum(To(k.end.sum, value) * To(k.end.sum, t.f(c, r, s, i)), r, s, i);
      },
      {"y", "x", "c"});
  t.steps = Append(g, k.end, t.sums, t.b);
  return t;
}
// [tensor-program conv end]

// How the card's cores share a convolution. A cluster takes a run of `cluster_rows` rows of the output. A core takes
// a block of `core_rows` rows and `core_columns` columns of them, tile by tile, for `block` output channels at a
// time; the filters of these channels stay in WMEM.
struct Tiling {
  int64_t cluster_rows = 0, core_rows = 0, core_columns = 0;
  int64_t rows = 0, columns = 0;  // of a tile
  int64_t block = 0;
  int64_t cores = 0;     // of a cluster
  int64_t rotation = 0;  // of the order of tiles, from cluster to cluster
  // Tiles whose image comes before it is needed; then a core's image stays in NMEM, and rows that tiles
  // share come once. 0: each tile's image comes by itself, while the tile before is computed.
  int64_t ahead = 0;
  // Of a tile's result. With three of them the next image is loaded before the last result is stored.
  int64_t copies = 2;
  bool shared = false;   // filters go by way of SMEM
  int64_t across = 0;    // blocks of columns
  double cycles = 0;     // by the cost model
  int64_t crowding = 0;  // among those of equal cycles

  // What a schedule may choose, and the values here: in the order of the names, so that keys are ordered as choices
  // are.
  static constexpr int kChoices = 8;
  static constexpr std::array<const char*, kChoices> kNames = {
      "across", "ahead", "block", "columns", "copies", "rotate", "rows", "shared"};
  std::array<int64_t, kChoices> key() const {
    return {across, ahead, block, columns, copies, rotation, rows, shared};
  }
  ScheduleChoice choice() const {
    ScheduleChoice choice;
    for (int i = 0; i < kChoices; ++i) choice[kNames[i]] = key()[i];
    return choice;
  }
};

// The values that a case asks for.
class WantedTiling {
 public:
  explicit WantedTiling(const ScheduleChoice& wanted) {
    for (const auto& [name, value] : wanted) {
      const auto found = std::find(Tiling::kNames.begin(), Tiling::kNames.end(), name);
      is_known_ = is_known_ && found != Tiling::kNames.end();
      if (is_known_) values_[static_cast<size_t>(found - Tiling::kNames.begin())] = value;
    }
  }
  bool Agrees(const Tiling& t) const {
    for (int i = 0; i < Tiling::kChoices; ++i) {
      if (values_[i] && *values_[i] != t.key()[i]) return false;
    }
    return is_known_;
  }

 private:
  std::array<std::optional<int64_t>, Tiling::kChoices> values_;
  bool is_known_ = true;
};

// How many cores start their copies at the same time. Chosen on 40 convolutions on 16 and 32 cores.
constexpr double kCoresInStep = 4;

// What a tiling costs: a simple model that ranks tilings and predicts no cycles. A step of the pipeline takes as
// long as the slowest of the tensor unit, the vector unit, the core's IO-DMA and the core's share of GMEM. Filters
// and one tile are loaded before the first step; one tile is stored after the last.
class CostModel {
 public:
  CostModel(const Conv& k, const isa::Machine& m)
      : k_(k),
        m_(m),
        bytes_(ir::ByteSize(k.end.in)),
        gmem_(std::min(m.gmem_bytes_per_cycle(),
                       Get("cluster.link_bytes") * static_cast<double>(m.clusters()))),
        latency_(Get("gmem.latency") + Get("io_dma.burst") / Get("io_dma.port_bytes")),
        io_start_(Get("io_dma.start")),
        io_port_(Get("io_dma.port_bytes")),
        strided_reads_(Get("io_dma.strided_reads")),
        store_segments_(m.store_segments_per_core()),
        filters_port_(Get("io_dma.memory_core_port_bytes")),
        to_core_(std::max(1 / Get("move_dma.port_bytes"),
                          static_cast<double>(m.cores_per_cluster()) / Get("smem.bytes"))),
        tensor_start_(Get("tensor.start")),
        macs_(Get(StrCat("tensor.macs_", ir::TypeName(k.end.in)))),
        vector_bytes_(Get("vector.bytes")),
        sync_(Get("sync.drain") + Get("io_dma.start")),
        cores_(static_cast<double>(m.cores())),
        clusters_(static_cast<double>(m.clusters())),
        has_cache_(m.caches_reads()) {}

  // Bytes of one core's NMEM: the core's image, or images of tiles twice (one is computed while the
  // next one comes), sums, each step's type once, the output twice.
  int64_t NmemBytes(const Tiling& t) const {
    const int64_t results = t.rows * t.columns * Lanes(t);
    const int64_t rows = t.ahead == 0 ? 2 * ImageRows(t) : WindowRows(t);
    return OnChipBytes(rows * ImageColumns(t) * k_.ci, k_.end.in) +
           k_.end.NmemBytes(results, RoundUp(k_.co, isa::kTensorLanes)) +
           (t.copies - 2) * OnChipBytes(results, k_.end.out);
  }
  // Whether tiles follow one another along the rows, and the tensor unit can read each of them in
  // the core's image: at a multiple of its alignment.
  bool CanStay(const Tiling& t) const {
    const int64_t row_bytes = ImageColumns(t) * k_.ci * bytes_;
    return t.columns == t.core_columns && t.rows < t.core_rows &&
           ImageRows(t) < k_.h + 2 * k_.pad_h && t.rows * k_.stride <= ImageRows(t) &&
           t.rows * k_.stride * row_bytes % isa::kTensorUnitAlignment == 0 &&
           ImageRows(t) * row_bytes % isa::kTensorUnitAlignment == 0;
  }
  int64_t WmemBytes(const Tiling& t) const { return Lanes(t) * FilterPitch(); }
  int64_t SmemBytes(const Tiling& t) const { return t.block * k_.filter_elements() * bytes_; }

  double Cycles(const Tiling& t) const {
    const double tiles = CeilDiv(t.core_rows, t.rows) * CeilDiv(t.core_columns, t.columns);
    const double blocks = CeilDiv(k_.co, t.block);
    const double gmem_share = gmem_ / cores_;
    // Compute queue.
    const double pixels = static_cast<double>(t.rows * t.columns * Lanes(t));
    const double compute = tensor_start_ + pixels * FilterPitch() / bytes_ / macs_ +
                           k_.end.Cycles(m_, t.rows * t.columns * Lanes(t)) +
                           (t.ahead > 0 ? 0 : ImageBytes(t) / vector_bytes_);
    // IO queue: rows of an image, rows of the output.
    const double out_row = static_cast<double>(t.columns * t.block * ir::ByteSize(k_.end.out));
    // A few segments are in flight at a time, and each takes GMEM's latency; whole rows are one segment.
    const auto rounds = [](bool whole, int64_t segments, double at_once) {
      return whole ? 1.0 : std::ceil(static_cast<double>(segments) / at_once);
    };
    const bool whole_rows = t.columns >= k_.wo() && t.block >= k_.co;
    const double loads = rounds(t.columns >= k_.wo(), ImageRows(t), strided_reads_);
    const double stores = rounds(whole_rows, t.rows, store_segments_);
    const int64_t load_rows = t.ahead > 0 ? t.rows * k_.stride : ImageRows(t);
    const double load =
        io_start_ + loads * latency_ +
        static_cast<double>(load_rows * ImageColumns(t) * k_.ci * bytes_) / io_port_;
    const double store = io_start_ + stores * latency_ + t.rows * out_row / io_port_;
    // GMEM: the bytes that all cores move in a step. Rows that tiles share come from the cache, if there is one; the
    // first tile of each core shares none of its rows.
    const double columns = has_cache_ ? std::min(t.columns * k_.stride, ImageColumns(t))
                                      : static_cast<double>(ImageColumns(t));
    const double first_rows =
        static_cast<double>(ImageRows(t) + std::max<int64_t>(0, t.ahead - 1) * t.rows * k_.stride);
    const double first_image = first_rows * columns * k_.ci * bytes_ / gmem_share;
    const double rows = has_cache_ || t.ahead > 0 ? std::min(t.rows * k_.stride, ImageRows(t))
                                                  : static_cast<double>(ImageRows(t));
    const double image = rows * columns * k_.ci * bytes_ / gmem_share;
    const double result = t.rows * out_row / gmem_share;
    // Filters: from GMEM to SMEM (or to each core by itself), then to WMEM, while the first images are loaded.
    const double filters = static_cast<double>(SmemBytes(t));
    const double sharing = has_cache_ ? cores_ : cores_ / clusters_;
    const double from = std::max(cores_ / (t.shared ? sharing : 1) * filters / gmem_,
                                 filters / (t.shared ? filters_port_ : io_port_)) +
                        latency_;
    const double to = t.shared ? filters * to_core_ : 0;
    // Cores that start their copies at the same time leave GMEM to wait out the latencies. The more cores there are,
    // the more they drift apart.
    const double waits =
        std::min(1.0, kCoresInStep / cores_) * (2 * io_start_ + (loads + stores) * latency_);
    const double busy = image + result + waits;
    // In a core's last tile, rows beyond the end of the output cost nothing; columns beyond the end are computed but
    // not copied.
    const double rows_in_tiles = static_cast<double>(t.core_rows) / static_cast<double>(t.rows);
    const double computed = rows_in_tiles * CeilDiv(t.core_columns, t.columns);
    const double full =
        rows_in_tiles * static_cast<double>(t.core_columns) / static_cast<double>(t.columns);
    const double steps_time = std::max(
        {computed * compute, tiles * (load + store), full * busy + (tiles - full) * waits});
    return blocks * (from + std::max({to, load, first_image + latency_}) + tiles * sync_ +
                     steps_time + std::max(store, result + latency_));
  }

  int64_t ImageRows(const Tiling& t) const { return k_.InputRows(t.rows); }
  // Rows of a core's image, including rows that are loaded again where the order of tiles starts over.
  int64_t WindowRows(const Tiling& t) const {
    return k_.InputRows(RoundUp(t.core_rows, t.rows)) +
           (t.rotation > 0 ? std::max<int64_t>(0, ImageRows(t) - t.rows * k_.stride) : 0);
  }
  int64_t ImageColumns(const Tiling& t) const { return k_.InputColumns(t.columns); }
  int64_t ImageBytes(const Tiling& t) const {
    return ImageRows(t) * ImageColumns(t) * k_.ci * bytes_;
  }
  // Bytes from one filter to the next in a bank.
  int64_t FilterPitch() const { return RoundUp(k_.filter_elements() * bytes_, 64); }
  static int64_t Lanes(const Tiling& t) { return RoundUp(t.block, isa::kTensorLanes); }

 private:
  double Get(std::string_view name) const { return static_cast<double>(m_.Get(name)); }

  const Conv& k_;
  const isa::Machine& m_;
  const int64_t bytes_;
  // The machine's parameters: to find them by name would take longer than to compute with them.
  const double gmem_, latency_, io_start_, io_port_, strided_reads_, store_segments_;
  const double filters_port_, to_core_;  // the latter in cycles for a byte
  const double tensor_start_, macs_, vector_bytes_, sync_, cores_, clusters_;
  const bool has_cache_;
};

// How unevenly GMEM's channels are loaded if each cluster starts `t.rotation` tiles further on than the previous
// cluster: in one step, several tiles may load from the same channel. The result is the sum over all steps of the
// busiest channel's rows.
int64_t Crowding(const Conv& k, const Tiling& t, const isa::ChannelMap& map, int64_t clusters) {
  const int64_t row_bytes = k.w * k.ci * ir::ByteSize(k.end.in);
  const int64_t tiles_across = CeilDiv(t.core_columns, t.columns);
  const int64_t tiles = CeilDiv(t.core_rows, t.rows) * tiles_across;
  std::vector<int64_t> rows(static_cast<size_t>(map.channels()));
  int64_t crowding = 0;
  for (int64_t step = 0; step < tiles; ++step) {
    std::fill(rows.begin(), rows.end(), 0);
    for (int64_t cluster = 0; cluster < clusters; ++cluster) {
      for (int64_t y = 0; y < t.cluster_rows; y += t.core_rows) {
        const int64_t tile = (step + cluster * t.rotation) % tiles / tiles_across;
        const int64_t first = cluster * t.cluster_rows + y + tile * t.rows;
        for (int64_t r = 0; r < t.rows; ++r) {
          ++rows[static_cast<size_t>(map.ChannelOf((first + r) * k.stride * row_bytes))];
        }
      }
    }
    crowding += *std::max_element(rows.begin(), rows.end());
  }
  return crowding;
}

// The tiling with every allowed combination of tiles ahead, copies and rotation.
std::vector<Tiling> Orders(const CostModel& cost, const Tiling& tiling) {
  std::vector<Tiling> orders;
  const int64_t tiles = CeilDiv(tiling.core_rows, tiling.rows);
  // Rotating rows and columns of tiles together gives bounds that the compiler cannot simplify.
  const int64_t most = tiling.columns < tiling.core_columns ? 0 : std::min<int64_t>(tiles - 1, 3);
  for (int64_t ahead = 0; ahead <= (cost.CanStay(tiling) ? 2 : 0); ++ahead) {
    for (int64_t rotation = 0; rotation <= most; ++rotation) {
      for (int64_t copies = 2; copies <= (ahead > 0 ? 3 : 2); ++copies) {
        Tiling t = tiling;
        t.ahead = ahead;
        t.copies = copies;
        t.rotation = rotation;
        orders.push_back(t);
      }
    }
  }
  return orders;
}

// Sorts tilings, the cheapest first, of equal ones the least crowded.
void Rank(const Conv& k, const isa::Machine& m, std::vector<Tiling>& tilings) {
  std::sort(tilings.begin(), tilings.end(),
            [](const Tiling& a, const Tiling& b) { return a.cycles < b.cycles; });
  const isa::ChannelMap map(m);
  const int64_t clusters = m.clusters();
  for (auto first = tilings.begin(); first != tilings.end();) {
    const auto last = std::find_if(first, tilings.end(),
                                   [&](const Tiling& t) { return t.cycles != first->cycles; });
    if (last - first > 1) {
      for (auto t = first; t != last; ++t) t->crowding = Crowding(k, *t, map, clusters);
      std::sort(first, last, [](const Tiling& a, const Tiling& b) {
        return std::pair(a.crowding, a.key()) < std::pair(b.crowding, b.key());
      });
    }
    first = last;
  }
}

// All tilings that fit and agree with `wanted`, or only the cheapest ones, in the order of Rank.
absl::StatusOr<std::vector<Tiling>> Tilings(const Conv& k, const isa::Machine& m,
                                            const ScheduleChoice& wanted, bool only_cheapest) {
  const CostModel cost(k, m);
  std::vector<Tiling> tilings;
  const WantedTiling wanted_tiling(wanted);
  int64_t least_nmem = INT64_MAX, least_wmem = INT64_MAX;
  const int64_t cluster_rows = CeilDiv(k.ho(), m.clusters());
  const int64_t cores = m.cores_per_cluster();
  const int64_t nmem_bytes = m.nmem_bytes(), wmem_bytes = m.wmem_bytes();
  const int64_t smem_bytes = m.smem_bytes();
  for (int64_t across = 1; across <= cores; ++across) {
    if (cores % across != 0) continue;
    Tiling t = {.cluster_rows = cluster_rows, .cores = cores, .across = across};
    t.core_columns = CeilDiv(k.wo(), across);
    t.core_rows = CeilDiv(cluster_rows, cores / across);
    for (int64_t block = RoundUp(k.co, isa::kTensorLanes); block > 0; block -= isa::kTensorLanes) {
      t.block = std::min(block, k.co);
      for (const bool shared : {true, false}) {
        t.shared = shared;
        if (shared && cost.SmemBytes(t) > smem_bytes) continue;
        for (t.rows = 1; t.rows <= t.core_rows; ++t.rows) {
          for (int64_t parts = 1; parts <= t.core_columns; parts *= 2) {
            t.columns = CeilDiv(t.core_columns, parts);
            for (Tiling& order : Orders(cost, t)) {
              const int64_t nmem = cost.NmemBytes(order);
              const int64_t wmem = cost.WmemBytes(order);
              least_nmem = std::min(least_nmem, nmem);
              least_wmem = std::min(least_wmem, wmem);
              if (nmem > nmem_bytes || wmem > wmem_bytes) continue;
              if (!wanted_tiling.Agrees(order)) continue;
              order.cycles = cost.Cycles(order);
              tilings.push_back(order);
            }
          }
        }
      }
    }
  }
  if (least_nmem > nmem_bytes || least_wmem > wmem_bytes) {
    return absl::ResourceExhaustedError(StrCat(
        "operator conv2d: its smallest tile needs ", least_nmem, " bytes of nmem, which has ",
        nmem_bytes, ", and ", least_wmem, " bytes of wmem, which has ", wmem_bytes));
  }
  if (tilings.empty()) {
    return InvalidInput("operator conv2d: no schedule that fits has ", ChoiceText(wanted),
                        " (there are across, ahead, block, columns, copies, rotate, rows, shared)");
  }
  if (only_cheapest) {
    double least = tilings[0].cycles;
    for (const Tiling& t : tilings) least = std::min(least, t.cycles);
    std::erase_if(tilings, [&](const Tiling& t) { return t.cycles > least; });
  }
  Rank(k, m, tilings);
  return tilings;
}

// [tensor-program conv begin]
// Clusters share rows, cores share rows and columns. The memory core loads the filters to SMEM, each core copies
// them to WMEM. Then tile by tile: load the image, pad it with zeros, convolve, apply the epilogue, store.
absl::StatusOr<ir::Function> OnCard(Schedule& s, Tensors& t, const Tiling& tiling) {
  const Tensor y = t.output();
  const Tensor shared = tiling.shared ? s.CacheRead(t.f, isa::kSmem) : t.f;
  const Tensor filters = s.CacheRead(shared, isa::kWmem);
  const Tensor bias = t.b ? s.CacheRead(t.b, isa::kNmem) : t.b;
  const Tensor result = s.CacheWrite(y, isa::kNmem);
  t.output() = result;
  auto [cid, row] = s[y].Split(s[y].axis(0), tiling.cluster_rows);
  auto [core_row, core_y] = s[y].Split(row, tiling.core_rows);
  auto [tile_row, yy] = s[y].Split(core_y, tiling.rows);
  auto [core_column, core_x] = s[y].Split(s[y].axis(1), tiling.core_columns);
  auto [tile_column, xx] = s[y].Split(core_x, tiling.columns);
  auto [block, c] = s[y].Split(s[y].axis(2), tiling.block);
  s[y].Reorder({cid, block, core_row, core_column, tile_row, tile_column, yy, xx, c});
  const Axis tid = s[y].Fuse(core_row, core_column);
  Axis tile = s[y].Fuse(tile_row, tile_column);
  if (tiling.rotation > 0) tile = s[y].Rotate(tile, cid, tiling.rotation);
  s[y].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(yy, "memcpy");
  if (tiling.shared) {
    auto [loader, filter] = s[shared].SplitParts(s[shared].axis(0), tiling.cores);
    s[shared]
        .ComputeAt(s[y], block)
        .SetScope(isa::kSmem)
        .Bind(loader, isa::kCoreAxis)
        .Pragma(filter, "memcpy");
  }
  s[filters].ComputeAt(s[y], tid).SetScope(isa::kWmem).Pragma(s[filters].axis(0), "memcpy");
  if (t.b) s[bias].ComputeAt(s[y], tid).SetScope(isa::kNmem).Pragma(s[bias].axis(0), "memcpy");
  const auto at_tile = [&](const Tensor& tensor, std::string_view instruction) {
    s[tensor].ComputeAt(s[y], tile).SetScope(isa::kNmem).Pragma(s[tensor].axis(0), instruction);
  };
  at_tile(t.padded, pragma::kPad);
  if (tiling.ahead > 0) s[t.padded].StoreAt(tid, tiling.ahead);
  at_tile(t.sums, "conv");
  for (size_t j = 0; j < t.steps.tensors.size(); ++j) {
    at_tile(t.steps.tensors[j], t.steps.instructions[j]);
  }
  ReusePlaces(s, t.sums, t.steps);
  if (tiling.ahead == 0) s[t.padded].DoubleBuffer();
  s[result].DoubleBuffer(static_cast<int>(tiling.copies));
  return Lower(s);
}
// [tensor-program conv end]

// The same convolution, of one group, for a processor: filters packed in blocks of output channels, which are
// the lanes of its vectors, and sums in the same blocks.
Tensors ExpressBlocked(te::Graph& g, const Conv& k, int64_t block) {
  Tensors t = ExpressInputs(g, k);
  const int64_t blocks = CeilDiv(k.co, block);
  t.packed = g.Compute("F_packed", {blocks, k.kh, k.kw, k.ci, block},
                       [&](const te::Axes& at) -> Expr {
                         const Expr c = at[0] * block + at[4];
                         const Expr value = t.f(c, at[1], at[2], at[3]);
                         return k.co % block == 0 ? value : te::Select(c < k.co, value, 0);
                       },
                       {"b", "r", "s", "i", "lane"});
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s = g.ReduceAxisOf("s", k.kw);
  const te::ReduceAxis i = g.ReduceAxisOf("i", k.ci);
  t.blocked =
      g.Compute("S_blocked", {blocks, k.ho(), k.wo(), block},
                [&](Expr b, Expr y, Expr x, Expr lane) {
                  const Expr value =
                      t.padded(y * k.stride + r * k.dilation, x * k.stride + s * k.dilation, i);
                  return te::ReduceSum(
                      To(k.end.sum, value) * To(k.end.sum, t.packed(b, r, s, i, lane)), r, s, i);
                },
                {"b", "y", "x", "lane"});
  t.sums = g.Compute("S", {k.ho(), k.wo(), k.co},
                     [&](Expr y, Expr x, Expr c) { return t.blocked(c / block, y, x, c % block); },
                     {"y", "x", "c"});
  t.steps = Append(g, k.end, t.sums, t.b);
  return t;
}

// On a CPU: pads the image once, then computes register tiles of channels and columns. With few channels, with
// groups and on other targets: rows in parallel.
absl::StatusOr<ir::Function> OnProcessor(const Conv& k, const Target& target) {
  te::Graph g("conv2d");
  const int64_t block = IsProcessor(target.name) && k.groups == 1 ? ChannelBlock(k.co) : 0;
  Tensors t = block > 0 ? ExpressBlocked(g, k, block) : Express(g, k);
  const Tensor y = t.output();
  Schedule s(y);
  for (const Tensor& step : t.steps.tensors) {
    if (!(step == y)) s[step].ComputeInline();
  }
  if (block > 0) {
    if (k.pad_h == 0 && k.pad_w == 0) {
      s[t.padded].ComputeInline();
    } else {
      ParallelElementwise(s, t.padded, target);
    }
    ParallelElementwise(s, t.packed, target);
    TileReduction(s, t.blocked,
                  {.row_axis = 2, .rows = RegisterRows(k.wo(), block), .vector = block});
    if (!(y == t.sums)) s[t.sums].ComputeInline();
    ParallelElementwise(s, y, target);
    return Lower(s);
  }
  if (!(t.sums == y)) s[t.sums].ComputeAt(s[y], s[y].axis(1));
  if (!IsInterpreter(target.name)) s[y].Parallel(s[y].axis(0));
  return Lower(s);
}

absl::StatusOr<ir::Function> Build(const Conv& k, const OperatorCase& c, const Target& target) {
  if (target.machine == nullptr) return OnProcessor(k, target);
  te::Graph g("conv2d");
  Tensors t = Express(g, k);
  Schedule s(t.output());
  const std::string type(ir::TypeName(k.end.in));
  if (target.instructions->Find(StrCat("conv.", type)) == nullptr ||
      target.machine->Get(StrCat("tensor.macs_", type)) == 0) {
    return InvalidInput("operator conv2d of ", type, ": ", target.machine->name,
                        " has no convolution of that type (tensor.macs_", type, " = 0)");
  }
  if (c.schedule.contains("stream")) return te::BuildStream(t.output(), target, c.schedule);
  ASSIGN_OR_RETURN(const std::vector<Tiling> tilings,
                   Tilings(k, *target.machine, c.schedule, true));
  return OnCard(s, t, tilings[0]);
}

// By what CostModel's cycles are larger than those of the simulator.
constexpr double kModelPerCycle = 1;

absl::StatusOr<std::vector<RankedSchedule>> Schedules(const Conv& k, const OperatorCase& c,
                                                      const Target& target, bool only_first) {
  absl::StatusOr<std::vector<RankedSchedule>> ranked;
  const absl::StatusOr<std::vector<Tiling>> tilings =
      Tilings(k, *target.machine, c.schedule, only_first);
  if (tilings.ok()) {
    ranked = std::vector<RankedSchedule>();
    for (const Tiling& tiling : *tilings) {
      ranked->push_back({tiling.choice(), tiling.cycles});
      if (only_first) break;
    }
  } else {
    ranked = tilings.status();
  }
  te::Graph g("conv2d");
  Tensors t = Express(g, k);
  return WithStreams(std::move(ranked), c, t.output(), target, kModelPerCycle, only_first);
}

// How many of `extent` rows (or columns) of the image are read by at least one window.
int64_t ReadPlaces(int64_t extent, int64_t outputs, int64_t window, int64_t pad, const Conv& k) {
  std::vector<bool> read(extent);
  for (int64_t y = 0; y < outputs; ++y) {
    for (int64_t r = 0; r < window; ++r) {
      const int64_t at = y * k.stride + r * k.dilation - pad;
      if (at >= 0 && at < extent) read[at] = true;
    }
  }
  return std::count(read.begin(), read.end(), true);
}

absl::Status Check(const Operator& op, const OperatorCase& c) {
  RETURN_IF_ERROR(CheckEpilogue(op, c));
  RETURN_IF_ERROR(CheckShapes(c, {3, 4}));
  for (const char* name : {"stride", "dilation", "groups"}) {
    RETURN_IF_ERROR(CheckNumber(op, c, name, 1));
  }
  const std::optional<int64_t> pad = AttributeInt(op, c, "pad");
  if (AttributeWord(op, c, "pad") != "same" && (!pad || *pad < 0 || *pad > 1 << 20)) {
    return WrongCase(c, "attribute pad: expected 'same' or 0 and more, found '",
                     AttributeWord(op, c, "pad"), "'");
  }
  const Conv k(op, c);
  if (k.ci % k.groups != 0 || k.co % k.groups != 0 || c.operands[0][3] != k.group_ci()) {
    return WrongCase(c, "with ", k.groups,
                     " groups, expected filters of as many input channels as a group "
                     "of the image's ",
                     k.ci, " has, found ", c.operands[0][3]);
  }
  if (k.h + 2 * k.pad_h < k.dilation * (k.kh - 1) + 1 ||
      k.w + 2 * k.pad_w < k.dilation * (k.kw - 1) + 1) {
    return WrongCase(c, "the filter is larger than the padded image");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Operator> ConvolutionOperators() {
  Operator row;
  row.name = "conv2d";
  row.doc = "Y (HO, WO, CO) = scale * (X (H, W, CI) convolved with F (CO, KH, KW, CI) + B)";
  row.shapes = {"image (H, W, CI)", "filters (CO, KH, KW, CI)"};
  row.attributes = {
      {"stride", "1", "distance between windows"},
      {"pad", "same", "zeros on each side; same: as many as half a window"},
      {"dilation", "1", "distance between a window's elements"},
      {"groups", "1", "of channels that are convolved by themselves"},
  };
  for (OperatorAttribute& attribute : EpilogueAttributes()) row.attributes.push_back(attribute);
  const auto shared = std::make_shared<Operator>(row);
  const auto conv = [shared](const OperatorCase& c) { return Conv(*shared, c); };
  row.check = [shared](const OperatorCase& c) { return Check(*shared, c); };
  row.tensors = [conv](const OperatorCase& c) {
    const Conv k = conv(c);
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape}, {"F", c.dtype, c.operands[0]}};
    if (k.bias) specs.push_back({"B", k.end.sum, {k.co}});
    specs.push_back({"Y", k.end.out, {k.ho(), k.wo(), k.co}});
    return specs;
  };
  row.work = [conv](const OperatorCase& c) {
    const Conv k = conv(c);
    const int64_t outputs = k.ho() * k.wo() * k.co;
    isa::Work work;
    const int64_t pixels =
        ReadPlaces(k.h, k.ho(), k.kh, k.pad_h, k) * ReadPlaces(k.w, k.wo(), k.kw, k.pad_w, k);
    work.gmem_bytes = (pixels * k.ci + k.co * k.filter_elements()) * ir::ByteSize(k.end.in) +
                      outputs * ir::ByteSize(k.end.out) + (k.bias ? 4 * k.co : 0);
    // Depthwise channels are computed by the vector unit: products and sums.
    const bool is_depthwise = k.groups > 1 && k.group_ci() == 1 && k.co == k.groups;
    work.macs = is_depthwise ? 0 : outputs * k.filter_elements();
    work.mac_type = k.end.in;
    work.vector_elements =
        outputs * (k.end.VectorOperations() + (is_depthwise ? 2 * k.filter_elements() - 1 : 0));
    work.vector_type = Type::kF32;
    return work;
  };
  row.reference = [conv](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                         absl::Span<ir::Tensor> out) {
    const Conv k = conv(c);
    ReferenceConv2d(k, in[0], in[1], k.bias ? &in[2] : nullptr, out[0]);
  };
  row.build = [conv](const OperatorCase& c, const Target& target) {
    const Conv k = conv(c);
    if (k.groups == 1 || target.machine == nullptr) return Build(k, c, target);
    return BuildGroupedConvolution(k, k.end, c, target);
  };
  row.schedules = [conv](const OperatorCase& c,
                         const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    if (conv(c).groups != 1) {
      return GroupedConvolutionSchedules(conv(c), conv(c).end, c, target);
    }
    return Schedules(conv(c), c, target, false);
  };
  row.first_schedules = [conv, all = row.schedules](
                            const OperatorCase& c,
                            const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    if (conv(c).groups != 1) return all(c, target);
    return Schedules(conv(c), c, target, true);
  };
  return {row};
}

}  // namespace polynao::kernels
