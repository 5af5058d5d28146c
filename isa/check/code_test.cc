#include "isa/check/code.h"

#include "base/check.h"
#include "gtest/gtest.h"

namespace polynao::isa {
namespace {

CheckedCode CodeOf(std::string_view text) {
  const auto program = Assemble(DianNao(), text, "test.nasm");
  POLYNAO_CHECK(program.ok()) << program.status();
  return CheckedCode(DianNao(), *program);
}

TEST(CheckedCode, KnowsBranchesAndWhatReadsArguments) {
  const CheckedCode code = CodeOf("  arg r1, 0\n  beq r1, r0, 3\n  jump 0\n  halt\n");
  EXPECT_TRUE(code.at(0).reads_arguments);
  EXPECT_FALSE(code.at(0).writes_pc);
  EXPECT_TRUE(code.at(1).is_conditional);
  EXPECT_EQ(code.at(1).target, 3);
  EXPECT_FALSE(code.at(2).is_conditional);
  EXPECT_TRUE(code.at(3).writes_pc);
  EXPECT_TRUE(code.IsJoin(0) && code.IsJoin(2) && code.IsJoin(3));
  EXPECT_FALSE(code.IsJoin(1));
}

TEST(CheckedCode, BranchesMeetAgain) {
  // if and else, in a loop.
  const CheckedCode code = CodeOf(
      "again:\n  beq r1, r2, else\n  addi r3, r3, 1\n  jump behind\n"
      "else:\n  addi r4, r4, 1\n"
      "behind:\n  bne r3, r4, again\n  li r5, 1\n  halt\n");
  EXPECT_EQ(code.JoinOf(0), 4);
  EXPECT_EQ(code.JoinOf(4), 5);
  // Two ends, and no end.
  const CheckedCode ends = CodeOf("  beq r1, r2, 2\n  halt\n  halt\n");
  EXPECT_EQ(ends.JoinOf(0), 3);
  const CheckedCode endless = CodeOf("  beq r1, r2, 2\n  halt\n  jump 2\n");
  EXPECT_EQ(endless.JoinOf(0), 1);
}

}  // namespace
}  // namespace polynao::isa
