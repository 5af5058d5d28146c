#include "benchmarks/name_filter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

bool Passes(const std::string& filter, const std::string& name) {
  const absl::StatusOr<NameFilter> created = NameFilter::Create(filter);
  EXPECT_TRUE(created.ok()) << created.status();
  return created.ok() && created->Passes(name);
}

TEST(NameFilterTest, TextsAndExpressions) {
  EXPECT_TRUE(Passes("", "conv2d_nchw/1"));
  EXPECT_TRUE(Passes("nchw/1", "conv2d_nchw/12"));
  EXPECT_FALSE(Passes("nchw/2", "conv2d_nchw/12"));
  EXPECT_TRUE(Passes("^conv2d_nchw/[1-9]$", "conv2d_nchw/7"));
  EXPECT_FALSE(Passes("^conv2d_nchw/[1-9]$", "conv2d_nchw/12"));
  // As a text, whatever it means as an expression.
  EXPECT_TRUE(Passes("a+b", "x/a+b"));
}

TEST(NameFilterTest, MalformedExpression) {
  const absl::StatusOr<NameFilter> created = NameFilter::Create("a(");
  EXPECT_THAT(std::string(created.status().message()),
              ::testing::HasSubstr("--filter='a(': expected a text or a regular expression"));
}

}  // namespace
}  // namespace polynao::benchmarks
