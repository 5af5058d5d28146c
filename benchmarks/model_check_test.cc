#include "benchmarks/model_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

TEST(ModelCheckTest, RankCorrelation) {
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 30}, {2, 3, 4}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3}, {9, 5, 1}), -1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {2, 1, 4, 3}), 0.6);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 1, 2}, {1, 1, 2}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 1, 1}, {1, 2, 3}), 0);
}

TEST(ModelCheckTest, SimulatesSchedulesOfACase) {
  Suite suite;
  suite.cases = {{.op_class = "c", .op = "matmul", .shape = "64x64,256x64", .dtype = "i8"}};
  const auto checks = CheckModel(suite, {"stream=1"}, 6, {});
  ASSERT_TRUE(checks.ok()) << checks.status();
  ASSERT_EQ(checks->size(), 1);
  const ModelCheck& check = (*checks)[0];
  EXPECT_GT(check.schedules, 6);
  EXPECT_EQ(check.simulated, 6);
  EXPECT_EQ(check.failed, 0);
  EXPECT_GE(check.chosen, check.best);
  EXPECT_GT(check.best, 0);
  EXPECT_LE(check.rank, 1);
  EXPECT_THAT(ModelText(*checks), testing::HasSubstr("\"simulated\":6"));
}

}  // namespace
}  // namespace polynao::benchmarks
