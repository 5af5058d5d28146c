// Contractions as instructions of a processor that add several products to each sum (isa/processor).
#ifndef COMPILER_POLY_PACK_DOT_H_
#define COMPILER_POLY_PACK_DOT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"

#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/pack/contraction.h"
#include "isa/processor/processor.h"

namespace polynao::poly {

// The operands before they are cast to the sums' type: panels have these, in the instruction's types, which hold all
// their values (i8 as i16). Where the instruction reads the row operand as unsigned and it is signed, panels have it
// plus 128, and what that adds to a sum is 128 times the sum of the column operand, which is taken off again:
//
//   x * f = (x + 128) * f - 128 * f        of i8, where x + 128 is a u8
struct Dot {
  const isa::ProcessorInstruction* instruction = nullptr;
  ir::Expr row_operand = {}, column_operand = {};
  bool shifts_rows = false;
};

// The rows of the table that `contraction` is, of those that the machine has. Sums of floats change their order and
// lose subnormal numbers by them: they are taken with `takes_floats` alone.
std::vector<Dot> FindDots(const Contraction& contraction, const CpuMachine& machine,
                          bool takes_floats);

// What stands in place of elements of an instruction's operands, at the indices that its meaning has.
struct DotElements {
  using Load = std::function<ir::Expr(absl::Span<const ir::Expr> indices)>;
  Load sum, a, b;
  std::function<ir::Stmt(absl::Span<const ir::Expr> indices, ir::Expr value)> store;
};

// The loops of the instruction's meaning on these elements.
ir::Stmt InstanceOf(const isa::ProcessorInstruction& instruction, ir::Context& context,
                    const DotElements& elements);
// Of an instruction on vectors: what its loop over lanes runs, at `lane`, which may be beyond the first vector.
ir::Stmt InstanceAt(const isa::ProcessorInstruction& instruction, ir::Expr lane,
                    const DotElements& elements);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_DOT_H_
