#include "compiler/arith/logic.h"

#include <vector>

#include "compiler/arith/evaluate_for_test.h"
#include "compiler/arith/random_expr_for_test.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::Type;

TEST(LogicTest, ConjunctsAndConjunction) {
  Context context;
  const Expr p = context.NewVar("p", Type::kI1), q = context.NewVar("q", Type::kI1);
  const Expr r = context.NewVar("r", Type::kI1);
  const Expr e = ir::And(p, ir::And(ir::And(q, context.Bool(true)), ir::Or(p, r)));
  EXPECT_EQ(Conjuncts(e), (std::vector<Expr>{p, q, ir::Or(p, r)}));
  EXPECT_EQ(ir::Print(Conjunction(Conjuncts(e))), "p && q && (p || r)");
  EXPECT_TRUE(Conjuncts(context.Bool(true)).empty());
  EXPECT_EQ(Conjuncts(context.Bool(false)).size(), 1u);
  EXPECT_FALSE(static_cast<bool>(Conjunction({})));
}

TEST(LogicTest, NegationOfFloats) {
  Context context;
  const Expr x = context.NewVar("x", Type::kF32);
  const auto text = [](Expr e) { return ir::Print(Negation(e)); };
  EXPECT_EQ(text(x < x), "!(x < x)");
  EXPECT_EQ(text(x <= x), "!(x <= x)");
  EXPECT_EQ(text(ir::Eq(x, x)), "x != x");
  EXPECT_EQ(text(ir::Not(x < x)), "x < x");
}

// The negation has the other value at all values of i8, and stops where the condition does.
TEST(LogicTest, RandomNegationsAndTraps) {
  int traps = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Context context;
    RandomExpr random(context, seed, {Type::kI8}, /*may_trap=*/seed % 2 == 0);
    const Expr e = random.Bool(4);
    Evaluator evaluator(256);
    std::vector<int64_t> x, y;
    for (int64_t i = 0; i < 256; ++i) {
      x.push_back(i - 128);
      y.push_back(ir::WrapInt(Type::kI8, i * 37));
    }
    evaluator.Bind(random.free_vars()[0], x);
    evaluator.Bind(random.free_vars()[1], y);
    const Outcomes& before = evaluator.Of(e, Mode::kData);
    const Outcomes& after = evaluator.Of(Negation(e), Mode::kData);
    for (size_t p = 0; p < 256; ++p) {
      ASSERT_EQ(before[p].kind, after[p].kind) << ir::Print(e);
      if (before[p].kind == Outcome::kValue) {
        ASSERT_EQ(before[p].value, 1 - after[p].value) << ir::Print(e);
      } else {
        ASSERT_TRUE(CanTrap(e)) << ir::Print(e);
        ++traps;
      }
    }
  }
  EXPECT_GT(traps, 1000);
}

}  // namespace
}  // namespace polynao::arith
