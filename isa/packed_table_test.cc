#include "isa/packed_table.h"

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/instructions_text.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

std::string Describe(const Operand& o) {
  return o.name + " " + std::to_string(static_cast<int>(o.kind)) + " " +
         std::string(ir::TypeName(o.type)) + " " + std::string(SpaceName(o.space)) + " " +
         std::to_string(o.is_written) + std::to_string(o.is_read) + std::to_string(o.is_target) +
         " " + std::to_string(o.bit) + " " + std::to_string(o.bits) + " " + std::to_string(o.param);
}

// What a build has packed and what parsing the table gives are the same.
TEST(PackedTableTest, TheBuiltInSetIsItsText) {
  const auto parsed =
      InstructionSet::Load({{"isa/instructions.nir", std::string(InstructionsText())}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const InstructionSet& packed = DianNao();
  EXPECT_EQ(packed.parameter_names(), (*parsed)->parameter_names());
  ASSERT_EQ(packed.instructions().size(), (*parsed)->instructions().size());
  uint32_t last_a = 0, last_b = 0;
  for (size_t i = 0; i < packed.instructions().size(); ++i) {
    const Instruction& a = packed.instructions()[i];
    const Instruction& b = (*parsed)->instructions()[i];
    SCOPED_TRACE(b.mnemonic);
    EXPECT_EQ(ir::Print(a.meaning), ir::Print(b.meaning));
    EXPECT_EQ(a.mnemonic, b.mnemonic);
    EXPECT_EQ(a.family, b.family);
    EXPECT_EQ(a.form_of, b.form_of);
    EXPECT_EQ(a.variant, b.variant);
    EXPECT_EQ(a.doc, b.doc);
    EXPECT_EQ(a.opcode, b.opcode);
    EXPECT_EQ(a.variant_code, b.variant_code);
    EXPECT_EQ(a.index, static_cast<int>(i));
    EXPECT_EQ(a.unit, b.unit);
    EXPECT_EQ(a.queue, b.queue);
    EXPECT_EQ(a.waits, b.waits);
    EXPECT_EQ(ir::Print(a.cost), ir::Print(b.cost));
    EXPECT_EQ(a.drains, b.drains);
    EXPECT_EQ(a.barrier, b.barrier);
    EXPECT_EQ(a.lanewise, b.lanewise);
    EXPECT_EQ(packed.FindCode(b.opcode, b.variant_code), &a);
    EXPECT_EQ(packed.Find(b.mnemonic), &a);
    EXPECT_EQ(packed.HasNativeRoutine(a), (*parsed)->HasNativeRoutine(b));
    ASSERT_EQ(a.operands.size(), b.operands.size());
    for (size_t o = 0; o < a.operands.size(); ++o) {
      EXPECT_EQ(Describe(a.operands[o]), Describe(b.operands[o]));
    }
    ASSERT_EQ(a.constraints.size(), b.constraints.size());
    for (size_t c = 0; c < a.constraints.size(); ++c) {
      EXPECT_EQ(a.constraints[c].text, b.constraints[c].text);
      EXPECT_EQ(ir::Print(a.constraints[c].condition), ir::Print(b.constraints[c].condition));
    }
    // Who sorts expressions by their ids finds them in one order.
    EXPECT_EQ(a.cost.id() < last_a, b.cost.id() < last_b);
    last_a = a.cost.id();
    last_b = b.cost.id();
  }
}

TEST(PackedTableTest, ErrorsNameFileAndLine) {
  const auto message = [](std::string_view text) {
    return std::string(PackTable(text, "t.nir").status().message());
  };
  EXPECT_THAT(message("@variants(T) func f(A: i64[1]) { A[0] = 1 }"), HasSubstr("t.nir:1: "));
  EXPECT_THAT(message("\n\nfunc f(A: i64[1]) { A[0] = B[0] }"), HasSubstr("t.nir:3:"));
  EXPECT_THAT(message("\nfunc f(A: i64[1]) { A[0, 1] = 1 }"), HasSubstr("t.nir:2"));
}

}  // namespace
}  // namespace polynao::isa
