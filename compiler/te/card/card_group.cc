#include "compiler/te/card/card_group.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/target/target.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/elementwise_group.h"
#include "compiler/te/card/flat_windows.h"
#include "compiler/te/card/folded_reduction.h"
#include "compiler/te/card/gather_group.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/vector_group.h"
#include "compiler/te/card/wide_channels.h"
#include "compiler/te/schedule.h"

namespace polynao::te {

struct CardGroup::Parts {
  // `reuses`: as VectorGroup::Create has it.
  Parts(const Target& target, bool reuses)
      : instructions(*target.instructions, *target.machine), reuses(reuses) {}
  LaneInstructions instructions;
  bool reuses;
  // One of the four.
  std::optional<ElementwiseGroup> elementwise;
  std::optional<ContractionGroup> contraction;
  std::optional<VectorGroup> vector;
  std::optional<GatherGroup> gather;
  // The vector group with its windows flattened (flat_windows.h), by the channels of a core and whether there are
  // shifts: more schedules of the same computation. Their choices say so, `flat` and `shifts`; of the others `flat` is
  // 0. Of several such groups each has tiles of other columns or rows.
  std::multimap<std::pair<int64_t, int64_t>, VectorGroup> flat;
  static constexpr char kFlat[] = "flat", kShifts[] = "shifts";
  // Of so many channels one may be added: the vector unit computes with it too.
  static constexpr int64_t kOneMoreOf = 3;
  // The vector group with its reductions of columns folded (folded_reduction.h): more schedules too, `folded` = 1.
  std::optional<VectorGroup> folded;

  void AddFolded(const Tensor& output, const isa::Machine& machine) {
    const std::optional<Tensor> folded_output = FoldReductions(output);
    if (!folded_output) return;
    absl::StatusOr<VectorGroup> group = Vector(*folded_output, machine, /*products=*/false);
    if (group.ok()) folded = *std::move(group);
  }

  void AddFlat(const Tensor& output, const isa::Machine& machine) {
    const int64_t all = output.shape().back();
    if (all == 0 || output.rank() < 3) return;
    const int64_t block = kOnChipAlignment / SumBytes(output);
    const std::vector<const Operation*> computes = Computes(output);
    // Where sums are of single elements GMEM binds, not the vector unit.
    const bool has_products =
        std::any_of(computes.begin(), computes.end(),
                    [](const Operation* compute) { return IsSumOfProducts(*compute); });
    for (const int64_t across : Divisors(machine.cores_per_cluster())) {
      const int64_t channels = CeilDiv(all, across);
      // Parts of pixels that are so short take long to copy.
      if (has_products && across > 1 && 2 * channels <= block) continue;
      // Cores that do not share channels may share columns.
      std::vector<int64_t> blocks = {1};
      if (across == 1 && has_products) blocks = Divisors(machine.cores_per_cluster());
      // More channels than there are, of which the last core has the rest, so that a pixel's begin where vector
      // instructions may.
      const int64_t wide = RoundUp(channels, block);
      if (wide * across != all && (across - 1) * wide < all && (across > 1 || has_products)) {
        if (const std::optional<Tensor> wider =
                WidenChannels(output, computes, wide * across, across == 1 ? block : 0)) {
          AddFlat(*wider, machine, blocks, has_products, wide, /*shifts=*/false);
          // If they are few, copies of the image or of places of the window take longer.
          if (has_products && kOneMoreOf * (wide - channels) <= channels) continue;
        }
      }
      if (all % across != 0) continue;
      for (const bool shifts : {false, true}) {
        AddFlat(output, machine, blocks, has_products, channels, shifts);
      }
    }
  }
  // With so many blocks of columns each; `has_rows`: with tiles of one row by themselves.
  void AddFlat(const Tensor& output, const isa::Machine& machine,
               const std::vector<int64_t>& blocks_of_columns, bool has_rows, int64_t channels,
               bool shifts) {
    const int64_t all = output.shape()[output.rank() - 2];
    for (const int64_t blocks : blocks_of_columns) {
      if (all % blocks != 0) continue;
      VectorGroup::FlatTiles tiles = {.channels = channels, .columns = all / blocks};
      for (const bool one_row : {true, false}) {
        if (one_row && !has_rows) continue;
        const std::optional<Tensor> flat_output =
            FlattenWindows(output, channels, shifts, tiles.columns, one_row);
        if (!flat_output) continue;
        tiles.most_rows = one_row ? 1 : output.shape()[output.rank() - 3];
        absl::StatusOr<VectorGroup> group = VectorGroup::Create(*flat_output, instructions, machine,
                                                                /*products=*/false, tiles, reuses);
        if (group.ok()) flat.emplace(std::pair(channels, shifts), *std::move(group));
        tiles.least_rows = 2;
      }
    }
  }
  // Of an element of the narrowest reduction.
  static int64_t SumBytes(const Tensor& output) {
    int64_t least = 8;
    for (const Operation* compute : Computes(output)) {
      if (compute->bodies[0].reducer) {
        least = std::min<int64_t>(least, ir::ByteSize(compute->outputs[0]->type));
      }
    }
    return least;
  }

  absl::StatusOr<VectorGroup> Vector(const Tensor& output, const isa::Machine& machine,
                                     bool products) const {
    return VectorGroup::Create(output, instructions, machine, products,
                               {.channels = flat.empty() ? 0 : VectorGroup::kFew}, reuses);
  }

  // `f` of the group that has the choice, if it is no contraction, and of the choice as that group knows it.
  template <typename F>
  auto Visit(CardChoice choice, const F& f) const {
    if (folded) {
      const auto it = choice.find(kFolded);
      const bool is_folded = it != choice.end() && it->second == 1;
      if (it != choice.end()) choice.erase(it);
      if (is_folded) {
        choice.erase(kFlat);
        return f(*folded, choice);
      }
    }
    if (flat.empty() || !choice.contains(kFlat)) return VisitPlain(choice, f);
    const auto take = [&](const char* name) {
      const auto it = choice.find(name);
      if (it == choice.end()) return int64_t{0};
      const int64_t value = it->second;
      choice.erase(it);
      return value;
    };
    const int64_t channels = take(kFlat), shifts = take(kShifts);
    const auto [begin, end] = flat.equal_range(std::pair(channels, shifts));
    if (begin == end) return VisitPlain(choice, f);
    const auto group =
        std::find_if(begin, end, [&](const auto& one) { return one.second.Has(choice); });
    return f((group == end ? begin : group)->second, choice);
  }
  template <typename F>
  auto VisitPlain(const CardChoice& choice, const F& f) const {
    return vector ? f(*vector, choice) : gather ? f(*gather, choice) : f(*elementwise, choice);
  }
};

namespace {

// Whether all are elementwise on whole tensors, which may become ones of one dimension.
bool IsElementwiseGraph(const Tensor& output) {
  if (!output.graph()->within.empty()) return false;
  const std::vector<const Operation*> computes = Computes(output);
  return std::all_of(computes.begin(), computes.end(), [&](const Operation* compute) {
    if (!IsElementwise(*compute)) return false;
    bool reads_all = true;
    for (const Body& body : compute->bodies) {
      ir::ForEachExpr(body.value, [&](Expr e) {
        if (!e.Is(ir::ExprKind::kLoad)) return;
        const Operation& read = *output.graph()->producers.at(ir::Buffer(e.buffer())).first;
        for (size_t d = 0; d < e.operands().size(); ++d) {
          const auto it = std::find(compute->axes.begin(), compute->axes.end(), e.operands()[d]);
          const int64_t extent =
              it == compute->axes.end() ? 1 : compute->shape[it - compute->axes.begin()];
          if (read.shape[d] != extent && read.shape[d] != 1) reads_all = false;
        }
      });
    }
    return reads_all;
  });
}

}  // namespace

std::vector<const Operation*> Computes(const Tensor& output) {
  const GraphState& graph = *output.graph();
  absl::flat_hash_set<const Operation*> needed = {output.operation()};
  std::vector<const Operation*> computes;
  for (auto it = graph.operations.rbegin(); it != graph.operations.rend(); ++it) {
    if (!needed.contains(&*it) || it->kind != Operation::Kind::kCompute) continue;
    computes.push_back(&*it);
    for (const Operation* read : ReadOperations(graph, it->bodies)) needed.insert(read);
  }
  return computes;
}

bool IsSumOfProducts(const Operation& operation) {
  if (operation.kind != Operation::Kind::kCompute) return false;
  const Body& body = operation.bodies[0];
  if (body.reducer != Reducer::kSum || !body.value.Is(ir::ExprKind::kMul)) return false;
  int loads = 0;
  ir::ForEachExpr(body.value, [&](Expr e) { loads += e.Is(ir::ExprKind::kLoad); });
  return loads == 2;
}

CardGroup::CardGroup() = default;
CardGroup::~CardGroup() = default;
CardGroup::CardGroup(CardGroup&&) noexcept = default;
CardGroup& CardGroup::operator=(CardGroup&&) noexcept = default;

absl::StatusOr<CardGroup> CardGroup::Create(const Tensor& output, const Target& target,
                                            const TileExtras& extras, bool by_vector) {
  POLYNAO_CHECK(target.machine != nullptr && target.instructions != nullptr) << target.name;
  CardGroup group;
  group.parts_ = std::make_unique<Parts>(target, /*reuses=*/by_vector);
  Parts& parts = *group.parts_;
  const isa::Machine& machine = *target.machine;
  const std::vector<const Operation*> computes = Computes(output);
  if (std::any_of(computes.begin(), computes.end(),
                  [](const Operation* compute) { return IsSumOfProducts(*compute); })) {
    absl::StatusOr<ContractionGroup> contraction =
        ContractionGroup::Create(output, parts.instructions, target, extras);
    absl::Status status = contraction.status();
    if (contraction.ok()) status = contraction->CheckSmallestTile();
    if (status.ok()) {
      parts.contraction = *std::move(contraction);
      return group;
    }
    if (extras.any() || extras.sum_parts > 1 || extras.sub_pixels) return status;
    // Products with weights of their own for each of a batch, or in another order, or with reductions around them.
    if (by_vector) parts.AddFlat(output, machine);
    absl::StatusOr<VectorGroup> vector = parts.Vector(output, machine, /*products=*/true);
    const bool is_known = absl::IsResourceExhausted(status) || absl::IsUnimplemented(status);
    if (absl::IsResourceExhausted(vector.status()) && !is_known) {
      status = vector.status();
    }
    if (by_vector) {
      absl::StatusOr<VectorGroup> other = parts.Vector(output, machine, /*products=*/false);
      const bool is_better =
          other.ok() && (!vector.ok() || other->LeastCycles() < vector->LeastCycles());
      if (is_better) vector = std::move(other);
    }
    if (!vector.ok()) return status;
    parts.vector = *std::move(vector);
    if (parts.vector->has_products()) {
      parts.flat.clear();
    } else {
      parts.AddFolded(output, machine);
    }
    return group;
  }
  if (!extras.any() && IsGather(*output.operation())) {
    ASSIGN_OR_RETURN(parts.gather, GatherGroup::Create(output, machine));
    return group;
  }
  if (!extras.any() && !IsElementwiseGraph(output)) {
    parts.AddFlat(output, machine);
    ASSIGN_OR_RETURN(parts.vector, parts.Vector(output, machine, /*products=*/false));
    parts.AddFolded(output, machine);
    return group;
  }
  ASSIGN_OR_RETURN(parts.elementwise,
                   ElementwiseGroup::Create(output, parts.instructions, machine, extras));
  if (!parts.elementwise->Schedules().empty()) return group;
  return absl::ResourceExhaustedError(StrCat("tensor ", output.name(),
                                             ": its smallest tile does not fit; nmem has ",
                                             machine.nmem_bytes(), " bytes"));
}

bool CardGroup::is_vector() const { return parts_->vector.has_value(); }

bool CardGroup::has_products() const {
  return parts_->contraction || (parts_->vector && parts_->vector->has_products());
}

std::vector<CardSchedule> CardGroup::Schedules(const CardChoice& wanted, bool only_first,
                                               double limit) const {
  if (parts_->contraction) return parts_->contraction->Schedules(wanted, only_first, limit);
  std::vector<CardSchedule> schedules = parts_->VisitPlain(
      {}, [](const auto& group, const CardChoice&) { return group.Schedules(); });
  if (!parts_->flat.empty()) {
    for (CardSchedule& schedule : schedules) schedule.choice[Parts::kFlat] = 0;
  }
  for (const auto& [kind, group] : parts_->flat) {
    for (CardSchedule& schedule : group.Schedules()) {
      std::tie(schedule.choice[Parts::kFlat], schedule.choice[Parts::kShifts]) = kind;
      schedules.push_back(std::move(schedule));
    }
  }
  if (parts_->folded) {
    for (CardSchedule& schedule : schedules) schedule.choice[kFolded] = 0;
    for (CardSchedule& schedule : parts_->folded->Schedules()) {
      if (!parts_->flat.empty()) schedule.choice[Parts::kFlat] = 0;
      schedule.choice[kFolded] = 1;
      schedules.push_back(std::move(schedule));
    }
  }
  if (!parts_->flat.empty() || parts_->folded) {
    std::sort(schedules.begin(), schedules.end(), IsBefore);
  }
  std::erase_if(schedules, [&](const CardSchedule& s) { return !Agrees(s.choice, wanted); });
  return schedules;
}

absl::StatusOr<ir::Function> CardGroup::Build(const CardChoice& choice) const {
  if (parts_->contraction) return parts_->contraction->Build(choice);
  return parts_->Visit(choice,
                       [](const auto& group, const CardChoice& own) { return group.Build(own); });
}

absl::StatusOr<mapping::Estimate> CardGroup::EstimateOf(const CardChoice& choice) const {
  if (parts_->contraction) return parts_->contraction->EstimateOf(choice);
  return parts_->Visit(
      choice, [](const auto& group, const CardChoice& own) { return group.EstimateOf(own); });
}

std::string CardGroup::WhyNone(const CardChoice& wanted) const {
  if (parts_->contraction) return parts_->contraction->WhyNone(wanted);
  return parts_->Visit(wanted,
                       [](const auto& group, const CardChoice& own) { return group.WhyNone(own); });
}

}  // namespace polynao::te
