#include "compiler/passes/promote.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> Promoted(ir::Function& function) { return Promote(function); }

std::string After(const std::string& body) {
  return RunPass(
      "func f(A: f32[40, 40], B: f32[40, 40], C: f32[40, 40], D: i32[8], n: i32) {\n"
      "  if (n < 5) {\n  if (-3 < n) {\n" +
          body + "}\n}\n}\n",
      Promoted, TestTarget());
}

TEST(PromoteTest, TileOfAProduct) {
  const std::string text = After(
      "for (k, 0, n) {\n"
      "  unroll (i, 0, 4) {\n"
      "    vectorize (j, 2, 8) {\n"
      "      C[i + 1, j * 2] = C[i + 1, j * 2] + A[i, k + 3] * B[k + 3, j]\n"
      "    }\n"
      "  }\n"
      "}\n");
  EXPECT_THAT(
      text,
      HasSubstr("      allocate C.tile: f32[4, 8]\n"
                "      if (0 < n) {\n"
                "        unroll (i.in, 0, 4) {\n"
                "          vectorize (j.in, 2, 8) {\n"
                "            C.tile[i.in, j.in - 2] = C[i.in + 1, j.in * 2]\n"
                "          }\n"
                "        }\n"
                "        for (k, 0, n) {\n"
                "          unroll (i, 0, 4) {\n"
                "            vectorize (j, 2, 8) {\n"
                "              C.tile[i, j - 2] = C.tile[i, j - 2] + A[i, k + 3] * B[k + 3, j]\n"
                "            }\n"
                "          }\n"
                "        }\n"
                "        unroll (i.out, 0, 4) {\n"
                "          vectorize (j.out, 2, 8) {\n"
                "            C[i.out + 1, j.out * 2] = C.tile[i.out, j.out - 2]\n"
                "          }\n"
                "        }\n"
                "      }\n"));
}

// The outermost loop that the elements do not depend on; two buffers; a loop that is known to run.
TEST(PromoteTest, OutermostLoop) {
  const std::string text = After(
      "for (x, 0, 3) {\n"
      "  for (k, 0, 2) { for (l, 0, 5) { unroll (i, 0, 4) {\n"
      "    C[x * 4 + i, 0] = C[x * 4 + i, 0] + A[k, l]\n"
      "    B[i, x] = B[i, x] * A[l, k]\n"
      "  } } }\n"
      "}\n");
  EXPECT_THAT(
      text,
      HasSubstr(
          "for (x, 0, 3) {\n        allocate B.tile: f32[4]\n        allocate C.tile: f32[4]\n"
          "        unroll (i.in, 0, 4) {\n"));
  EXPECT_THAT(text, Not(HasSubstr("if (0 <")));
  // Around a loop that may not run there are elements that no iteration stores.
  EXPECT_THAT(
      After("for (k, 0, 4) { for (l, 0, n) { unroll (i, 0, 4) { C[i, 0] = C[i, 0] + A[l, k] } } }"),
      HasSubstr("for (k, 0, 4) {\n        allocate C.tile: f32[4]\n        if (0 < n) {\n"));
}

// Other elements of the buffer, which no iteration stores: rows k < n, in the elimination of row n by them.
TEST(PromoteTest, ElementsThatAreNeverStored) {
  EXPECT_THAT(After("for (k, 0, min(n, 5)) { vectorize (j, 0, 8) {\n"
                    "  C[n, j + 5] = C[n, j + 5] - C[n, k] * C[k, j]\n"
                    "} }\n"),
              HasSubstr("C.tile[j] = C.tile[j] - C[n, k] * C[k, j]"));
  EXPECT_THAT(After("for (k, 0, 4) { unroll (i, 0, 4) {\n"
                    "  C[n, i] = C[n, i] + C[n + k + 1, 0]\n"
                    "} }\n"),
              HasSubstr("C.tile[i] = C.tile[i] + C[n + k + 1, 0]"));
  for (
      const char* body : {
          // A row that is stored, an element that is stored, by the same statement and by another one.
          "for (k, 0, min(n, 3) + 1) { unroll (i, 0, 4) { C[n, i] = C[n, i] + C[k, i + 1] } }",
          "for (k, 0, 4) { unroll (i, 0, 4) { C[n, i] = C[n, i] + C[n, k + 3] } }",
          "for (k, 0, 4) { unroll (i, 0, 4) { C[4, i] = C[4, i] + C[3, i] C[3, k] = 1.0 } }",
      }) {
    EXPECT_THAT(After(body), Not(HasSubstr(".tile"))) << body;
  }
}

TEST(PromoteTest, OthersStay) {
  for (
      const char* body : {
          // Other indices; indices of the loop; a loop that is not unrolled.
          "for (k, 0, 4) { unroll (i, 0, 4) { C[i, 0] = C[i + 1, 0] + A[i, k] } }",
          "for (k, 0, 4) { unroll (i, 0, 4) { C[i, k] = C[i, k] + A[i, k] } }",
          "for (k, 0, 4) { for (i, 0, 4) { C[i, 0] = C[i, 0] + A[i, k] } }",
          "for (k, 0, 4) { unroll (i, 0, 0) { C[i, 0] = C[i, 0] + A[i, k] } }",
          // A condition, an element that two iterations share, a place that is loaded, one that a let binds.
          "for (k, 0, 4) { unroll (i, 0, 4) { if (i < n) { C[i, 0] = C[i, 0] + A[i, k] } } }",
          "for (k, 0, 4) { unroll (i, 0, 4) { unroll (j, 0, 4) { C[i + j, 0] = C[i + j, 0] + A[i, "
          "j] } } }",
          "for (k, 0, 4) { unroll (i, 0, 4) { C[i / 2, 0] = C[i / 2, 0] + A[i, k] } }",
          "for (k, 0, 4) { unroll (i, 0, 4) { let a: i32 = k + i C[a, i] = C[a, i] + A[i, k] } }",
          // No store; too large; parallel iterations; an extent that is loaded; a buffer of the tile's size.
          "for (k, 0, 4) { unroll (i, 0, 4) { C[k, i] = C[k, i] + A[i, 0] } }",
          "for (k, 0, 4) { unroll (i, 0, 40) { unroll (j, 0, 40) { C[i, j] = C[i, j] + A[i, j] } } "
          "}",
          "for (k, 0, 4) { parallel (p, 0, 1) { unroll (i, 0, 4) { C[i, 0] = C[i, 0] + A[i, k] } } "
          "}",
          "for (k, 0, min(max(D[0], 0), 3)) { unroll (i, 0, 4) { C[i, 0] = C[i, 0] + A[i, k] } }",
          "allocate T: f32[4] unroll (a, 0, 4) { T[a] = 1.0 } for (k, 0, 4) { unroll (i, 0, 4) { "
          "T[i] = T[i] + "
          "A[i, k] } } C[0, 0] = T[n + 2 - (n + 2)]",
      }) {
    EXPECT_THAT(After(body), Not(HasSubstr(".tile"))) << body;
  }
  EXPECT_THAT(RunPass("@may_alias(\"A\", \"B\")\n"
                      "func f(A: f32[4], B: f32[4]) {\n"
                      "  for (k, 0, 4) { unroll (i, 0, 4) { A[i] = A[i] + B[k] } }\n"
                      "}\n",
                      Promoted, TestTarget()),
              Not(HasSubstr(".tile")));
}

// Nests of loops of all kinds, in any order, around updates of elements with indices that are sums of a few variables.
std::string RandomNest(std::mt19937_64& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  std::string text =
      "func f(A: i32[40, 40], B: i32[40, 40], C: i32[40, 40], n: i32) {\nif (n < 4) {\n";
  const int loops = 2 + pick(4);
  for (int i = 0; i < loops; ++i) {
    const char* kind = pick(3) == 0 ? "for" : pick(2) == 0 ? "unroll" : "vectorize";
    absl::StrAppend(&text, kind, " (v", i, ", ", pick(3), ", ",
                    pick(6) == 0 ? "n" : absl::StrCat(pick(12) == 0 ? 0 : 1 + pick(4)), ") {\n");
    if (pick(8) == 0) absl::StrAppend(&text, "if (v", pick(i + 1), " < 2) {\n");
  }
  const auto index = [&] {
    std::string sum = absl::StrCat("v", pick(loops));
    if (pick(3) == 0) absl::StrAppend(&sum, " * ", 1 + pick(3));
    if (pick(3) == 0) absl::StrAppend(&sum, " + v", pick(loops));
    if (pick(4) == 0) absl::StrAppend(&sum, " + ", pick(4));
    if (pick(6) == 0) absl::StrAppend(&sum, " + 12");
    return sum;
  };
  const auto element = [&](char buffer) {
    return absl::StrCat(std::string(1, buffer), "[", index(), ", ", index(), "]");
  };
  for (int i = 1 + pick(2); i > 0; --i) {
    const std::string target = element("ABC"[pick(3)]);
    absl::StrAppend(&text, target, " = ", target, " * 3 + ", element("ABC"[pick(3)]), "\n");
  }
  int open = 0;
  for (char c : text) open += c == '{' ? 1 : c == '}' ? -1 : 0;
  for (; open > 0; --open) text += "}";
  return text + "\n";
}

// POLYNAO_RANDOM_CASES=100000 runs more, POLYNAO_SEED=7 others.
TEST(PromoteTest, RandomNestsKeepTheirMeaning) {
  const uint64_t seed = FuzzSeed();
  SCOPED_TRACE(absl::StrCat("POLYNAO_SEED=", seed));
  std::mt19937_64 random(seed);
  int changed = 0;
  const int cases = static_cast<int>(FuzzCases(1500));
  for (int i = 0; i < cases; ++i) {
    const std::string text = RandomNest(random);
    const ir::Function before = ParseProgram(text);
    ir::Function after = before;
    absl::StatusOr<bool> promoted = Promote(after);
    ASSERT_TRUE(promoted.ok()) << promoted.status();
    changed += *promoted ? 1 : 0;
    for (const int64_t n : {-2, 0, 1, 3}) {
      ASSERT_EQ(CompareMeaning(before, after, n), "") << "case " << i << "\n"
                                                      << text << ir::Print(after);
    }
    ir::Function again = after;
    ASSERT_FALSE(*Promote(again)) << text << ir::Print(after) << ir::Print(again);
  }
  EXPECT_GT(changed, cases / 40);
}

}  // namespace
}  // namespace polynao
