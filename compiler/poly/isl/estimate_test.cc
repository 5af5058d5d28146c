#include "compiler/poly/isl/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {
namespace {

double Estimated(const std::string& text) {
  const IslContext isl;
  return EstimateCount(isl::set(isl.ctx(), text));
}

TEST(EstimateTest, BoxesAreExact) {
  EXPECT_EQ(Estimated("{ S[] }"), 1);
  EXPECT_EQ(Estimated("{ S[i] : 5 <= i < 12 }"), 7);
  EXPECT_EQ(Estimated("{ S[i, j, k] : 0 <= i < 10 and -3 <= j < 4 and k = i + 2j }"), 70);
  EXPECT_EQ(Estimated("{ S[i] : 1 = 0 }"), 0);
  EXPECT_EQ(Estimated("{ S[i] : 0 <= 3i <= 10 }"), 4);
}

TEST(EstimateTest, TrianglesAndPyramids) {
  EXPECT_NEAR(Estimated("{ S[i, j] : 0 <= j < i < 1024 }"), 1024.0 * 1023 / 2, 0.1 * 1024 * 512);
  const double n = 1024;
  EXPECT_NEAR(Estimated("{ S[k, i, j] : 0 <= k < 1024 and 0 <= i, j < k }"), n * n * n / 3,
              0.1 * n * n * n);
  EXPECT_NEAR(Estimated("{ S[i, j, k] : 0 <= k < i < 1024 and k < j < 1024 }"), n * n * n / 3,
              0.1 * n * n * n);
}

TEST(EstimateTest, HullsOfUnions) {
  EXPECT_EQ(Estimated("{ S[i] : 0 <= i < 4 or 6 <= i < 10 }"), 10);
}

TEST(EstimateTest, WithoutBounds) {
  EXPECT_TRUE(std::isinf(Estimated("{ S[i, j] : i > 0 and 0 <= j < 4 }")));
}

}  // namespace
}  // namespace polynao::poly
