#include "simulator/reference/testing/shrink.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::simulator::reference {
namespace {

// A copy of four or more segments on some core, on a machine with shallow queues.
bool Fails(const RandomCase& c) {
  bool shallow = false;
  for (const std::string& override : c.overrides) shallow |= override == "core.queue_depth=1";
  for (const CoreOps& core : c.cores) {
    for (const auto& phase : core.phases) {
      for (const Op& op : phase) {
        if (shallow && op.mnemonic.starts_with("memcpy.") && op.args[3].value >= 4) return true;
      }
    }
  }
  return false;
}

TEST(ShrinkTest, LeavesWhatFailsAndNothingElse) {
  int shrunk = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomCase c = MakeRandomCase(seed);
    if (!Fails(c)) continue;
    ++shrunk;
    const RandomCase smallest = Shrink(c, Fails);
    ASSERT_TRUE(Fails(smallest)) << "seed " << seed;
    EXPECT_EQ(smallest.machine, "unit");
    EXPECT_THAT(
        smallest.overrides,
        testing::UnorderedElementsAre("core.queue_depth=1", "card.clusters=1", "cluster.cores=1"));
    EXPECT_TRUE(smallest.ends.empty());
    ASSERT_EQ(smallest.cores.size(), 1u);
    EXPECT_EQ(smallest.cores[0].cluster, 0);
    EXPECT_EQ(smallest.cores[0].core, 0);
    EXPECT_FALSE(smallest.cores[0].is_memory_core);
    ASSERT_EQ(smallest.cores[0].phases.size(), 1u);
    ASSERT_EQ(smallest.cores[0].phases[0].size(), 1u);
    const Op& op = smallest.cores[0].phases[0][0];
    EXPECT_LE(op.repeat, 1);
    for (size_t i = 0; i < op.args.size(); ++i) EXPECT_EQ(op.args[i].value, i == 3 ? 4 : 0) << i;
  }
  EXPECT_GT(shrunk, 0);
}

}  // namespace
}  // namespace polynao::simulator::reference
