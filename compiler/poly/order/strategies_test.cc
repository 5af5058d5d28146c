#include "compiler/poly/order/strategies.h"

#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

TEST(StrategiesTest, AreFoundByTheirNames) {
  for (const NamedStrategy& strategy : Strategies()) {
    EXPECT_EQ(FindStrategy(strategy.name), &strategy);
    EXPECT_EQ(IsFusion(strategy.name), strategy.is_fusion) << strategy.name;
    EXPECT_NE(strategy.doc, "") << strategy.name;
    // isl's scheduler makes the order, or a step of its own that the flags tell.
    EXPECT_NE(strategy.isl.has_value(), strategy.expands_scalars || strategy.name == "text")
        << strategy.name;
  }
  EXPECT_EQ(FindStrategy("best"), nullptr);
  EXPECT_FALSE(IsFusion("best"));
}

TEST(StrategiesTest, NamesByFlag) {
  EXPECT_EQ(StrategyNames(), "none, original, min, smart, max, auto, fuse, overlap, text");
  EXPECT_EQ(StrategyNames(&NamedStrategy::is_fusion), "fuse, overlap");
  EXPECT_EQ(StrategyNames(&NamedStrategy::is_search),
            "original, min, smart, max, auto, fuse, overlap");
}

}  // namespace
}  // namespace polynao::poly
