#include "isa/levels.h"

#include <gtest/gtest.h>

namespace polynao::isa {
namespace {

TEST(Levels, MemoriesHaveNames) {
  for (int i = 0; i < kSpaceCount; ++i) {
    const Space space = static_cast<Space>(i);
    EXPECT_EQ(ParseSpace(SpaceName(space)), space);
  }
  EXPECT_EQ(ParseSpace("shared"), std::nullopt);
  EXPECT_EQ(ParseSpace(""), std::nullopt);
}

TEST(Levels, AxesNumberTheUnitsOfALevel) {
  EXPECT_EQ(LevelOfAxis("cid"), Level::kCluster);
  EXPECT_EQ(LevelOfAxis("tid"), Level::kCore);
  EXPECT_EQ(LevelOfAxis("blockIdx.x"), std::nullopt);
}

TEST(Levels, MemoriesBelongToLevels) {
  EXPECT_EQ(LevelOf(Space::kGmem), Level::kCard);
  EXPECT_EQ(LevelOf(Space::kSmem), Level::kCluster);
  EXPECT_EQ(LevelOf(Space::kNmem), Level::kCore);
  EXPECT_EQ(LevelOf(Space::kWmem), Level::kCore);
}

}  // namespace
}  // namespace polynao::isa
