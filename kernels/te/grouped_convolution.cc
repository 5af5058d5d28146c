#include "kernels/te/grouped_convolution.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/status.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_schedule.h"
#include "isa/granularity.h"
#include "kernels/te/depthwise.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/slice_program.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

// The ways to merge groups: until inputs or outputs of a slice are more than the tensor unit's lanes. Products with
// zeros change no sums of integers; of floats they do (0 times infinity), so that each group is a slice.
std::vector<Slices> SlicesOf(const GroupedConv& k, const isa::Machine& m) {
  std::vector<Slices> all;
  for (int64_t merged = 1; merged <= k.groups; ++merged) {
    if (k.groups % merged != 0 || (merged == 1 && k.is_depthwise())) continue;
    const Slices slices(k, merged, m);
    const bool fits = slices.in <= isa::kTensorLanes && slices.out <= isa::kTensorLanes;
    if (merged == 1 || (fits && ir::IsInt(k.in))) all.push_back(slices);
  }
  return all;
}

// Bytes of the filters of a slice, zeros included, as they come from NMEM.
int64_t FilterBytes(const GroupedConv& k, const Slices& t) {
  return t.out * k.kh * k.kw * t.in * ir::ByteSize(k.in);
}

// Cycles of the vector unit that make the filters of slices of merged groups: zeros, once for slices that come one
// after the other, then for each a run of inputs for each channel and place of the window, and the copy to WMEM.
double MakingCycles(const GroupedConv& k, const Slices& t, const isa::Machine& m, int64_t slices) {
  const int64_t bytes = ir::ByteSize(k.in), width = m.Get("vector.bytes");
  const int64_t window = k.kh * k.kw;
  return VectorCycles(m, FilterBytes(k, t)) +
         static_cast<double>(slices) *
             (VectorCycles(m, t.out * window * RoundUp(k.group_ci() * bytes, width)) +
              VectorCycles(m, t.out * RoundUp(window * t.in * bytes, width)));
}

// What a core needs for one slice of rows x columns of the output, and its cycles: of the tensor and vector unit, and
// of the copies of filters to WMEM. `gathers`: sums of all slices are put beside each other, without the lanes that
// are no channels, before anything else is done with them.
struct SliceNeeds {
  int64_t nmem_bytes = 0;
  double tensor = 0, vector = 0, move = 0;
};
SliceNeeds NeedsOf(const GroupedConv& k, const Sharing& plan, const Slices& t,
                   const isa::Machine& m, int64_t rows, int64_t columns) {
  const auto get = [&m](std::string_view name) { return static_cast<double>(m.Get(name)); };
  const bool gathers = plan.Gathers(k, t), ahead = plan.FiltersAhead(k, t, m);
  const int64_t in = k.InputRows(rows) * k.InputColumns(columns);
  const int64_t pixels = rows * columns;
  const int64_t lanes = RoundUp(t.out, isa::kTensorLanes);
  const int64_t bytes = ir::ByteSize(k.in), width = m.Get("vector.bytes");
  SliceNeeds needs;
  const bool is_part = plan.CoreSlices(t) > 1;
  needs.nmem_bytes =
      (is_part ? OnChipBytes(in * t.in, k.in) : 0) +
      (gathers ? OnChipBytes(pixels * lanes, k.sum) : k.NmemBytes(pixels * lanes, lanes));
  needs.tensor = static_cast<double>(t.parts(k)) *
                 (get("tensor.start") + static_cast<double>(pixels * t.WmemBytes(k) / bytes) /
                                            get(StrCat("tensor.macs_", ir::TypeName(k.in))));
  const auto copy = [&](int64_t count, int64_t segment) {
    return VectorCycles(m, count * RoundUp(segment, width));
  };
  if (is_part) needs.vector += copy(in, t.in * bytes);
  needs.vector += gathers ? copy(pixels, t.out * ir::ByteSize(k.sum))
                          : k.Cycles(m, pixels * lanes) + copy(pixels, t.out * ir::ByteSize(k.out));
  if (t.merged > 1) {
    needs.nmem_bytes += (ahead ? 1 : 2) * OnChipBytes(FilterBytes(k, t) / bytes, k.in) +
                        OnChipBytes(plan.CoreSlices(t) * t.out * k.kh * k.kw * k.group_ci(), k.in);
    if (!ahead) needs.vector += MakingCycles(k, t, m, 1);
  } else if (!ahead) {
    needs.move =
        get("move_dma.start") +
        get("smem.latency") * (1 + static_cast<double>(t.out) / get("move_dma.outstanding"));
  }
  return needs;
}

TileNeeds TileOfSlices(const GroupedConv& k, const Slices& t, const isa::Machine& m, int64_t rows,
                       int64_t columns) {
  const Sharing plan = {.kind = Sharing::Kind::kTiles, .merged = t.merged};
  const int64_t in = k.InputRows(rows) * k.InputColumns(columns) * k.ci;
  const int64_t out = rows * columns * k.co;
  TileNeeds needs;
  needs.nmem_bytes = 2 * OnChipBytes(in, k.in);
  needs.moved_bytes = in * ir::ByteSize(k.in) + out * ir::ByteSize(k.out);
  needs.load_segments = k.InputColumns(columns) < k.w + 2 * k.pad_w ? k.InputRows(rows) : 1;
  needs.store_segments = columns < k.wo() ? rows : 1;
  const SliceNeeds slice = NeedsOf(k, plan, t, m, rows, columns);
  needs.nmem_bytes += slice.nmem_bytes + 2 * OnChipBytes(rows * columns * k.co, k.out);
  // Only tiles are a pipeline; inside one, each step waits for the one before.
  const auto count = static_cast<double>(t.count);
  needs.tensor_cycles = count * slice.tensor;
  needs.copy_cycles = count * (slice.move + 2 * static_cast<double>(m.Get("sync.drain")));
  needs.compute_cycles = needs.tensor_cycles + count * slice.vector + needs.copy_cycles;
  return needs;
}

// Whether sums of each part of the filters begin where the tensor unit may read an image of these columns.
bool PartsBegin(const GroupedConv& k, const Slices& t, int64_t columns) {
  const int64_t pixel = t.in * ir::ByteSize(k.in);
  const auto begins = [](int64_t bytes) { return bytes % isa::kTensorUnitAlignment == 0; };
  return (t.part_rows == k.kh || begins(k.InputColumns(columns) * k.dilation * pixel)) &&
         (t.part_columns == k.kw || begins(k.dilation * pixel)) &&
         (t.part_channels == t.in || begins(t.part_channels * ir::ByteSize(k.in)));
}

constexpr char kMerged[] = "merged", kShared[] = "shared";

// Cores share the slices: `across` of them, the others rows of each of the `turns` in which a cluster takes its own.
// Nothing if these do not divide them, or if filters would have to come in each turn.
std::optional<Sharing> SharedSlices(const GroupedConv& k, const Slices& t, int64_t across,
                                    int64_t turns, const isa::Machine& m) {
  const int64_t cores = m.cores_per_cluster();
  if (cores % across != 0 || t.count % across != 0 || t.parts(k) > 1) return std::nullopt;
  Sharing plan = {
      .kind = Sharing::Kind::kShared, .merged = t.merged, .across = across, .turns = turns};
  GridTiling& tiling = plan.tiling;
  tiling.cluster_rows = CeilDiv(k.ho(), m.clusters());
  tiling.core_rows = CeilDiv(plan.turn_rows(), cores / across);
  // As many turns as have rows.
  if (CeilDiv(tiling.cluster_rows, plan.turn_rows()) != turns) return std::nullopt;
  if (turns > 1 && !plan.FiltersAhead(k, t, m)) return std::nullopt;
  plan.choice = {{"across", across}, {kMerged, t.merged}, {kShared, 1}, {"turns", turns}};
  return plan;
}

// The parts of the image and the results of a turn that go by way of SMEM, and of the image that a core copies.
struct SharedBytes {
  int64_t image = 0, results = 0, core_image = 0;

  SharedBytes(const GroupedConv& k, const Slices& t, const Sharing& plan) {
    const int64_t rows = plan.turn_rows(), bytes = ir::ByteSize(k.in);
    image = std::min(k.h, k.InputRows(rows)) * k.w * k.ci * bytes;
    results = rows * k.wo() * k.co * ir::ByteSize(k.out);
    core_image = k.InputRows(plan.tiling.core_rows) * k.InputColumns(k.wo()) * plan.OwnSlices(t) *
                 t.in * bytes;
  }
};

mapping::CostParts CostOfShared(const GroupedConv& k, const Sharing& plan, const isa::Machine& m) {
  const auto get = [&m](std::string_view name) { return static_cast<double>(m.Get(name)); };
  const Slices t(k, plan.merged, m);
  const SharedBytes bytes(k, t, plan);
  const GridTiling& tiling = plan.tiling;
  const int64_t cores = m.cores_per_cluster();
  const auto own = static_cast<double>(plan.OwnSlices(t));
  const bool gathers = plan.Gathers(k, t), ahead = plan.FiltersAhead(k, t, m);
  const SliceNeeds slice = NeedsOf(k, plan, t, m, tiling.core_rows, k.wo());
  const double gmem = m.gmem_bytes_per_cycle() / static_cast<double>(m.clusters());
  const double link = get("cluster.link_bytes");
  const double share = std::min(link, gmem);
  const double port = std::min(share, get("io_dma.memory_core_port_bytes"));
  const std::string_view share_is = gmem <= link ? mapping::kGmem : mapping::kLink;
  const std::string_view port_is = port < share ? mapping::kMemoryCore : share_is;
  const double trip = get("io_dma.start") + get("gmem.latency") + get("sync.drain");
  const double hop = get("move_dma.start") + get("smem.latency") + get("sync.cluster");
  const double image = static_cast<double>(bytes.image) / port;
  const double results = static_cast<double>(bytes.results) / share;
  const double filters =
      own * static_cast<double>(t.out * k.kh * k.kw * k.group_ci() * ir::ByteSize(k.in) * cores) /
      share;
  // A pixel is a segment where a core has a part of its channels. SMEM's port takes a cycle for each; all cores use it.
  const auto moved = [&](double bytes_of_core, int64_t segments) {
    return std::max({bytes_of_core / get("move_dma.port_bytes"),
                     bytes_of_core * static_cast<double>(cores) / get("smem.bytes"),
                     static_cast<double>(segments * cores)});
  };
  const int64_t pixels = tiling.core_rows * k.wo();
  const int64_t channels = t.out * (gathers ? plan.OwnSlices(t) : 1);
  const double from_core = moved(static_cast<double>(pixels * channels * ir::ByteSize(k.out)),
                                 channels < k.co ? pixels : 0);
  const double core_image = moved(static_cast<double>(bytes.core_image),
                                  plan.across > 1 ? k.InputRows(tiling.core_rows) * k.w : 0);
  const double elementwise = gathers ? k.Cycles(m, pixels * channels) : 0;
  mapping::CostParts cost;
  cost.Phase("first image and filters", 1), cost.Lane();
  cost.Add("filters", share_is, filters);
  cost.Add("image", port_is, image);
  cost.Add("segments", mapping::kWaits, trip);
  if (ahead && t.merged > 1) {
    // Beside the image: each core and the memory core have equal parts of GMEM's time.
    const double parts = static_cast<double>(cores + 1) / static_cast<double>(cores);
    cost.Lane(), cost.Add("filters", share_is, std::min(filters * parts, filters + image));
    cost.Add("filters made", mapping::kVectorUnit, MakingCycles(k, t, m, plan.OwnSlices(t)));
    cost.Add("segments", mapping::kWaits, trip);
  }
  if (plan.turns > 1) {
    // A turn comes, the one before is fetched by cores, the one before that is computed.
    cost.Phase("second image", 1);
    cost.Lane(), cost.Add("image", port_is, image), cost.Add("segments", mapping::kWaits, trip);
    cost.Lane(), cost.Add("image", mapping::kMoveDma, core_image);
    cost.Add("barriers", mapping::kWaits, hop);
    // The last turn may have fewer rows. Two have come before, and its results leave behind all.
    const auto n = static_cast<double>(plan.turns);
    const int64_t last = tiling.cluster_rows - (plan.turns - 1) * plan.turn_rows();
    const int64_t last_of_core = CeilDiv(last, cores / plan.across);
    const SliceNeeds of_last = NeedsOf(k, plan, t, m, last_of_core, k.wo());
    const auto mean = [&](double turn, double last_turn) {
      return ((n - 1) * turn + last_turn) / n;
    };
    const auto part = [](int64_t a, int64_t b) {
      return static_cast<double>(a) / static_cast<double>(b);
    };
    const double rows = mean(1, part(last_of_core, tiling.core_rows));
    const double images = n - 1 + part(k.InputRows(last), k.InputRows(plan.turn_rows()));
    cost.Phase("turns", n);
    cost.Lane(), cost.Add("sums", mapping::kTensorUnit, own * mean(slice.tensor, of_last.tensor));
    cost.Add("elementwise", mapping::kVectorUnit,
             own * mean(slice.vector, of_last.vector) + elementwise * rows);
    cost.Add("results", mapping::kMoveDma, (gathers ? 1 : own) * from_core * rows);
    cost.Add("queues and barriers", mapping::kWaits, own * get("sync.drain") + 2 * hop);
    // Clusters drift apart, so that GMEM does not wait for all of them.
    cost.Lane(), cost.Add("image", port_is, image * (images - 2) / n);
    cost.Add("results", share_is, results * (n - 1) / n);
    cost.Add("segments and barriers", mapping::kWaits, te::kPartInStep * trip + hop);
    cost.Lane(), cost.Add("image", mapping::kMoveDma, core_image * (images - 1) / n);
    cost.Add("results", mapping::kMoveDma, (gathers ? 1 : own) * from_core * rows);
    cost.Add("barriers", mapping::kWaits, 2 * hop);
    cost.Phase("last results", 1), cost.Lane();
    cost.Add("results", share_is, results * part(last, plan.turn_rows()));
    cost.Add("segments", mapping::kWaits, trip);
    return cost;
  }
  cost.Phase("image", 1), cost.Lane(), cost.Add("image", mapping::kMoveDma, core_image);
  cost.Add("barriers", mapping::kWaits, hop);
  cost.Phase("slices", own);
  cost.Lane(), cost.Add("sums", mapping::kTensorUnit, slice.tensor);
  cost.Add("elementwise", mapping::kVectorUnit, slice.vector);
  if (!gathers) cost.Add("results", mapping::kMoveDma, from_core);
  cost.Add("queues", mapping::kWaits, get("sync.drain"));
  cost.Lane(), cost.Add("filters", mapping::kMoveDma, slice.move);
  if (gathers) {
    cost.Phase("all slices", 1), cost.Lane();
    cost.Add("elementwise", mapping::kVectorUnit, elementwise);
    cost.Add("results", mapping::kMoveDma, from_core);
  }
  cost.Phase("results", 1), cost.Lane();
  cost.Add("results", port_is, results * share / port);
  cost.Add("segments and barriers", mapping::kWaits, trip + hop);
  return cost;
}

// Cycles before the first tile in which filters come: each core loads those that it merges, and makes all if they stay;
// others come by way of SMEM once.
void AddFilters(const GroupedConv& k, const Sharing& plan, const isa::Machine& m,
                mapping::CostParts& cost) {
  const auto cores = static_cast<double>(m.cores_per_cluster());
  const auto link = static_cast<double>(m.Get("cluster.link_bytes"));
  const double gmem = m.gmem_bytes_per_cycle() / static_cast<double>(m.clusters());
  const auto bytes = static_cast<double>(k.co * k.kh * k.kw * k.group_ci() * ir::ByteSize(k.in));
  // Parts come again for each tile.
  const Slices t(k, plan.merged, m);
  const bool is_cut = t.parts(k) > 1;
  cost.Phase("filters", is_cut ? static_cast<double>(plan.tiling.tiles) : 1), cost.Lane();
  cost.Add("filters", gmem <= link ? mapping::kGmem : mapping::kLink,
           bytes * (plan.merged > 1 ? cores : 1) / std::min(link, gmem));
  if (plan.merged > 1 && plan.FiltersAhead(k, t, m)) {
    cost.Add("filters made", mapping::kVectorUnit, MakingCycles(k, t, m, t.count));
  }
}

// Bytes of WMEM: all filters of a core, or those of one slice, twice where the next ones come meanwhile.
int64_t WmemNeeds(const GroupedConv& k, const Sharing& plan, const Slices& t,
                  const isa::Machine& m) {
  if (plan.FiltersAhead(k, t, m)) return plan.AllFilterBytes(k, t);
  const bool is_shared = plan.kind == Sharing::Kind::kShared;
  return (plan.merged > 1 || is_shared ? 2 : 1) * t.WmemBytes(k);
}

mapping::Estimate EstimateOf(const GroupedConv& k, const Sharing& plan, const isa::Machine& m) {
  const Slices t(k, plan.merged, m);
  if (plan.kind == Sharing::Kind::kShared) {
    const SharedBytes bytes(k, t, plan);
    const SliceNeeds slice = NeedsOf(k, plan, t, m, plan.tiling.core_rows, k.wo());
    const int64_t channels = plan.Gathers(k, t) ? plan.OwnSlices(t) * t.out : 0;
    const int64_t copies = plan.turns > 1 ? 2 : 1;
    return {.kind = "slices shared by cores",
            .cost = CostOfShared(k, plan, m),
            .needs = {.nmem = slice.nmem_bytes +
                              k.NmemBytes(plan.tiling.core_rows * k.wo() * channels, channels) +
                              copies * OnChipBytes(bytes.core_image / ir::ByteSize(k.in), k.in),
                      .wmem = WmemNeeds(k, plan, t, m),
                      .smem = copies * (RoundUp(bytes.image, kOnChipAlignment) +
                                        RoundUp(bytes.results, kOnChipAlignment))}};
  }
  mapping::Estimate estimate = {.kind = "slices of tiles", .cost = {}, .needs = {}};
  AddFilters(k, plan, m, estimate.cost);
  estimate.cost.Append(te::PipelinedParts(m, plan.tiling.tiles, plan.tiling.needs));
  estimate.needs.nmem = plan.tiling.needs.nmem_bytes;
  estimate.needs.wmem = WmemNeeds(k, plan, t, m);
  return estimate;
}

// "wmem: 70000 bytes of 65536", or "".
std::string WhyNot(const mapping::Needs& needs, const isa::Machine& m, const ScheduleChoice& c) {
  if (needs.nmem > m.nmem_bytes()) return te::DoesNotFit("nmem", needs.nmem, m.nmem_bytes(), c);
  if (needs.wmem > m.wmem_bytes()) return te::DoesNotFit("wmem", needs.wmem, m.wmem_bytes(), c);
  if (needs.smem > m.smem_bytes()) return te::DoesNotFit("smem", needs.smem, m.smem_bytes(), c);
  return "";
}

// All plans that agree with the case, the cheapest first, and the program of those by the vector unit.
struct Plans {
  std::vector<Sharing> list;
  std::optional<te::CardProgram> vector;

  // Of the first.
  absl::StatusOr<mapping::Estimate> Estimate(const GroupedConv& k, const isa::Machine& m) const {
    return list[0].kind == Sharing::Kind::kVector ? vector->EstimateOf(list[0].vector)
                                                  : EstimateOf(k, list[0], m);
  }
};

// Errors: none fits; none has what the case names.
absl::StatusOr<Plans> PlansOf(const GroupedConv& k, const OperatorCase& c, const Target& target) {
  const isa::Machine& m = *target.machine;
  const std::string rate = StrCat("tensor.macs_", ir::TypeName(k.in));
  if (m.Find(rate) == nullptr) {
    return InvalidInput("operator conv2d of ", ir::TypeName(k.in), ": ", m.name,
                        " has no instruction for that type (there is no ", rate, ")");
  }
  const bool has_conv = m.Get(rate) != 0;
  if (!has_conv && !k.is_depthwise()) {
    return InvalidInput("operator conv2d of ", ir::TypeName(k.in), ": ", m.name,
                        " has no convolution of that type (", rate, " = 0)");
  }
  Plans result;
  std::vector<Sharing>& plans = result.list;
  absl::Status error;
  std::string why;  // of one that agrees and does not fit
  // The rest of what the case asks for is the tiling's.
  OperatorCase of_tiling = c;
  of_tiling.schedule.erase(kMerged);
  of_tiling.schedule.erase(kShared);
  const auto allows = [&](std::string_view name, int64_t value) {
    const auto it = c.schedule.find(name);
    return it == c.schedule.end() || it->second == value;
  };
  const auto add = [&](Sharing::Kind kind, int64_t merged,
                       absl::StatusOr<std::vector<GridTiling>> tilings) {
    if (!allows(kMerged, merged) || !allows(kShared, 0)) return;
    if (!tilings.ok()) {
      if (error.ok() || absl::IsResourceExhausted(tilings.status())) error = tilings.status();
      return;
    }
    const Slices slices(k, merged, m);
    bool begins = false;
    for (GridTiling& tiling : *tilings) {
      if (!PartsBegin(k, slices, tiling.columns)) continue;
      begins = true;
      Sharing plan = {.kind = kind, .tiling = tiling, .merged = merged};
      plan.cycles = EstimateOf(k, plan, m).cost.cycles();
      plan.choice = tiling.choice;
      plan.choice[kMerged] = merged;
      plan.choice[kShared] = 0;
      plans.push_back(std::move(plan));
    }
    if (!begins) {
      error.Update(absl::ResourceExhaustedError(StrCat(
          "operator conv2d ", ShapesText(c), ": of a group's filters ", m.wmem_bytes(),
          " bytes of wmem have room for a part, whose sums would begin between multiples of ",
          isa::kTensorUnitAlignment, " bytes of the image")));
    }
  };
  if (k.is_depthwise() && allows(kMerged, 0) && allows(kShared, 0)) {
    absl::StatusOr<te::CardProgram> program = Depthwise(k, target);
    error = program.status();
    if (program.ok()) {
      for (te::CardSchedule& schedule : program->Schedules(of_tiling.schedule, false)) {
        if (ir::IsFloat(k.sum) && te::CardProgram::ReordersSums(schedule.choice)) continue;
        Sharing plan = {.kind = Sharing::Kind::kVector, .vector = schedule.choice};
        plan.cycles = schedule.cycles;
        plan.choice = ScheduleChoice(schedule.choice.begin(), schedule.choice.end());
        plan.choice[kMerged] = plan.choice[kShared] = 0;
        plans.push_back(std::move(plan));
      }
      if (plans.empty()) why = program->WhyNone(of_tiling.schedule);
      result.vector = *std::move(program);
    }
  }
  for (const Slices& t : has_conv ? SlicesOf(k, m) : std::vector<Slices>()) {
    if ((t.merged > 1 ? 2 : 1) * t.WmemBytes(k) > m.wmem_bytes()) {
      if (!allows(kMerged, t.merged)) continue;
      error.Update(absl::ResourceExhaustedError(
          StrCat("operator conv2d ", ShapesText(c), ": the filters of a group need ",
                 t.WmemBytes(k), " bytes of wmem, which has ", m.wmem_bytes())));
      continue;
    }
    // Output channels are not tiled: a part of them would be stored pixel by pixel.
    add(Sharing::Kind::kTiles, t.merged,
        GridTilings(of_tiling, k.ho(), k.wo(), m, [&](int64_t rows, int64_t columns) {
          return TileOfSlices(k, t, m, rows, columns);
        }));
    for (int64_t across = 1; across <= m.cores_per_cluster(); ++across) {
      // More turns cost less until barriers and halos do; a tall image has hundreds that cost more.
      constexpr int kMostLater = 8;
      double least = std::numeric_limits<double>::infinity();
      int later = 0;  // than the one that costs least
      const int64_t most = CeilDiv(k.ho(), m.clusters());
      for (int64_t turns = 1; turns <= most && later < kMostLater; ++turns) {
        std::optional<Sharing> plan = SharedSlices(k, t, across, turns, m);
        if (!plan || !Agrees(plan->choice, c.schedule)) continue;
        const mapping::Estimate estimate = EstimateOf(k, *plan, m);
        const std::string misfit = WhyNot(estimate.needs, m, plan->choice);
        if (!misfit.empty()) {
          why = misfit;
          continue;
        }
        plan->cycles = estimate.cost.cycles();
        later = plan->cycles < least ? 0 : later + 1;
        least = std::min(least, plan->cycles);
        plans.push_back(*std::move(plan));
      }
    }
  }
  if (plans.empty() && !c.schedule.empty() && !why.empty()) return NoSchedule(c, why);
  if (plans.empty() && !error.ok()) return error;
  std::sort(plans.begin(), plans.end(), [](const Sharing& a, const Sharing& b) {
    return std::tie(a.cycles, a.choice) < std::tie(b.cycles, b.choice);
  });
  if (plans.empty()) return NoSchedule(c, "");
  return result;
}

}  // namespace

absl::StatusOr<ir::Function> BuildGroupedConvolution(const ConvLayer& layer, const Epilogue& e,
                                                     const OperatorCase& c, const Target& target) {
  const GroupedConv k(layer, e);
  const isa::Machine& m = *target.machine;
  const std::string type(ir::TypeName(k.in));
  if (!k.is_depthwise()) {
    RETURN_IF_ERROR(CheckInstructions(c, target, {StrCat("conv.", type)}));
  }
  ASSIGN_OR_RETURN(const Plans plans, PlansOf(k, c, target));
  const Sharing& first = plans.list[0];
  if (first.kind == Sharing::Kind::kVector) return BuildDepthwise(k, *plans.vector, first.vector);
  return ConvolveSlices(k, first, m);
}

absl::StatusOr<std::vector<RankedSchedule>> GroupedConvolutionSchedules(const ConvLayer& layer,
                                                                        const Epilogue& e,
                                                                        const OperatorCase& c,
                                                                        const Target& target) {
  ASSIGN_OR_RETURN(const Plans plans, PlansOf(GroupedConv(layer, e), c, target));
  return Ranked(plans.list);
}

absl::StatusOr<mapping::Estimate> GroupedConvolutionEstimate(const ConvLayer& layer,
                                                             const Epilogue& e,
                                                             const OperatorCase& c,
                                                             const Target& target) {
  const GroupedConv k(layer, e);
  ASSIGN_OR_RETURN(const Plans plans, PlansOf(k, c, target));
  return plans.Estimate(k, *target.machine);
}

}  // namespace polynao::kernels
