#include "isa/check/state.h"

#include "isa/check/tensors.h"

namespace polynao::isa {

int TensorOf(const CheckedValue& value) {
  return value.is_known ? static_cast<int>(value.number >> CheckedTensors::kShift) - 1
                        : value.tensor;
}

bool MergeInto(CheckedState& into, const CheckedState& from) {
  bool has_changed = false;
  for (size_t i = 0; i < into.registers.size(); ++i) {
    CheckedValue& value = into.registers[i];
    const CheckedValue& other = from.registers[i];
    if (value == other) continue;
    const int tensor = TensorOf(value) == TensorOf(other) ? TensorOf(value) : -1;
    const CheckedValue merged = {.number = 0, .is_known = false, .tensor = tensor};
    has_changed |= !(value == merged);
    value = merged;
  }
  for (size_t q = 0; q < into.pending.size(); ++q) {
    has_changed |= into.pending[q].Join(from.pending[q]);
  }
  return has_changed;
}

}  // namespace polynao::isa
