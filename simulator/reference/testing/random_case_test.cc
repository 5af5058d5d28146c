#include "simulator/reference/testing/random_case.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/machine_rows.h"
#include "isa/program.h"
#include "simulator/reference/testing/random_machine.h"

namespace polynao::simulator::reference {
namespace {

TEST(RandomCaseTest, EveryCaseIsAProgramForItsMachine) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomCase c = MakeRandomCase(seed);
    const auto machine = MachineOf(c);
    ASSERT_TRUE(machine.ok()) << "seed " << seed << ": " << machine.status();
    const std::string text = ProgramText(c, *machine);
    const auto program = isa::Assemble(isa::DianNao(), text, "random.nasm");
    ASSERT_TRUE(program.ok()) << "seed " << seed << ": " << program.status();
    EXPECT_EQ(text, ProgramText(MakeRandomCase(seed), *machine)) << "seed " << seed;
  }
}

TEST(RandomCaseTest, EveryParameterIsDrawn) {
  std::set<std::string> drawn;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const auto& names = MachineNames();
    for (const std::string& text : RandomOverrides(random, names[seed % names.size()])) {
      drawn.insert(text.substr(0, text.find('=')));
    }
  }
  for (const isa::ParameterRow& row : isa::MachineRows()) {
    EXPECT_NE(drawn.contains(row.name), IsOfEnergyAlone(row.name)) << row.name;
  }
}

}  // namespace
}  // namespace polynao::simulator::reference
