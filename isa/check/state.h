// What the check knows of a core at one place of its program.
#ifndef ISA_CHECK_STATE_H_
#define ISA_CHECK_STATE_H_

#include <array>
#include <cstdint>

#include "isa/check/access_list.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

// A register: its number, or nothing but the tensor in which it is an address.
struct CheckedValue {
  int64_t number = 0;
  bool is_known = true;
  int tensor = -1;  // of an unknown one; -1: any, or none
  bool operator==(const CheckedValue&) const = default;
};

struct CheckedState {
  std::array<CheckedValue, kRegisterCount> registers{};
  std::array<AccessList, kQueueCount> pending{};  // what each queue may still access
};

// The tensor in which a register is an address, by the position of its parameter; -1: none, or not known.
int TensorOf(const CheckedValue& value);

// What two ways leave where they meet; returns true if `into` changed. A register of two numbers is unknown; an access
// that is pending on one way alone is uncertain.
bool MergeInto(CheckedState& into, const CheckedState& from);

}  // namespace polynao::isa

#endif  // ISA_CHECK_STATE_H_
