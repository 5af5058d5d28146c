#include "compiler/mapping/estimate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::mapping {
namespace {

CostParts Some() {
  CostParts cost;
  cost.Phase("first load", 1), cost.Lane(), cost.Add("image", kGmem, 300);
  cost.Phase("nothing", 3), cost.Lane(), cost.Add("nothing", kLink, 0);
  cost.Phase("steps", 7);
  cost.Lane(), cost.Add("image", kGmem, 100);
  cost.Lane(), cost.Add("sums", kTensorUnit, 90), cost.Add("relu", kVectorUnit, 20);
  return cost;
}

TEST(CostPartsTest, APhaseTakesAsLongAsItsLongestLane) {
  EXPECT_EQ(CostParts().cycles(), 0);
  EXPECT_EQ(Some().cycles(), 300 + 7 * 110);
  CostParts twice = Some();
  twice.Append(Some());
  EXPECT_EQ(twice.cycles(), 2 * Some().cycles());
  CostParts beside;
  beside.Phase("both", 2), beside.Lane(), beside.Add("weights", kGmem, 1000);
  beside.LaneOfLongest(Some());
  EXPECT_EQ(beside.cycles(), 2 * Some().cycles());
  EXPECT_EQ(beside.Phases()[0].lanes[0].parts.size(), 3u) << "what is shorter is left out";
}

TEST(CostPartsTest, PhasesAndSharesAddUp) {
  const std::vector<CostParts::PhaseOf> phases = Some().Phases();
  ASSERT_EQ(phases.size(), 2u) << "a phase of no cycles is left out";
  EXPECT_EQ(phases[1].cycles(), 770);
  ASSERT_EQ(phases[1].lanes.size(), 2u);
  EXPECT_EQ(phases[1].lanes[0].parts[0].what, "sums") << "the longest first";
  double decides = 0;
  for (const CostParts::Share& share : Some().Shares()) {
    EXPECT_LE(share.decides, share.busy);
    decides += share.decides;
    if (share.resource == kGmem) EXPECT_EQ(share.busy, 1000);
  }
  EXPECT_EQ(decides, Some().cycles());
  EXPECT_EQ(Some().Binds(), kTensorUnit);
  EXPECT_EQ(CostParts().Binds(), "");
}

}  // namespace
}  // namespace polynao::mapping
