#include "compiler/ir/aliases.h"

#include "base/check.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

TEST(AliasesTest, Groups) {
  const absl::StatusOr<Function> f = ParseFunction(
      "@may_alias(\"A\", \"B\") @may_alias(\"C\", \"D\") @may_alias(\"D\", \"E\")\n"
      "func f(A: i32[4], B: i32[4], C: i32[4], D: i32[4], E: i32[4], F: i32[4]) { A[0] = B[0] }\n");
  POLYNAO_CHECK(f.ok()) << f.status();
  const Aliases aliases(*f);
  const auto group = [&](size_t i) { return aliases.Group(f->params[i].buffer); };
  EXPECT_TRUE(group(0).has_value());
  EXPECT_EQ(group(0), group(1));
  EXPECT_NE(group(0), group(2));
  EXPECT_EQ(group(2), group(3));
  EXPECT_EQ(group(2), group(4));
  EXPECT_FALSE(group(5).has_value());
  for (size_t i = 0; i < 5; ++i) EXPECT_LT(*group(i), aliases.group_count());
}

}  // namespace
}  // namespace polynao::ir
