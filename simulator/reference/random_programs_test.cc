// The event-driven simulator against the clocked model on random programs and random machines, flat or with DRAM: all that both report is equal. A
// difference is shrunk and printed as assembly. POLYNAO_RANDOM_CASES=10000 runs more of them, POLYNAO_SEED=7 begins with that one.

#include <iostream>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/tensor.h"
#include "gtest/gtest.h"
#include "isa/actions.h"
#include "isa/program.h"
#include "simulator/reference/testing/compare.h"
#include "simulator/reference/testing/random_case.h"
#include "simulator/reference/testing/shrink.h"
#include "testing/fuzz.h"

namespace polynao::simulator::reference {
namespace {

// A program that takes longer says nothing more.
constexpr int64_t kMaxCycles = 200'000;

Comparison CompareCase(const RandomCase& c) {
  Comparison comparison;
  const absl::StatusOr<isa::Machine> machine = MachineOf(c);
  if (!machine.ok()) {
    comparison.error = machine.status();
    return comparison;
  }
  const auto program = isa::Assemble(isa::DianNao(), ProgramText(c, *machine), "random.nasm");
  if (!program.ok()) {
    comparison.error = program.status();
    return comparison;
  }
  ir::Tensor x(ir::Type::kI8, {kTensorBytes});
  return Compare(*machine, *program, {simulator::Argument::Of(&x)}, kMaxCycles);
}

bool Differs(const RandomCase& c) { return !CompareCase(c).difference.empty(); }

// The smallest case that differs like `c`, as a person wants to read it.
std::string Explain(const RandomCase& c) {
  const RandomCase smallest = Shrink(c, Differs);
  return absl::StrCat(CompareCase(smallest).difference, "machine ", smallest.machine, " with ",
                      absl::StrJoin(smallest.overrides, " "), "\n",
                      ProgramText(smallest, *MachineOf(smallest)));
}

TEST(RandomProgramsTest, BothModelsReportTheSame) {
  const int64_t count = FuzzCases(500);
  const uint64_t first = FuzzSeed();
  int64_t deadlocks = 0, too_long = 0;
  std::map<std::string, int64_t> sums;
  isa::ActionCounts actions;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const RandomCase c = MakeRandomCase(seed);
    const Comparison comparison = CompareCase(c);
    if (!comparison.difference.empty()) {
      FAIL() << "POLYNAO_RANDOM_CASES=1 POLYNAO_SEED=" << seed << ", shrunk:\n" << Explain(c);
    }
    if (absl::IsDeadlineExceeded(comparison.error)) {
      ++too_long;
    } else if (!comparison.error.ok()) {
      // Any other error would be a program that tests nothing.
      ++deadlocks;
      ASSERT_NE(std::string(comparison.error.message()).find("deadlock"), std::string::npos)
          << "POLYNAO_SEED=" << seed << ": " << comparison.error;
    }
    for (const auto& [name, value] : comparison.result.Rows()) sums[name] += value;
    actions.Add(comparison.result.actions);
  }
  std::cout << count << " programs, " << sums["instructions"] << " instructions, "
            << sums["end_cycle"] << " cycles; " << deadlocks << " deadlocks, " << too_long
            << " stopped after " << kMaxCycles << " cycles; no difference\n";
  if (count < 100) return;
  EXPECT_LT((deadlocks + too_long) * 20, count);
  // Everything that can be counted happens.
  std::erase_if(sums, [](const auto& row) { return row.first.starts_with("actions."); });
  EXPECT_EQ(sums.size(), 9 + 9 + 12 + 7 + 11);
  EXPECT_GT(actions.Rows().size(), 20u);
  for (const auto& [name, sum] : sums) {
    // Syncs and barriers wait instead.
    if (name != "control.busy") EXPECT_GT(sum, 0) << name;
  }
}

}  // namespace
}  // namespace polynao::simulator::reference
