// Derives what the instruction table asks of the loop nests of one instruction family: how they
// accumulate or copy, and in which layout they read weights.
#ifndef COMPILER_PASSES_INSTRUCTION_LAYOUT_H_
#define COMPILER_PASSES_INSTRUCTION_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/type.h"
#include "isa/instruction_set.h"

namespace polynao {

// A layout of weights in WMEM, read from an instruction's meaning
//   dst[.., c * lanes + l] += ... weights[l, c * pitch + ...]
struct WeightLayout {
  ir::Type type;     // of the weights' elements
  int64_t lanes;     // number of banks; output channels come in groups of so many
  int64_t multiple;  // the pitch, in elements, must be a multiple of this
};

// How the instructions of one family treat their nests, derived from their meanings.
struct InstructionFamily {
  bool reduces = false;  // accumulates over loops that do not occur in the result's index
  bool copies = false;   // stores the values it loads, unchanged
  std::vector<WeightLayout> weights;  // one for each element type
};

// The family `name`; none if the table has no queued instruction of that family.
std::optional<InstructionFamily> FindInstructionFamily(const isa::InstructionSet& set,
                                                       std::string_view name);

}  // namespace polynao

#endif  // COMPILER_PASSES_INSTRUCTION_LAYOUT_H_
