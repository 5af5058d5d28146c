#include "compiler/te/card/card_group.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/elementwise_group.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/schedule.h"

namespace polynao::te {

struct CardGroup::Parts {
  explicit Parts(const Target& target) : instructions(*target.instructions, *target.machine) {}
  LaneInstructions instructions;
  // One of the two.
  std::optional<ElementwiseGroup> elementwise;
  std::optional<ContractionGroup> contraction;
};

namespace {

// Whether the output, or a compute that it needs, is a reduction.
bool HasReduction(const Tensor& output) {
  const GraphState& graph = *output.graph();
  absl::flat_hash_set<const Operation*> needed = {output.operation()};
  for (auto it = graph.operations.rbegin(); it != graph.operations.rend(); ++it) {
    if (!needed.contains(&*it) || it->kind != Operation::Kind::kCompute) continue;
    if (it->bodies[0].reducer) return true;
    for (const Operation* read : ReadOperations(graph, it->bodies)) needed.insert(read);
  }
  return false;
}

}  // namespace

CardGroup::CardGroup() = default;
CardGroup::~CardGroup() = default;
CardGroup::CardGroup(CardGroup&&) noexcept = default;
CardGroup& CardGroup::operator=(CardGroup&&) noexcept = default;

absl::StatusOr<CardGroup> CardGroup::Create(const Tensor& output, const Target& target,
                                            const TileExtras& extras) {
  POLYNAO_CHECK(target.machine != nullptr && target.instructions != nullptr) << target.name;
  CardGroup group;
  group.parts_ = std::make_unique<Parts>(target);
  Parts& parts = *group.parts_;
  if (HasReduction(output)) {
    ASSIGN_OR_RETURN(parts.contraction,
                     ContractionGroup::Create(output, parts.instructions, target, extras));
    RETURN_IF_ERROR(parts.contraction->CheckSmallestTile());
    return group;
  }
  const isa::Machine& machine = *target.machine;
  ASSIGN_OR_RETURN(parts.elementwise,
                   ElementwiseGroup::Create(output, parts.instructions, machine, extras));
  if (!parts.elementwise->Schedules().empty()) return group;
  return absl::ResourceExhaustedError(StrCat("tensor ", output.name(),
                                             ": its smallest tile does not fit; nmem has ",
                                             machine.nmem_bytes(), " bytes"));
}

std::vector<CardSchedule> CardGroup::Schedules(const CardChoice& wanted, bool only_first) const {
  if (parts_->contraction) return parts_->contraction->Schedules(wanted, only_first);
  std::vector<CardSchedule> schedules = parts_->elementwise->Schedules();
  std::erase_if(schedules, [&](const CardSchedule& s) { return !Agrees(s.choice, wanted); });
  return schedules;
}

absl::StatusOr<ir::Function> CardGroup::Build(const CardChoice& choice) const {
  return parts_->contraction ? parts_->contraction->Build(choice)
                             : parts_->elementwise->Build(choice);
}

absl::StatusOr<mapping::Estimate> CardGroup::EstimateOf(const CardChoice& choice) const {
  return parts_->contraction ? parts_->contraction->EstimateOf(choice)
                             : parts_->elementwise->EstimateOf(choice);
}

std::string CardGroup::WhyNone(const CardChoice& wanted) const {
  return parts_->contraction ? parts_->contraction->WhyNone(wanted)
                             : parts_->elementwise->WhyNone(wanted);
}

}  // namespace polynao::te
