#include "compiler/passes/let_values.h"

#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

// The condition of the one if in `body`, expanded where it stands.
std::string Condition(const std::string& body) {
  const ir::Function function =
      ParseProgram("func f(A: i32[8], n: i32, m: i32) { for (i, 0, 8) { " + body + " } }");
  arith::Analyzer analyzer(*function.context);
  LetValues lets(analyzer);
  analyzer.BindLoop(function.body.var(), function.body.min(), function.body.extent());
  LetValues::Scope scope(lets);
  ir::Stmt s = function.body.body();
  for (; s.Is(ir::StmtKind::kLet); s = s.body()) lets.Bind(s);
  return ir::Print(lets.Expand(s.cond()));
}

TEST(LetValuesTest, ConditionsAndIndices) {
  EXPECT_EQ(Condition("let c: i1 = i < n && 3 <= i if (c) { A[i] = 1 }"), "i < n && 3 <= i");
  EXPECT_EQ(Condition("let j = i * 4 + 1 let c: i1 = j < n let d: i1 = c || n == 7"
                      " if (!d && i < 7) { A[i] = 1 }"),
            "!(i * 4 + 1 < n || n == 7) && i < 7");
}

// Evaluated again the value may be another one, stop the program, or not wrap.
TEST(LetValuesTest, OthersStay) {
  for (const std::string value : {"A[i] < 3", "5 / n < 3", "n + 1 < m", "i < 3 && A[0] == 1"}) {
    EXPECT_EQ(Condition("let c: i1 = " + value + " if (c) { A[i] = 1 }"), "c") << value;
  }
  EXPECT_EQ(Condition("let c: i8 = i8(i) if (c < 3) { A[i] = 1 }"), "c < 3");
}

TEST(LetValuesTest, ScopesForget) {
  const ir::Function function = ParseProgram(
      "func f(A: i32[8], n: i32) { let c: i1 = n < 3 { let d: i1 = n < 4 A[0] = i32(c) + i32(d) } "
      "}");
  const ir::Stmt outer = function.body, inner = outer.body();
  arith::Analyzer analyzer(*function.context);
  LetValues lets(analyzer);
  LetValues::Scope scope(lets);
  EXPECT_TRUE(lets.Bind(outer));
  const ir::Expr both = ir::And(outer.var(), inner.var());
  {
    LetValues::Scope inside(lets);
    EXPECT_TRUE(lets.Bind(inner));
    EXPECT_EQ(ir::Print(lets.Expand(both)), "n < 3 && n < 4");
  }
  EXPECT_EQ(ir::Print(lets.Expand(both)), "n < 3 && d");
}

}  // namespace
}  // namespace polynao
