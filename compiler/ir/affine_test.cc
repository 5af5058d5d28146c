#include "compiler/ir/affine.h"

#include <gtest/gtest.h>

#include <map>

#include "base/check.h"
#include "compiler/ir/text.h"

namespace polynao::ir {
namespace {

int64_t Eval(Expr e, const std::map<std::string, int64_t>& env) {
  if (!e) return 0;
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return e.int_value();
    case ExprKind::kVar:
      return env.at(std::string(e.name()));
    case ExprKind::kCast:
      return Eval(e.operand(0), env);
    case ExprKind::kAdd:
      return Eval(e.operand(0), env) + Eval(e.operand(1), env);
    case ExprKind::kSub:
      return Eval(e.operand(0), env) - Eval(e.operand(1), env);
    case ExprKind::kMul:
      return Eval(e.operand(0), env) * Eval(e.operand(1), env);
    case ExprKind::kDiv:
      return Eval(e.operand(0), env) / Eval(e.operand(1), env);
    default:
      POLYNAO_UNREACHABLE(ExprKindName(e.kind()));
  }
}

struct Index {
  Function function;  // keeps the context
  Expr e;
  std::vector<Var> vars;
};

// `text` over loop variables i, j and scalars n, m.
Index Parse(const std::string& text) {
  auto f = ParseFunction(
      "func f(A: i64[n] out, n: i64, m: i64, k: i32) { for (i: i64, 0, n) { for (j: i64, 0, m) { "
      "for (q, 0, k) { A[" +
      text + "] = 0 } } } }");
  POLYNAO_CHECK(f.ok()) << f.status().message();
  Index index{.function = *f, .e = Expr(), .vars = {}};
  Stmt s = f->body;
  while (s.Is(StmtKind::kFor)) {
    index.vars.push_back(s.var());
    s = s.body();
  }
  index.e = s.indices()[0];
  return index;
}

TEST(Linearize, EqualsTheExpressionEverywhere) {
  for (const char* text :
       {"i", "7", "n", "i * n + j", "(i + 2) * n - 3 * j", "n * (m * (i - j) + 4)", "i - i",
        "n / m + i", "i64(q) * 3 + i", "-j + i", "(i + j) * (n + m) - n"}) {
    const Index index = Parse(text);
    const std::optional<Affine> affine = Linearize(index.e, index.vars);
    ASSERT_TRUE(affine) << text;
    for (int64_t i = -2; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        for (int64_t n = 4; n < 6; ++n) {
          const std::map<std::string, int64_t> env = {
              {"i", i}, {"j", j}, {"n", n}, {"m", 2}, {"q", 5}};
          int64_t sum = Eval(affine->constant, env);
          for (size_t v = 0; v < index.vars.size(); ++v) {
            sum += Eval(affine->coefficients[v], env) * env.at(std::string(index.vars[v].name()));
          }
          EXPECT_EQ(sum, Eval(index.e, env)) << text;
        }
      }
    }
  }
}

TEST(Linearize, LeavesOutWhatDoesNotOccur) {
  const Index index = Parse("i * 4");
  const std::optional<Affine> affine = Linearize(index.e, index.vars);
  ASSERT_TRUE(affine);
  EXPECT_TRUE(affine->coefficients[0].IsInt(4));
  EXPECT_FALSE(affine->coefficients[1]);
  EXPECT_FALSE(affine->constant);
}

TEST(Linearize, RefusesWhatIsNotLinear) {
  for (const char* text : {"i * j", "i / 2", "i % n", "min(i, n)", "A[i]", "A[0]", "n + A[n]",
                           "select(i < 1, i, n)", "i64(i32(i))"}) {
    const Index index = Parse(text);
    EXPECT_FALSE(Linearize(index.e, index.vars)) << text;
  }
}

}  // namespace
}  // namespace polynao::ir
