// The examples of "A loop invariant code motion technique for deep learning compiler" as printed: its
// listings, expressions, figures and costs, on every target that has licm.
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/hoist_if.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

struct Ran {
  std::string text;
  std::string explanations;
};

struct Step {
  PassInfo pass;
  OptionValues options = {};
};

// `function` after the steps, as `nao opt --target=.. --passes=.. --explain` runs them.
Ran RunOn(const std::string& target, const std::vector<Step>& steps, const std::string& function) {
  Ran ran;
  ir::Function f = ParseOrDie(function);
  const Target chosen = target == "diannao" ? TestTarget() : Target{.name = target};
  std::vector<std::string> explanations;
  for (const Step& step : steps) {
    const absl::StatusOr<bool> changed =
        step.pass.run(f, {.target = chosen, .explanations = &explanations}, step.options);
    EXPECT_TRUE(changed.ok()) << changed.status();
    EXPECT_TRUE(ir::Verify(f).ok()) << ir::Verify(f);
  }
  for (const std::string& text : explanations) StrAppend(&ran.explanations, text);
  ran.text = ir::Print(f);
  return ran;
}

std::string Printed(const std::string& function) { return ir::Print(ParseOrDie(function)); }

// What the paper moves: everything that does not vary, of cost 1 or more.
const OptionValues kAll = {{"k", 1}, {"unrolled", 0}};
std::vector<Step> MoveAll() { return {{NormalizePass()}, {LicmPass(), kAll}}; }

class LicmPaperTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Targets, LicmPaperTest, testing::Values("cpu", "c", "cuda", "diannao"),
                         [](const auto& info) { return info.param; });

constexpr char kVectorAdd[] = R"(
func add(A: f32[128], B: f32[128], C: f32[128]) {
for(i.outer: int32, 0, 4){
  for(i.inner: int32, 0, 32) {
    C[(i.outer * 32) + i.inner] =
      A[(i.outer * 32) + i.inner] +
      B[(i.outer * 32) + i.inner] } }
})";

// Section I: i.outer * 32 goes between the first and the second loop.
TEST_P(LicmPaperTest, SectionIVectorAdd) {
  EXPECT_EQ(RunOn(GetParam(), MoveAll(), kVectorAdd).text, Printed(R"(
func add(A: f32[128], B: f32[128], C: f32[128]) {
  for (i.outer, 0, 4) {
    let inv_i.outer: i32 = i.outer * 32
    for (i.inner, 0, 32) {
      C[inv_i.outer + i.inner] = A[inv_i.outer + i.inner] + B[inv_i.outer + i.inner]
    }
  }
})"));
}

// In the pipelines the same arithmetic is left to LLVM, the C compiler and nvcc, and --explain says so.
TEST(LicmPaperTest, SectionILeftToTheCompilerBehind) {
  for (const char* target : {"cpu", "c", "cuda"}) {
    const Ran ran = RunOn(target, {{NormalizePass()}, {LicmPass(), {{"leave", 1}}}}, kVectorAdd);
    EXPECT_EQ(ran.text, Printed(kVectorAdd)) << target;
    EXPECT_EQ(ran.explanations,
              "i.outer * 32  stays in  for (i.inner, 0, 32) {: left to the compiler behind, which "
              "moves arithmetic by itself\n")
        << target;
  }
}

// Section II-A: the product of matrices as it is first translated.
TEST_P(LicmPaperTest, SectionIIAMatmul) {
  EXPECT_EQ(RunOn(GetParam(), MoveAll(), R"(
func matmul(A: f32[1048576] in, B: f32[1048576] in, C: f32[1048576]) {
for (x, 0, 1024){
  for (y, 0, 1024){
    C[x*1024+y] = 0
    for (k, 0, 1024){
      C[x*1024+y] = C[x*1024+y] +
        A[x*1024 + k] * B[k*1024 + y] } } }
})")
                .text,
            Printed(R"(
func matmul(A: f32[1048576] in, B: f32[1048576] in, C: f32[1048576]) {
  for (x, 0, 1024) {
    let inv_x: i32 = x * 1024
    for (y, 0, 1024) {
      C[inv_x + y] = 0.0
      let inv_x_y: i32 = inv_x + y
      for (k, 0, 1024) {
        C[inv_x_y] = C[inv_x_y] + A[inv_x + k] * B[y + k * 1024]
      }
    }
  }
})"));
}

// Section II-A after tile, split and reorder; section II-B names what then does not vary in the innermost
// loop: xo*32768 + xi*1024 + yo*32.
TEST_P(LicmPaperTest, SectionIIATiledMatmul) {
  EXPECT_EQ(RunOn(GetParam(), MoveAll(), R"(
func matmul(A: f32[1048576] in, B: f32[1048576] in, C: f32[1048576]) {
for (xo, 0, 32) {
  for (yo, 0, 32) {
    for (xi.init, 0, 32) {
      for (yi.init, 0, 32) {
        C[xo*32768+xi.init*1024+yo*32+yi.init] = 0 } }
    for (ko, 0, 32) {
      for (ki, 0, 32) {
        for (xi, 0, 32) {
          for (yi, 0, 32) {
            C[xo*32768+xi*1024+yo*32+yi] =
              C[xo*32768+xi*1024+yo*32+yi] +
              A[xo*32768+xi*1024+ko*32+ki] *
              B[ko*32768+ki*1024+yo*32+yi] } } } } } }
})")
                .text,
            Printed(R"(
func matmul(A: f32[1048576] in, B: f32[1048576] in, C: f32[1048576]) {
  for (xo, 0, 32) {
    let inv_xo: i32 = xo * 32768
    for (yo, 0, 32) {
      {
        let inv_xo_yo: i32 = inv_xo + yo * 32
        for (xi.init, 0, 32) {
          let inv_xo_yo_xi.init: i32 = inv_xo_yo + xi.init * 1024
          for (yi.init, 0, 32) {
            C[inv_xo_yo_xi.init + yi.init] = 0.0
          }
        }
      }
      let inv_xo_yo_1: i32 = inv_xo + yo * 32
      let inv_yo: i32 = yo * 32
      for (ko, 0, 32) {
        let inv_xo_ko: i32 = inv_xo + ko * 32
        let inv_yo_ko: i32 = inv_yo + ko * 32768
        for (ki, 0, 32) {
          let inv_xo_ko_ki: i32 = inv_xo_ko + ki
          let inv_yo_ko_ki: i32 = inv_yo_ko + ki * 1024
          for (xi, 0, 32) {
            let inv_xo_yo_xi: i32 = inv_xo_yo_1 + xi * 1024
            let inv_A: f32 = A[inv_xo_ko_ki + xi * 1024]
            for (yi, 0, 32) {
              C[inv_xo_yo_xi + yi] = C[inv_xo_yo_xi + yi] + inv_A * B[inv_yo_ko_ki + yi]
            }
          }
        }
      }
    }
  }
})"));
}

// The same on smaller matrices, whose values are compared.
TEST(LicmPaperTest, SectionIIATiledMatmulComputesTheSame) {
  const auto both = [](ir::Function& f) -> absl::StatusOr<bool> {
    const Target cuda{.name = "cuda"};
    LicmOptions options = LicmOptionsFor(cuda);
    options.threshold = 1;
    options.unrolled_extent = 0;
    const absl::StatusOr<bool> normalized = Normalize(f, cuda);
    const absl::StatusOr<bool> moved = Licm(f, cuda, options);
    return *normalized || *moved;
  };
  EXPECT_THAT(
      RunPass("func matmul(C: i32[64], D: i32[64] in, E: i32[64] in) {\n"
              "for (xo, 0, 2) { for (yo, 0, 2) { for (ko, 0, 2) { for (ki, 0, 4) { for (xi, 0, 4) {"
              " for (yi, 0, 4) {"
              " C[xo * 32 + xi * 8 + yo * 4 + yi] = C[xo * 32 + xi * 8 + yo * 4 + yi] +"
              " D[xo * 32 + xi * 8 + ko * 4 + ki] * E[ko * 32 + ki * 8 + yo * 4 + yi] "
              "} } } } } } }",
              both, TestTarget()),
      HasSubstr("C[inv_xo_yo_xi + yi] = C[inv_xo_yo_xi + yi] + inv_D * E[inv_yo_ko_ki + yi]"));
}

// Section III-C, expressions 1 and 2, figure 2: of which only i is a loop variable. Before, the parts that
// do not vary are 3 < j and j < 56; afterwards their conjunction is one. As algorithm 2 says, and other
// than expression 2 shows, what has the lowest rank comes first: && then evaluates the rest only if it
// must.
std::string Loop(const std::string& store) {
  return StrCat("func f(B: f32[99], C: i32[99], j: i32) { for (i, 0, 99) { ", store, " } }");
}

TEST_P(LicmPaperTest, Figure2Expressions1And2) {
  const std::string one =
      Loop("if ((((3 < i) && (3 < j)) && (i < 56)) && (j < 56)) { B[i] = 1.0 }");
  EXPECT_EQ(RunOn(GetParam(), {{NormalizePass()}}, one).text,
            Printed(Loop("if ((3 < j && j < 56) && (3 < i && i < 56)) { B[i] = 1.0 }")));
  EXPECT_EQ(RunOn(GetParam(), MoveAll(), one).text,
            Printed("func f(B: f32[99], C: i32[99], j: i32) { let inv_j = 3 < j && j < 56"
                    " for (i, 0, 99) { if (inv_j && (3 < i && i < 56)) { B[i] = 1.0 } } }"));
  // Without normalization two values move.
  EXPECT_THAT(RunOn(GetParam(), {{LicmPass(), kAll}}, one).text,
              testing::AllOf(HasSubstr("= 3 < j\n"), HasSubstr("= j < 56\n")));
}

// Expressions 3 and 4, figure 3.
TEST_P(LicmPaperTest, Figure3Expressions3And4) {
  const std::string three =
      Loop("C[i] = (((3 < i) && (3 < j)) ? ((i < 56) && (j < 56)) ? 1 : 0 : 0)");
  EXPECT_EQ(RunOn(GetParam(), {{NormalizePass()}}, three).text,
            Printed(Loop("C[i] = ((3 < j && j < 56) && (3 < i && i < 56)) ? 1 : 0")));
  EXPECT_THAT(RunOn(GetParam(), MoveAll(), three).text,
              HasSubstr("let inv_j: i1 = 3 < j && j < 56"));
}

// Algorithm 2, ifconcat: neighbouring branches of one condition.
TEST_P(LicmPaperTest, Algorithm2Ifconcat) {
  EXPECT_EQ(RunOn(GetParam(), {{NormalizePass()}},
                  Loop("if (i < j) { B[i] = 1.0 } if (i < j) { C[i] = 2 }"))
                .text,
            Printed(Loop("if (i < j) { B[i] = 1.0 C[i] = 2 }")));
}

// Section III-A: HoistIfThenElse comes after; a branch whose condition does not vary leaves its loop.
TEST_P(LicmPaperTest, SectionIIIAHoistIfThenElse) {
  EXPECT_EQ(RunOn(GetParam(), {{HoistIfPass()}}, Loop("if (3 < j) { B[i] = 1.0 }")).text,
            Printed("func f(B: f32[99], C: i32[99], j: i32) {"
                    " if (3 < j) { for (i, 0, 99) { B[i] = 1.0 } } }"));
}

// Section III-D: with cost(+) = 1 and cost(/) = 3, x/1024+y costs 4, so it moves for K = 4 and stays for 5.
TEST(LicmPaperTest, SectionIIIDCost) {
  const std::string before =
      "func f(A: i32[64], x: i32, y: i32) { for (i, 0, 64) { A[i] = (x/1024+y) * i } }";
  const auto after = [&](int k) {
    const LicmOptions options = {
        {.simple = 1, .divide = 3, .divide_by_power = 3, .threshold = k, .unrolled_extent = 0}};
    return RunPass(
        before, [&](ir::Function& f) { return Licm(f, TestTarget(), options); }, TestTarget());
  };
  EXPECT_EQ(after(4), Printed("func f(A: i32[64], x: i32, y: i32) { let inv_x_y = x / 1024 + y"
                              " for (i, 0, 64) { A[i] = inv_x_y * i } }"));
  EXPECT_EQ(after(5), Printed(before));
}

// Section III-D: the cost is 0 in loops of few iterations, which nvcc unrolls.
TEST(LicmPaperTest, SectionIIIDShortLoops) {
  const std::string text =
      "func f(A: i32[8], x: i32, y: i32) { for (i, 0, 8) { A[i] = (x/y+y) * i } }";
  EXPECT_EQ(RunOn("cuda", {{LicmPass(), {{"k", 1}}}}, text).text, Printed(text));
  EXPECT_THAT(
      RunOn("cuda", {{LicmPass(), {{"k", 1}}}}, text).explanations,
      HasSubstr("x / y + y  stays in  for (i, 0, 8) {: the compiler behind unrolls the loop"));
  EXPECT_THAT(RunOn("cuda", {{LicmPass(), kAll}}, text).text, HasSubstr("let inv_x_y"));
}

}  // namespace
}  // namespace polynao
