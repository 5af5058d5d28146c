#include "simulator/energy/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace polynao::simulator {
namespace {

using testing::HasSubstr;

TEST(Scaling, IsThatOfThePaper) {
  // Its example, from 65 nm at 1.3 V: the factor of 65 nm is 2.604.
  const ScaleFactors to_45 = ScaleBetween({65, 1.3}, {45, 0.9}).value();
  EXPECT_NEAR(to_45.energy, (1.103 * 0.81 - 0.362 * 0.9 + 0.2767) / 2.604, 1e-3);
  EXPECT_NEAR(to_45.area, 1 / 1.5, 1e-9);
}

TEST(Scaling, ThereAndBackIsOne) {
  for (double from : {130.0, 65.0, 45.0, 28.0, 16.0, 7.0}) {
    for (double to : {90.0, 50.0, 22.0, 12.0}) {
      const ScaleFactors there = ScaleBetween({from, 1.0}, {to, 0.8}).value();
      const ScaleFactors back = ScaleBetween({to, 0.8}, {from, 1.0}).value();
      EXPECT_NEAR(there.energy * back.energy, 1, 1e-12);
      EXPECT_NEAR(there.area * back.area, 1, 1e-12);
      EXPECT_NEAR(there.leakage_per_area(), there.energy / there.area, 1e-12);
    }
  }
}

TEST(Scaling, SmallerNodesTakeLess) {
  double energy = 1e9, area = 1e9;
  for (double node : {130.0, 100.0, 90.0, 65.0, 60.0, 45.0, 28.0, 20.0, 16.0, 10.0, 7.0}) {
    const ScaleFactors factors = ScaleBetween({45, 0.9}, {node, 0.9}).value();
    EXPECT_LT(factors.energy, energy) << node;
    EXPECT_LT(factors.area, area) << node;
    energy = factors.energy;
    area = factors.area;
  }
}

TEST(Scaling, HigherSuppliesAreFaster) {
  // The polynomial of 45 nm.
  EXPECT_NEAR(DelayOf({45, 0.9}).value(), -285.7 * 0.729 + 1239 * 0.81 - 1795 * 0.9 + 898.8, 1e-9);
  for (double node : {130.0, 90.0, 65.0, 45.0, 32.0, 28.0, 14.0, 10.0, 7.0}) {
    double before = DelayOf({node, 0.5}).value();
    for (double volts = 0.55; volts < 1.25; volts += 0.05) {
      const double delay = DelayOf({node, volts}).value();
      EXPECT_GT(delay, 0) << node << " " << volts;
      EXPECT_LT(delay, before) << node << " " << volts;
      before = delay;
    }
  }
}

TEST(Scaling, ASupplyIsTheLeastThatMeetsTheClock) {
  for (double node : {65.0, 45.0, 28.0, 16.0, 7.0}) {
    const Process rated = {node, node >= 65 ? 1.0 : node >= 28 ? 0.9 : 0.7};
    EXPECT_NEAR(SupplyFor(rated, 1000, 1000, 0.5).value(), rated.volts, 1e-9) << node;
    double before = 0;
    for (double clock : {700.0, 800.0, 900.0, 1100.0, 1200.0}) {
      const double volts = SupplyFor(rated, 1000, clock, 0.5).value();
      EXPECT_GT(volts, before) << node << " " << clock;
      EXPECT_NEAR(DelayOf(rated).value() / DelayOf({node, volts}).value(), clock / 1000, 1e-6);
      before = volts;
    }
    // No less than is allowed, however slow the clock.
    EXPECT_EQ(SupplyFor(rated, 1000, 1, 0.6).value(), 0.6);
  }
  EXPECT_THAT(SupplyFor({65, 1.0}, 1000, 2000, 0.6).status().message(),
              testing::MatchesRegex("expected at most [0-9]+ MHz, which 65 nm meets at 1.3 V, "
                                    "found 2000"));
  EXPECT_THAT(SupplyFor({16, 0.8}, 1000, 9000, 0.6).status().message(),
              HasSubstr("16 nm meets at 0.9"));
}

TEST(Scaling, ErrorsSayWhatIsAllowed) {
  EXPECT_THAT(ScaleBetween({45, 0.9}, {5, 0.9}).status().message(), HasSubstr("expected 7 to 130"));
  EXPECT_THAT(ScaleBetween({180, 0.9}, {45, 0.9}).status().message(), HasSubstr("180 nm"));
  EXPECT_THAT(ScaleBetween({45, 0.9}, {45, 1.8}).status().message(),
              HasSubstr("expected 0.5 to 1.3"));
}

}  // namespace
}  // namespace polynao::simulator
