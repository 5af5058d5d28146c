#include "compiler/poly/arrange/slots.h"

#include <algorithm>
#include <cstdlib>

namespace polynao::poly {

int64_t Slots::bytes() const {
  int64_t sum = 0;
  for (const Slot& slot : slots) {
    int64_t bytes = ir::ByteSize(slot.type);
    if (__builtin_mul_overflow(bytes, slot.elements, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum)) {
      return INT64_MAX;
    }
  }
  return sum;
}

Slots AssignSlots(const std::vector<LivingArray>& arrays) {
  Slots result;
  std::vector<int> last;  // the phase in which each slot is read for the last time
  for (const LivingArray& array : arrays) {
    int best = -1;
    int64_t best_distance = 0;
    for (size_t s = 0; s < result.slots.size(); ++s) {
      if (result.slots[s].type != array.type || last[s] >= array.first) continue;
      const int64_t distance = std::abs(result.slots[s].elements - array.elements);
      if (best >= 0 && distance >= best_distance) continue;
      best = static_cast<int>(s);
      best_distance = distance;
    }
    if (best < 0) {
      best = static_cast<int>(result.slots.size());
      result.slots.push_back({.type = array.type});
      last.push_back(0);
    }
    Slot& slot = result.slots[static_cast<size_t>(best)];
    slot.elements = std::max(slot.elements, array.elements);
    ++slot.arrays;
    last[static_cast<size_t>(best)] = array.last;
    result.slot_of.push_back(best);
  }
  return result;
}

}  // namespace polynao::poly
