#include "docs/example_pass/unroll.h"

#include <map>
#include <string>

#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

// `runs`: whether the function runs to its end on some arguments, so that meanings can be compared.
std::string After(std::string_view text, bool runs = true) {
  return RunPass(text, [](ir::Function& f) { return Unroll(f, {4}); }, TestTarget(), runs);
}

TEST(UnrollTest, CopiesBodies) {
  EXPECT_EQ(After("func f(A: i32[6]) { unroll (i, 2, 3) { A[i] = A[i + 1] * i } }"),
            "func f(A: i32[6]) {\n"
            "  A[2] = A[2 + 1] * 2\n"
            "  A[3] = A[3 + 1] * 3\n"
            "  A[4] = A[4 + 1] * 4\n"
            "}\n");
}

// The verifier, which RunPass calls, refuses a second binding of i or L.
TEST(UnrollTest, CopiesBindTheirOwnNames) {
  After(
      "func f(A: i32[9]) { unroll (i, 0, 3) { for (j, 0, 3) { allocate L: i32[1]"
      " L[0] = i + j A[i * 3 + j] = L[0] } } }");
}

TEST(UnrollTest, NestedAndEmptyLoops) {
  EXPECT_EQ(After("func f(A: i32[4]) { unroll (i, 0, 2) { unroll (j, 0, 2) {"
                  " A[i * 2 + j] = 1 } unroll (k, 0, 0) { A[k] = 2 } } }"),
            "func f(A: i32[4]) {\n"
            "  A[0 * 2 + 0] = 1\n"
            "  A[0 * 2 + 1] = 1\n"
            "  A[1 * 2 + 0] = 1\n"
            "  A[1 * 2 + 1] = 1\n"
            "}\n");
}

// Loops that must stay: long, of unknown extent, of another kind, overflowing.
TEST(UnrollTest, OtherLoopsStay) {
  const std::map<std::string, bool> loops = {
      {"unroll (i, 0, 5)", true},        {"unroll (i, 0, n)", true},
      {"unroll (i, n, 2)", true},        {"for (i, 0, 2)", true},
      {"unroll (i: i8, 127, 2)", false}, {"unroll (i: i64, 9223372036854775807, 2)", false}};
  for (const auto& [loop, runs] : loops) {
    const std::string text =
        "func f(A: i32[8], n: i32) {\n  " + loop + " {\n    A[i] = 1\n  }\n}\n";
    EXPECT_EQ(After(text, runs), text);
  }
}

TEST(UnrollTest, RandomPrograms) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::string text = ir::Print(ir::RandomProgram(seed));
    changed += After(text) != text;
  }
  EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace polynao
