#include "isa/granularity.h"

#include "gtest/gtest.h"
#include "isa/instruction_set.h"

namespace polynao::isa {
namespace {

TEST(Granularity, VectorInstructionsCountInGroups) {
  int rows = 0;
  for (const Instruction& instruction : DianNao().instructions()) {
    if (instruction.unit != Unit::kVector) continue;
    for (const Constraint& constraint : instruction.constraints) {
      if (!constraint.text.starts_with("count % ")) continue;
      EXPECT_EQ(constraint.text, "count % " + std::to_string(kVectorGroup) + " == 0")
          << instruction.mnemonic;
      ++rows;
    }
  }
  EXPECT_GT(rows, 50);
}

TEST(Granularity, TensorInstructionsReadAlignedImagesAndWeights) {
  int rows = 0;
  for (const Instruction& instruction : DianNao().instructions()) {
    if (instruction.unit != Unit::kTensor) continue;
    for (const Constraint& constraint : instruction.constraints) {
      const bool is_source = constraint.text.starts_with("&src") ||
                             constraint.text.starts_with("&weights") ||
                             constraint.text.starts_with("pitch * ");
      if (!is_source) continue;
      EXPECT_TRUE(constraint.text.ends_with("% " + std::to_string(kTensorUnitAlignment) + " == 0"))
          << instruction.mnemonic << ": " << constraint.text;
      ++rows;
    }
  }
  EXPECT_GE(rows, 24);
}

TEST(Granularity, TensorInstructionsHaveABankForEachLane) {
  int rows = 0;
  for (const Instruction& instruction : DianNao().instructions()) {
    if (instruction.unit != Unit::kTensor) continue;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind != OperandKind::kAddress || operand.space != Space::kWmem) continue;
      const ir::Expr banks = instruction.meaning.params[operand.param].buffer->extents[0];
      ASSERT_TRUE(banks.Is(ir::ExprKind::kIntImm)) << instruction.mnemonic;
      EXPECT_EQ(banks.int_value(), kTensorLanes) << instruction.mnemonic;
      ++rows;
    }
  }
  EXPECT_GE(rows, 8);
}

}  // namespace
}  // namespace polynao::isa
