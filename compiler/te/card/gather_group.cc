#include "compiler/te/card/gather_group.h"

#include <algorithm>
#include <tuple>

#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/levels.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

// The loads in the indices of a load.
std::vector<Expr> NumbersIn(Expr load) {
  std::vector<Expr> numbers;
  for (Expr index : load.operands()) {
    ir::ForEachExpr(index, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) numbers.push_back(e);
    });
  }
  return numbers;
}

}  // namespace

bool IsGather(const Operation& operation) {
  if (operation.kind != Operation::Kind::kCompute) return false;
  bool gathers = false;
  for (const Body& body : operation.bodies) {
    ir::ForEachExpr(body.value, [&](Expr e) {
      gathers = gathers || (e.Is(ExprKind::kLoad) && !NumbersIn(e).empty());
    });
  }
  return gathers;
}

absl::StatusOr<GatherGroup> GatherGroup::Create(const Tensor& output, const isa::Machine& machine) {
  GatherGroup group(output, machine);
  const Operation& operation = *output.operation();
  const auto fail = [&](const std::string& what) {
    return InvalidInput("tensor ", output.name(),
                        ": expected an element of an input, at a place of other inputs: ", what);
  };
  const Body& body = operation.bodies[0];
  if (body.reducer || !body.value.Is(ExprKind::kLoad)) return fail("it is more than an element");
  if (output.rank() == 0) return fail("it has no dimensions");
  const GraphState& graph = *output.graph();
  std::vector<Expr> loads = NumbersIn(body.value);
  for (const Expr load : loads) {
    const auto [read, index] = graph.producers.at(ir::Buffer(load.buffer()));
    if (!NumbersIn(load).empty()) return fail("a place of places");
    for (size_t d = 0; d < operation.axes.size(); ++d) {
      if (ir::UsesVar(load, operation.axes[d])) group.outer_ = std::max(group.outer_, d + 1);
    }
    const Tensor tensor(output.graph(), read, index);
    if (std::find(group.numbers_.begin(), group.numbers_.end(), tensor) == group.numbers_.end()) {
      group.numbers_.push_back(tensor);
    }
  }
  loads.push_back(body.value);
  for (const Expr load : loads) {
    const Operation& read = *graph.producers.at(ir::Buffer(load.buffer())).first;
    if (read.kind == Operation::Kind::kCompute) return fail(StrCat(read.name, " is computed"));
  }
  if (!group.Schedules().empty()) return group;
  return absl::ResourceExhaustedError(StrCat("tensor ", output.name(),
                                             ": its smallest tile does not fit; nmem has ",
                                             machine.nmem_bytes(), " bytes"));
}

int64_t GatherGroup::CoreRows() const {
  return std::max<int64_t>(1, CeilDiv(output_.shape()[0], machine_->cores()));
}

CardChoice GatherGroup::Tile::choice() const {
  CardChoice choice = {{"tile", rows}};
  if (part > 0) choice["part"] = part;
  return choice;
}

std::optional<GatherGroup::Tile> GatherGroup::TileOf(const CardChoice& choice) {
  const auto rows = choice.find("tile"), part = choice.find("part");
  if (rows == choice.end()) return std::nullopt;
  return Tile{.rows = rows->second, .part = part == choice.end() ? 0 : part->second};
}

mapping::Estimate GatherGroup::Cost(const Tile& tile) const {
  const int64_t rows = tile.rows;
  int64_t whole = ElementCount(output_.shape()) / std::max<int64_t>(1, output_.shape()[0]);
  int64_t parts = 1;  // of a row
  if (tile.part > 0) {
    whole = whole / output_.shape()[outer_] * tile.part;
    parts = CeilDiv(output_.shape()[outer_], tile.part);
  }
  int64_t transfers = rows;  // of a tile
  for (size_t d = 1; d < outer_; ++d) transfers *= output_.shape()[d];
  const int64_t bytes = rows * whole * ir::ByteSize(output_.type());
  mapping::Estimate estimate = {.kind = "rows by their numbers", .cost = {}, .needs = {}};
  estimate.needs.nmem = 2 * OnChipBytes(rows * whole, output_.type());
  const auto rate = machine_->gmem_bytes_per_cycle() / static_cast<double>(machine_->cores());
  double of_numbers = 0;
  for (const Tensor& numbers : numbers_) {
    const bool is_split = !numbers.shape().empty() && numbers.shape()[0] == output_.shape()[0];
    const int64_t elements = ElementCount(numbers.shape()) / (is_split ? numbers.shape()[0] : 1) *
                             (is_split ? CoreRows() : 1);
    estimate.needs.nmem += OnChipBytes(elements, numbers.type());
    of_numbers += static_cast<double>(elements * ir::ByteSize(numbers.type())) / rate;
  }
  const auto latency = static_cast<double>(machine_->Get("gmem.latency"));
  mapping::CostParts& cost = estimate.cost;
  cost.Phase("numbers", 1), cost.Lane();
  cost.Add("latency", mapping::kWaits, latency), cost.Add("numbers", mapping::kGmem, of_numbers);
  // Transfers of a core come one after the other.
  const auto tiles = static_cast<double>(CeilDiv(CoreRows(), rows) * parts);
  cost.Phase("tiles", tiles);
  cost.Lane();
  cost.Add("rows", mapping::kGmem, static_cast<double>(2 * bytes) / rate);
  cost.Add("starts and latencies", mapping::kWaits,
           static_cast<double>(transfers) *
               (static_cast<double>(machine_->Get("io_dma.start")) + latency));
  cost.Phase("stores", tiles), cost.Lane();
  cost.Add("latency", mapping::kWaits, latency);
  return estimate;
}

std::vector<std::pair<GatherGroup::Tile, double>> GatherGroup::Tilings(bool fitting) const {
  std::vector<std::pair<Tile, double>> tilings;
  bool fits = false;
  const auto add = [&](const Tile& tile) {
    const mapping::Estimate estimate = Cost(tile);
    const bool is_fitting = estimate.needs.nmem <= machine_->nmem_bytes();
    fits = fits || is_fitting;
    if (is_fitting == fitting) tilings.emplace_back(tile, estimate.cost.cycles());
  };
  for (const int64_t rows : Fractions(CoreRows())) add({.rows = rows});
  if (!fits && outer_ < output_.rank()) {
    for (const int64_t part : Fractions(output_.shape()[outer_])) add({.rows = 1, .part = part});
  }
  return tilings;
}

std::vector<CardSchedule> GatherGroup::Schedules() const {
  std::vector<CardSchedule> schedules;
  for (const auto& [tile, cycles] : Tilings(/*fitting=*/true)) {
    schedules.push_back({.choice = tile.choice(), .cycles = cycles});
  }
  std::sort(schedules.begin(), schedules.end(), IsBefore);
  return schedules;
}

absl::StatusOr<mapping::Estimate> GatherGroup::EstimateOf(const CardChoice& choice) const {
  const std::optional<Tile> tile = TileOf(choice);
  if (!tile) return InvalidInput("no such schedule of ", output_.name());
  return Cost(*tile);
}

std::string GatherGroup::WhyNone(const CardChoice& wanted) const {
  std::string why;
  for (const auto& [tile, cycles] : Tilings(/*fitting=*/false)) {
    if (!Agrees(tile.choice(), wanted)) continue;
    why = DoesNotFit("nmem", Cost(tile).needs.nmem, machine_->nmem_bytes(), tile.choice());
  }
  return why;
}

absl::StatusOr<ir::Function> GatherGroup::Build(const CardChoice& choice) const {
  const std::optional<Tile> of_choice = TileOf(choice);
  if (!of_choice) return InvalidInput("no such schedule of ", output_.name());
  Graph g(output_.graph());
  const Operation& operation = *output_.operation();
  // A transfer needs a loop, if of one element.
  Shape shape = output_.shape();
  if (outer_ == shape.size()) shape.push_back(1);
  const Tensor rows = g.Compute(output_.name() + ".rows", shape, [&](const Axes& at) {
    ir::VarMap by;
    for (size_t d = 0; d < operation.axes.size(); ++d) by[operation.axes[d]] = at[d];
    return ir::Substitute(operation.bodies[0].value, by);
  });
  const Tensor y = g.Compute(output_.name(), output_.shape(), [&](const Axes& at) {
    Axes own = at;
    if (own.size() < shape.size()) own.push_back(g.context().Int(g.index_type(), 0));
    return rows(own);
  });
  Schedule s(y);
  std::vector<Tensor> near;
  for (const Tensor& numbers : numbers_) near.push_back(s.CacheRead(numbers, isa::kNmem, {rows}));
  auto [cid, rest] = s[y].Split(s[y].axis(0), CoreRows() * machine_->cores_per_cluster());
  Axis tid, tile, element;
  std::tie(tid, rest) = s[y].Split(rest, CoreRows());
  std::tie(tile, element) = s[y].Split(rest, of_choice->rows);
  if (of_choice->part > 0) {
    auto [part, place] = s[y].Split(s[y].axis(outer_), of_choice->part);
    std::vector<Axis> order = {cid, tid, tile, part, element};
    for (size_t d = 1; d < y.rank(); ++d) order.push_back(d == outer_ ? place : s[y].axis(d));
    s[y].Reorder(order);
    tile = s[y].Fuse(tile, part);
  }
  s[y].Bind(cid, isa::kClusterAxis).Bind(tid, isa::kCoreAxis).Pragma(element, "memcpy");
  for (const Tensor& numbers : near) {
    Stage& stage = s[numbers].ComputeAt(s[y], tid).SetScope(isa::kNmem);
    if (numbers.rank() > 0) stage.Pragma(stage.axis(0), "memcpy");
  }
  Stage& stage = s[rows].ComputeAt(s[y], tile).SetScope(isa::kNmem).DoubleBuffer();
  stage.Pragma(stage.axis(outer_), "memcpy");
  return Lower(s);
}

}  // namespace polynao::te
