#include "benchmarks/nest_cycles.h"

#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

// A nest takes the operator's cycles; PolyBench's kernel and a product have no scalar stores.
TEST(NestCyclesTest, MeasuresPrograms) {
  CyclesSettings settings;
  settings.filter = "nest/add_1000|operator/add$|polybench/gesummv";
  const auto cases = MeasureNestCycles(settings);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 3);
  for (const CaseCycles& c : *cases) {
    EXPECT_EQ(c.failure, "") << c.name;
    EXPECT_EQ(c.scalar_stores, 0) << c.name;
    EXPECT_GT(c.bound, 0) << c.name;
    EXPECT_GE(c.cycles, c.bound) << c.name;
  }
  EXPECT_EQ((*cases)[0].cycles, (*cases)[2].cycles);
  settings.filter = "no such name";
  EXPECT_FALSE(MeasureNestCycles(settings).ok());
}

}  // namespace
}  // namespace polynao::benchmarks
