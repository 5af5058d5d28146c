// The event-driven simulator against the clocked model on random programs and random machines: all that both report is
// equal. A difference is shrunk and printed as assembly. POLYNAO_RANDOM_CASES=10000 runs more of them, POLYNAO_SEED=7
// begins with that one; random_twin_run goes on for as long as one likes.

#include <iostream>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "simulator/reference/testing/random_machine.h"
#include "simulator/reference/testing/twin_run.h"
#include "testing/fuzz.h"

namespace polynao::simulator::reference {
namespace {

// Rows of the instruction table that random programs cannot execute, each with the reason.
const std::map<std::string, std::string>& NeverExecuted() {
  static const auto* rows = new std::map<std::string, std::string>{};
  return *rows;
}

TEST(RandomProgramsTest, BothModelsReportTheSame) {
  // So many that each row of the table has its turn twice.
  const int64_t usual = std::ssize(isa::DianNao().instructions()) / 2;
  TwinRunOptions options;
  options.first_seed = FuzzSeed();
  options.programs = FuzzCases(usual);
  const TwinTally tally = RunTwin(options);
  for (const TwinFinding& finding : tally.findings) {
    ADD_FAILURE() << "POLYNAO_RANDOM_CASES=1 POLYNAO_SEED=" << finding.seed << ": " << finding.what;
  }
  std::cout << tally.ToString(options) << "\n";
  EXPECT_EQ(tally.count("programs"), options.programs);
  if (options.programs < usual) return;
  EXPECT_LT((tally.count("deadlocks") + tally.count("too long")) * 20, options.programs);
  for (const std::string& row : tally.RowsNeverIssued()) {
    EXPECT_TRUE(NeverExecuted().contains(row)) << row << " was never executed";
  }
  for (const auto& [row, reason] : NeverExecuted()) {
    EXPECT_EQ(tally.count("row " + row), 0) << "executed in spite of: " << reason;
  }
  for (const std::string& machine : MachineNames()) {
    EXPECT_GT(tally.count("machine " + machine), options.programs / 20) << machine;
  }
  EXPECT_GT(tally.count("timing alone"), options.programs / 4);
  // Everything that can be counted happens: of programs, paths between memories, units, waits, and DRAM.
  int64_t sums = 0, actions = 0;
  for (const auto& [name, sum] : tally.counts) {
    if (!name.starts_with("sum ")) continue;
    const bool is_action = name.starts_with("sum actions.");
    ++(is_action ? actions : sums);
    // Syncs and barriers wait instead.
    if (!is_action && name != "sum control.busy") EXPECT_GT(sum, 0) << name;
  }
  EXPECT_EQ(sums, 9 + 9 + 12 + 7 + 12);
  EXPECT_GT(actions, 20);
}

TEST(RandomProgramsTest, TheSameInSmallerBatches) {
  TwinRunOptions options;
  options.programs = 6;
  const TwinTally one = RunTwin(options);
  options.batch = 4;
  const TwinTally two = RunTwin(options);
  EXPECT_EQ(one.counts, two.counts);
  EXPECT_EQ(two.count("programs"), 6);
}

}  // namespace
}  // namespace polynao::simulator::reference
