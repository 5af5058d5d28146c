// Memory for arrays that do not live at the same time.
#ifndef COMPILER_POLY_ARRANGE_SLOTS_H_
#define COMPILER_POLY_ARRANGE_SLOTS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/type.h"

namespace polynao::poly {

// An array of a tile. What a tile does has phases with ascending numbers: a GPU's lie between two barriers, a CPU's are
// stages.
struct LivingArray {
  ir::Type type;
  int64_t elements = 0;
  int first = 0, last = 0;  // the phases in which it is stored, and read for the last time
};

struct Slot {
  ir::Type type;
  int64_t elements = 0;
  int arrays = 0;  // that use it
};

struct Slots {
  std::vector<int> slot_of;  // of each array
  std::vector<Slot> slots;
  int64_t bytes() const;
};

// Arrays of one type share a slot if the last one is read in an earlier phase than the next one is stored in (on a GPU,
// there is a barrier in between anyway). Each takes the free slot that is closest to its size. `arrays` in the order of
// their first phases.
Slots AssignSlots(const std::vector<LivingArray>& arrays);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_SLOTS_H_
