#include "simulator/reference/testing/random_case.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/program.h"

namespace polynao::simulator::reference {
namespace {

TEST(RandomCaseTest, EveryCaseIsAProgramForItsMachine) {
  std::set<std::string> families, overrides;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomCase c = MakeRandomCase(seed);
    const auto machine = MachineOf(c);
    ASSERT_TRUE(machine.ok()) << "seed " << seed << ": " << machine.status();
    const std::string text = ProgramText(c, *machine);
    const auto program = isa::Assemble(isa::DianNao(), text, "random.nasm");
    ASSERT_TRUE(program.ok()) << "seed " << seed << ": " << program.status();
    EXPECT_EQ(text, ProgramText(MakeRandomCase(seed), *machine)) << "seed " << seed;
    for (const isa::Word& word : program->code) {
      families.insert(isa::DianNao().Decode(word)->instruction->family);
    }
    for (const std::string& text : c.overrides) overrides.insert(text.substr(0, text.find('=')));
  }
  for (const char* family : {"memcpy", "memcpy3d", "load", "store", "sync", "barrier", "adds",
                             "reduce_sum", "conv", "matmul_acc", "div", "bne"}) {
    EXPECT_TRUE(families.contains(family)) << family;
  }
  EXPECT_GT(overrides.size(), 35u);
}

}  // namespace
}  // namespace polynao::simulator::reference
