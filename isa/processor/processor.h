// Instructions of processors as rows of a table (instructions.nir): name, meaning, feature, intrinsic. Packed tiles
// (compiler/poly/pack) take a row by its meaning and have the layout that it wants; the code generator finds the
// meaning in the loops. Where the feature is missing, the same loops are plain code.
#ifndef ISA_PROCESSOR_PROCESSOR_H_
#define ISA_PROCESSOR_PROCESSOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/ir/type.h"

namespace polynao::isa {

// With casts of the operands to the sums' type,
//
//   for (lane) for (q, group) sums[lane] = sums[lane] + a[q] * b[lane, q]
//
// or, of a tile of sums,
//
//   for (row) for (lane) for (k, steps) for (q, group)
//     sums[row, lane] = sums[row, lane] + a[row, k * group + q] * b[k, lane, q]
//
// but for the order and the rounding of the sums of floats.
struct ProcessorInstruction {
  std::string name, doc, feature, intrinsic;
  ir::Function meaning;   // calls of functions that the table declares are expanded to lets
  ir::Buffer sums, a, b;  // the meaning's parameters
  int64_t rows = 1, lanes = 0, steps = 1, group = 0;
  int64_t registers = 0;  // that hold tiles; 0: the operands are vectors
  double cycles = 0;      // from one to the next; 0: two start at a time

  bool IsTile() const { return registers > 0; }
  // The order of products does not matter: integers.
  bool IsExact() const { return ir::IsInt(sums->type); }
  // Products that are added to each sum.
  int64_t depth() const { return steps * group; }
};

// The rows of a table's text. Aborts where one is malformed: tables are compiled in.
std::vector<ProcessorInstruction> ReadProcessorRows(std::string_view text, const std::string& file);

// All rows, in the order of the table.
const std::vector<ProcessorInstruction>& ProcessorInstructions();

// Whether this machine has `feature`, which a row names, and the system lets this process use it. The registers of
// tiles are so large that Linux has to be asked for them; it is asked here.
bool HostHas(std::string_view feature);

// What Linux is asked: arch_prctl(kAskForState, kTileState), of an x86-64's system calls number kArchPrctl.
inline constexpr int64_t kArchPrctl = 158, kAskForState = 0x1023, kTileState = 18;

}  // namespace polynao::isa

#endif  // ISA_PROCESSOR_PROCESSOR_H_
