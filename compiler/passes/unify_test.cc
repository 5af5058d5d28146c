#include "compiler/passes/unify.h"

#include <memory>
#include <string>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

std::string Text(const std::string& body) {
  return StrCat(
      "func f(A: i32[64], F: f32[64], L: i64[4], B: i8[4], x: i32, y: i32, z: i32, n: i32) {\n",
      body, "}\n");
}

std::string After(const std::string& body) {
  return RunPass(
      Text(body), [](ir::Function& f) -> absl::StatusOr<bool> { return UnifyEqualIntegers(f); },
      TestTarget());
}

TEST(UnifyTest, Pairs) {
  const struct {
    const char* what;
    const char* a;
    const char* b;
    const char* both;  // null: both stay
  } cases[] = {
      {"commutativity", "x + y", "y + x", "x + y"},
      {"of products", "x * y", "y * x", "x * y"},
      {"associativity", "(x + y) + z", "x + (y + z)", "x + y + z"},
      {"of products", "(x * y) * z", "x * (z * y)", "x * y * z"},
      {"distributivity, the shorter one wins", "x * y + x * z", "x * (y + z)", "x * (y + z)"},
      {"over constants", "4 * x + 12", "(x + 3) * 4", "4 * x + 12"},
      {"subtraction", "x - y + z", "z + x - y", "x - y + z"},
      {"powers", "(x + y) * (x + y)", "x * x + 2 * x * y + y * y", "(x + y) * (x + y)"},
      {"coefficients modulo 2^32", "x * 2147483647 * 2", "x * -2", "x * -2"},
      {"min", "min(x + y, z)", "min(z, y + x)", "min(x + y, z)"},
      {"inside a division", "(x + y) / 3", "(y + x) / 3", "(x + y) / 3"},
      {"inside a cast", "cast(i32, F[x % 4 + y % 4 + 8])", "cast(i32, F[y % 4 + x % 4 + 8])",
       "cast(i32, F[x % 4 + y % 4 + 8])"},
      {"inside a condition", "x + y == z ? 1 : 2", "z == y + x ? 1 : 2", "x + y == z ? 1 : 2"},
      {"differences are no sums", "x - y", "y - x", nullptr},
      {"divisions do not commute", "x / (y * y + 1)", "(y * y + 1) / (x * x + 1)", nullptr},
      {"terms that cancel could be divisions", "x + y - y", "x + z - z", nullptr},
      {"zero times", "x * 0 + y", "y + z * 0", nullptr},
      {"one variable more", "x + y + z", "x + y", nullptr},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(StrCat(c.what, ": ", c.a, " and ", c.b));
    const std::string before = StrCat("A[0] = ", c.a, "\nA[1] = ", c.b, "\n");
    const std::string expected =
        c.both == nullptr ? before : StrCat("A[0] = ", c.both, "\nA[1] = ", c.both, "\n");
    EXPECT_EQ(After(before), ir::Print(ParseOrDie(Text(expected))));
  }
}

// Narrow types wrap earlier: 3 * 100 is 44 in i8.
TEST(UnifyTest, NarrowTypes) {
  EXPECT_EQ(After("B[0] = B[1] * 100 * 3 B[2] = B[1] * 44"),
            ir::Print(ParseOrDie(Text("B[0] = B[1] * 44 B[2] = B[1] * 44"))));
}

// x * 4 - n * 4 and (x - n) * 4 are the same number, but the latter wraps later: as an index only
// where ranges are known.
TEST(UnifyTest, IndicesMustNotWrap) {
  const std::string unknown = "A[x * 4 - n * 4] = 1 A[(x - n) * 4] = 2";
  EXPECT_EQ(After(unknown), ir::Print(ParseOrDie(Text(unknown))));
  EXPECT_EQ(After("A[x + n] = 1 A[n + x] = 2"),
            ir::Print(ParseOrDie(Text("A[x + n] = 1 A[x + n] = 2"))));
  EXPECT_EQ(After("for (i, 0, 8) { for (j, 0, 8) { A[i * 4 + j * 4] = 1 A[(i + j) * 4] = 2 } }"),
            ir::Print(ParseOrDie(Text(
                "for (i, 0, 8) { for (j, 0, 8) { A[(i + j) * 4] = 1 A[(i + j) * 4] = 2 } }"))));
  // Nor does the index inside of an equal sum.
  const std::string inside = "A[0] = A[x * 4 - n * 4] + y A[1] = y + A[(x - n) * 4]";
  EXPECT_EQ(After(inside), ir::Print(ParseOrDie(Text(inside))));
}

TEST(UnifyTest, RandomPrograms) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 2000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ir::Function before = ir::RandomProgram(
        seed, {.stores = 4, .all_types = seed % 2 == 0, .max_iterations = 100, .repetition = 40});
    ir::Function after = ir::CloneInto(before, std::make_shared<ir::Context>());
    changed += UnifyEqualIntegers(after);
    bool stops = false;
    EXPECT_EQ(CompareMeaningOnRandomArguments(before, after, seed, &stops), "")
        << ir::Print(before) << ir::Print(after);
    EXPECT_FALSE(stops) << ir::Print(before);
  }
  EXPECT_GT(changed, 100);
}

}  // namespace
}  // namespace polynao
