// Shared memory for arrays that do not live at the same time.
#ifndef COMPILER_POLY_SHARED_SLOTS_H_
#define COMPILER_POLY_SHARED_SLOTS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/type.h"

namespace polynao::poly {

// An array of a block. Between two barriers is a phase; phases have ascending numbers.
struct BlockArray {
  ir::Type type;
  int64_t elements = 0;
  int first = 0, last = 0;  // the phases in which threads store it, and read it for the last time
};

struct SharedSlot {
  ir::Type type;
  int64_t elements = 0;
  int arrays = 0;  // that use it
};

struct SharedSlots {
  std::vector<int> slot_of;  // of each array
  std::vector<SharedSlot> slots;
  int64_t bytes() const;
};

// Arrays of one type share a slot if the last one is read in an earlier phase than the next one is stored in, so that there is a
// barrier in between anyway. Each takes the free slot that is closest to its size. `arrays` in the order of their first phases.
SharedSlots AssignSlots(const std::vector<BlockArray>& arrays);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_SHARED_SLOTS_H_
