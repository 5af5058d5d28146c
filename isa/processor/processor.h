// Instructions of processors as rows of a table (instructions.nir): name, meaning, feature, intrinsic. Packed tiles
// (compiler/poly/pack) take a row by its meaning and have the layout that it wants; the code generator finds the
// meaning in the loops. Where the feature is missing, the same loops are plain code.
#ifndef ISA_PROCESSOR_PROCESSOR_H_
#define ISA_PROCESSOR_PROCESSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace polynao::isa {

// for (lane) for (q, group) sums[lane] = sums[lane] + a[q] * b[lane, q], with casts of the operands to the sums' type.
struct ProcessorInstruction {
  std::string name, doc, feature, intrinsic;
  ir::Function meaning;
  ir::Buffer sums, a, b;  // the meaning's parameters
  int64_t lanes = 0, group = 0;
};

// All rows, in the order of the table.
const std::vector<ProcessorInstruction>& ProcessorInstructions();

}  // namespace polynao::isa

#endif  // ISA_PROCESSOR_PROCESSOR_H_
