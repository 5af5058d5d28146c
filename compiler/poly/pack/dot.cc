#include "compiler/poly/pack/dot.h"

#include <algorithm>

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

// What is cast to the type of the sums.
Expr Uncast(Expr operand) { return operand.Is(ExprKind::kCast) ? operand.operand(0) : operand; }

// The operands of the instruction's own product, in the order of its meaning, have these types.
bool Takes(const isa::ProcessorInstruction& row, Type a, Type b, bool* shifts) {
  *shifts = row.a->type == Type::kU8 && a == Type::kI8 && !row.IsTile();
  return (row.a->type == a || *shifts) && row.b->type == b;
}

}  // namespace

std::vector<Dot> FindDots(const Contraction& contraction, const CpuMachine& machine) {
  std::vector<Dot> dots;
  // Sums of products: no differences.
  if (!contraction.statement->code.value().Is(ExprKind::kAdd)) return dots;
  const Expr row = Uncast(contraction.row_operand), column = Uncast(contraction.column_operand);
  for (const isa::ProcessorInstruction& instruction : isa::ProcessorInstructions()) {
    Dot dot{.instruction = &instruction, .row_operand = row, .column_operand = column};
    const bool has_feature =
        std::count(machine.features.begin(), machine.features.end(), instruction.feature) > 0;
    const int64_t bytes = instruction.lanes * instruction.group * ir::ByteSize(instruction.b->type);
    if (!instruction.IsExact() || !has_feature || bytes != machine.vector_bytes ||
        contraction.element.type() != instruction.sums->type) {
      continue;
    }
    if (Takes(instruction, row.type(), column.type(), &dot.shifts_rows)) dots.push_back(dot);
  }
  return dots;
}

}  // namespace polynao::poly
