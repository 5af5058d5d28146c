#include "compiler/arith/order.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

// Whether a < b in `A[b] = A[a]`, the store inside of the loops.
bool IsLessIn(const std::string& loops, const std::string& a, const std::string& b) {
  const absl::StatusOr<ir::Function> f = ir::ParseFunction(absl::StrCat(
      "func f(A: f32[999], n: i64, p: i64, q: i64) { ", loops, " A[", b, "] = A[", a, "] ",
      std::string(static_cast<size_t>(std::count(loops.begin(), loops.end(), '{')), '}'), " }"));
  EXPECT_TRUE(f.ok()) << f.status();
  Analyzer analyzer(*f->context);
  ir::Stmt s = f->body;
  for (; s.Is(ir::StmtKind::kFor); s = s.body()) BindLoopWithParts(analyzer, s);
  return IsLess(analyzer, s.value().operand(0), s.indices()[0]);
}

TEST(OrderTest, BoundsOfSeveralParts) {
  const std::string to_min = "for (i: i64, p, min(q + 7, n - 1) - p + 1) {";
  EXPECT_TRUE(IsLessIn(to_min, "i", "n"));
  EXPECT_TRUE(IsLessIn(to_min, "i", "q + 8"));
  EXPECT_FALSE(IsLessIn(to_min, "i", "n - 1"));
  EXPECT_FALSE(IsLessIn(to_min, "i", "q + 7"));
  const std::string from_max = "for (i: i64, max(p + 1, max(q, 5)), n) {";
  EXPECT_TRUE(IsLessIn(from_max, "p", "i"));
  EXPECT_TRUE(IsLessIn(from_max, "q - 1", "i"));
  EXPECT_TRUE(IsLessIn(from_max, "i64(4)", "i"));
  EXPECT_FALSE(IsLessIn(from_max, "q", "i"));
  const std::string both = "for (i: i64, 0, min(n, p)) { for (j: i64, max(i + 1, q), n) {";
  EXPECT_TRUE(IsLessIn(both, "i", "j"));
  EXPECT_TRUE(IsLessIn(both, "i", "max(n, q) + j"));
  EXPECT_FALSE(IsLessIn(both, "j", "i"));
  EXPECT_FALSE(IsLessIn(both, "i", "min(n, q) + j"));
}

// The end of a loop over u32 may be 2^32, which no sum of u32 is: with n = 2^32 - 2 and q = 2 the last value is
// 2^32 - 1.
TEST(OrderTest, EndsThatWrapAreNoBounds) {
  const absl::StatusOr<ir::Function> f = ir::ParseFunction(
      "func f(A: u32[9], n: u32, q: u32) { for (i: u32, n, min(q, 4)) { A[n + q] = A[i] } }");
  ASSERT_TRUE(f.ok()) << f.status();
  Analyzer analyzer(*f->context);
  BindLoopWithParts(analyzer, f->body);
  const ir::Stmt store = f->body.body();
  EXPECT_FALSE(IsLess(analyzer, store.value().operand(0), store.indices()[0]));
}

}  // namespace
}  // namespace polynao::arith
