#include "compiler/poly/isl/isl_tools.h"

#include <gtest/gtest.h>

namespace polynao::poly {
namespace {

TEST(IslToolsTest, TellsSpentOperationsFromMistakes) {
  IslContext isl;
  const auto intersect = [&](const char* a, const char* b) {
    return Guarded(isl, [&]() -> absl::Status {
      (void)isl::set(isl.ctx(), a).intersect(isl::set(isl.ctx(), b));
      return absl::OkStatus();
    });
  };
  EXPECT_EQ(intersect("{ A[i] : i > 0 }", "{ A[i] : i < 9 }"), absl::OkStatus());
  // Objects that do not fit together: no valid input leads there.
  EXPECT_TRUE(absl::IsInternal(intersect("{ A[i] : i > 0 }", "{ B[i, j] : i < 9 }")));
  for (unsigned long operations = 1; operations < 60; ++operations) {
    isl.Allow(operations);
    EXPECT_TRUE(absl::IsResourceExhausted(intersect("{ A[i] : i > 0 }", "{ A[i] : i < 9 }")))
        << operations;
    EXPECT_TRUE(isl.IsSpent());
  }
  isl.Allow(0);
  EXPECT_FALSE(isl.IsSpent());
  EXPECT_EQ(intersect("{ A[i] : i > 0 }", "{ A[i] : i < 9 }"), absl::OkStatus());
}

}  // namespace
}  // namespace polynao::poly
