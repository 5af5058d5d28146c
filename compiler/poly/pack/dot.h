// Contractions as instructions of a processor that add several products to each sum (isa/processor).
#ifndef COMPILER_POLY_PACK_DOT_H_
#define COMPILER_POLY_PACK_DOT_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/pack/contraction.h"
#include "isa/processor/processor.h"

namespace polynao::poly {

// The operands before they are cast to the sums' type: panels have these. Where the instruction reads the row operand
// as unsigned and it is signed, panels have it plus 128, and what that adds to a sum is 128 times the sum of the column
// operand, which is taken off again:
//
//   x * f = (x + 128) * f - 128 * f        of i8, where x + 128 is a u8
struct Dot {
  const isa::ProcessorInstruction* instruction = nullptr;
  ir::Expr row_operand = {}, column_operand = {};
  bool shifts_rows = false;
};

// The rows of the table that `contraction` is, of those that the machine has.
std::vector<Dot> FindDots(const Contraction& contraction, const CpuMachine& machine);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_DOT_H_
