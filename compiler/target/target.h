// A target is the machine that a function is compiled for.
#ifndef COMPILER_TARGET_TARGET_H_
#define COMPILER_TARGET_TARGET_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"

namespace polynao {

// A target by name ("diannao", "cpu", "c", "cuda", "interp"). Accelerators bring their instructions
// and the machine they are scheduled for; the other targets leave both null.
struct Target {
  std::string name;
  const isa::InstructionSet* instructions = nullptr;
  const isa::Machine* machine = nullptr;

  // On-chip memories as functions name them, with their sizes in bytes on this machine.
  int64_t MemoryBytes(std::string_view scope) const;
};

// Allocations on chip start at multiples of this many bytes, so that no instruction's alignment
// rule can fail on the start of a buffer.
inline constexpr int64_t kOnChipAlignment = 128;

// "nmem", "smem", "wmem": memories that a program addresses by itself.
bool IsOnChip(std::string_view scope);

// The names that Target::name may have.
std::vector<std::string_view> TargetNames();

}  // namespace polynao

#endif  // COMPILER_TARGET_TARGET_H_
