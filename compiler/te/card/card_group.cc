#include "compiler/te/card/card_group.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/elementwise_group.h"
#include "compiler/te/card/lane_instructions.h"

namespace polynao::te {

struct CardGroup::Parts {
  explicit Parts(const Target& target) : instructions(*target.instructions, *target.machine) {}
  LaneInstructions instructions;
  // One of the two.
  std::optional<ElementwiseGroup> elementwise;
  std::optional<ContractionGroup> contraction;
};

namespace {

bool HasReduction(const Tensor& output) {
  return std::any_of(output.graph()->operations.begin(), output.graph()->operations.end(),
                     [](const Operation& operation) {
                       return operation.kind == Operation::Kind::kCompute &&
                              operation.bodies[0].reducer;
                     });
}

}  // namespace

CardGroup::CardGroup() = default;
CardGroup::~CardGroup() = default;
CardGroup::CardGroup(CardGroup&&) noexcept = default;
CardGroup& CardGroup::operator=(CardGroup&&) noexcept = default;

absl::StatusOr<CardGroup> CardGroup::Create(const Tensor& output, const Target& target) {
  POLYNAO_CHECK(target.machine != nullptr && target.instructions != nullptr) << target.name;
  CardGroup group;
  group.parts_ = std::make_unique<Parts>(target);
  Parts& parts = *group.parts_;
  const isa::Machine& machine = *target.machine;
  std::string needed;
  if (HasReduction(output)) {
    ASSIGN_OR_RETURN(parts.contraction,
                     ContractionGroup::Create(output, parts.instructions, target));
    group.schedules_ = parts.contraction->Schedules();
    const auto [nmem, wmem] = parts.contraction->LeastBytes();
    needed = StrCat(": ", nmem, " bytes of nmem and ", wmem, " of wmem");
  } else {
    ASSIGN_OR_RETURN(parts.elementwise,
                     ElementwiseGroup::Create(output, parts.instructions, machine));
    group.schedules_ = parts.elementwise->Schedules();
  }
  if (!group.schedules_.empty()) return group;
  return absl::ResourceExhaustedError(
      StrCat("tensor ", output.name(), ": its smallest tile does not fit", needed, "; nmem has ",
             machine.nmem_bytes(), " bytes, wmem ", machine.wmem_bytes()));
}

absl::StatusOr<ir::Function> CardGroup::Build(const CardChoice& choice) const {
  return parts_->contraction ? parts_->contraction->Build(choice)
                             : parts_->elementwise->Build(choice);
}

}  // namespace polynao::te
