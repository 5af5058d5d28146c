// Elementwise computes of any number of tensors as one group on a card: each tensor crosses GMEM once, everything
// between stays in NMEM.
#ifndef COMPILER_TE_CARD_ELEMENTWISE_GROUP_H_
#define COMPILER_TE_CARD_ELEMENTWISE_GROUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/estimate.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/steps.h"
#include "compiler/te/graph.h"
#include "isa/machine.h"

namespace polynao::te {

// How the cores share the output. Neighbouring dimensions along which the same tensors vary count as one. For each
// index of the dimensions before `split`, a core takes a run of `core` elements of dimension `split`, in tiles of
// `tile`, which span all later dimensions.
class ElementwiseGroup {
 public:
  // Errors: a tensor that is no input, in other order than the output's dimensions; what CutIntoSteps finds.
  static absl::StatusOr<ElementwiseGroup> Create(const Tensor& output,
                                                 const LaneInstructions& instructions,
                                                 const isa::Machine& machine,
                                                 const TileExtras& extras);

  // The tilings that fit NMEM, the cheapest first; choices `rotate`, `split` and `tile`. Those that only a search may
  // find to be the fastest come last: the cost model does not see how cores drift apart where their tiles come in
  // different orders, or where the last of them is shorter.
  std::vector<CardSchedule> Schedules() const;
  // The function under a choice of Schedules().
  absl::StatusOr<ir::Function> Build(const CardChoice& choice) const;
  // The cost model's parts of such a choice.
  absl::StatusOr<mapping::Estimate> EstimateOf(const CardChoice& choice) const;
  // Why no schedule has the choices: the tiling with them that needs least of the memory that it does not fit; "" if
  // there is none with them.
  std::string WhyNone(const CardChoice& wanted) const;

 private:
  struct Tiling {
    size_t split = 0;
    int64_t core = 1, tile = 1;
    int64_t rotation = 0;  // each core starts so many tiles further on than its neighbour

    bool is_plain() const { return rotation == 0 && core % tile == 0; }
  };
  // How an instruction reads an operand's part of a tile: an element for each of its own, a row for all rows, or a
  // copy in NMEM that repeats elements.
  enum class Use : uint8_t { kWhole, kRow, kSpread };
  class Builder;

  ElementwiseGroup(const Tensor& output, const LaneInstructions& instructions,
                   const isa::Machine& machine, const TileExtras& extras)
      : output_(output),
        instructions_(&instructions),
        machine_(&machine),
        card_(machine),
        extras_(extras) {}

  void MergeDimensions();
  // The extent of dimension d in a tile.
  int64_t TileExtent(const Tiling& t, size_t d) const;
  // Dimensions along which the step's values differ inside a tile, and how many values these are.
  std::vector<bool> TileMask(const Tiling& t, size_t step) const;
  int64_t TileElements(const Tiling& t, const std::vector<bool>& mask) const;
  // Returns true if the values are the same in all tiles of a core.
  bool IsSame(const Tiling& t, size_t step) const;
  // The operands' uses, and the instruction's form for them.
  std::vector<Use> Uses(const Tiling& t, size_t step, const isa::Instruction*& form) const;
  // Returns true if single elements are repeated along the last dimension so often that it pays to copy them in groups.
  bool RepeatsElements(const Tiling& t, size_t step, const std::vector<bool>& mask) const;
  // The operand in whose place the step computes; -1: none.
  std::vector<int> Places(const Tiling& t) const;
  // Estimated cycles, and bytes of NMEM.
  mapping::CostParts Cost(const Tiling& t, int64_t& nmem_bytes) const;
  // Adds the tilings of a run of single elements that is no whole number of tiles, and other orders of tiles.
  void AddRagged(int64_t run, std::vector<Tiling>& tilings) const;
  std::vector<std::pair<Tiling, CardSchedule>> Tilings(bool fitting = true) const;

  Tensor output_;
  const LaneInstructions* instructions_;
  const isa::Machine* machine_;
  mapping::CardFacts card_;
  TileExtras extras_;
  Steps steps_;
  Shape extents_;                          // merged
  std::vector<int> merged_;                // of each dimension of the domain; -1: extent 1
  std::vector<std::vector<bool>> varies_;  // of each step, along merged dimensions
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_ELEMENTWISE_GROUP_H_
