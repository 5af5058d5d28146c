#include "base/median.h"

#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 100, 2}), 3);
}

}  // namespace
}  // namespace polynao
