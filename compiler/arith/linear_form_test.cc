#include "compiler/arith/linear_form.h"

#include <limits>

#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::Type;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

uint64_t ById(Expr e) { return e.id(); }

TEST(LinearFormTest, CollectsAndCancelsTerms) {
  Context context;
  const Expr x = context.NewVar("x"), y = context.NewVar("y");
  LinearForm form = LinearForm::Atom(y, 3);
  ASSERT_TRUE(form.AddTerm(x, 2) && form.AddTerm(y, -3) && form.AddConstant(7));
  LinearForm same = LinearForm::Constant(7);
  ASSERT_TRUE(same.AddTerm(x, 2));
  EXPECT_EQ(form, same);
  EXPECT_EQ(form.CoefficientOf(x), 2);
  EXPECT_EQ(form.CoefficientOf(y), 0);
  EXPECT_FALSE(form.IsAtom(x));
  ASSERT_TRUE(form.Add(same, -1));
  EXPECT_TRUE(form.IsConstant());
  EXPECT_EQ(form.constant(), 0);
  EXPECT_TRUE(LinearForm::Atom(x).IsAtom(x));
  EXPECT_TRUE(LinearForm::Atom(x, 0).IsConstant());
}

TEST(LinearFormTest, OrderOfConstructionDoesNotMatter) {
  Context context;
  const Expr x = context.NewVar("x"), y = context.NewVar("y"), z = context.NewVar("z");
  LinearForm a, b;
  ASSERT_TRUE(a.AddTerm(x, 1) && a.AddTerm(y, 2) && a.AddTerm(z, -3));
  ASSERT_TRUE(b.AddTerm(z, -3) && b.AddTerm(y, 2) && b.AddTerm(x, 1));
  EXPECT_EQ(a, b);
}

TEST(LinearFormTest, ReportsOverflow) {
  Context context;
  const Expr x = context.NewVar("x", Type::kI64);
  LinearForm form = LinearForm::Atom(x, kMax);
  EXPECT_FALSE(form.AddTerm(x, 1));
  form = LinearForm::Constant(kMax);
  EXPECT_FALSE(form.AddConstant(1));
  form = LinearForm::Atom(x, kMax / 2);
  EXPECT_FALSE(form.Scale(3));
  form = LinearForm::Atom(x, kMax / 2);
  EXPECT_TRUE(form.Scale(2));
}

TEST(LinearFormTest, CommonFactorLeavesTheConstantOut) {
  Context context;
  const Expr x = context.NewVar("x"), y = context.NewVar("y");
  LinearForm form = LinearForm::Constant(7);
  EXPECT_EQ(form.CommonFactor(), 0);
  ASSERT_TRUE(form.AddTerm(x, -12) && form.AddTerm(y, 18));
  EXPECT_EQ(form.CommonFactor(), 6);
}

TEST(LinearFormTest, WrapsToAType) {
  Context context;
  const Expr x = context.NewVar("x", Type::kI8), y = context.NewVar("y", Type::kI8);
  LinearForm form = LinearForm::Constant(200);
  ASSERT_TRUE(form.AddTerm(x, 256) && form.AddTerm(y, 257));
  LinearForm wrapped = LinearForm::Constant(-56);
  ASSERT_TRUE(wrapped.AddTerm(y, 1));
  EXPECT_EQ(form.WrappedTo(Type::kI8), wrapped);
}

TEST(LinearFormTest, PrintsReadableSums) {
  Context context;
  const Expr x = context.NewVar("x"), y = context.NewVar("y");
  auto print = [&](const LinearForm& form) {
    return SumExpr(context, Type::kI32, InPrintingOrder(form, ById), form.constant());
  };
  LinearForm form = LinearForm::Constant(-5);
  ASSERT_TRUE(form.AddTerm(x, -1) && form.AddTerm(y, 4));
  EXPECT_EQ(print(form), y * 4 - x - 5);
  EXPECT_EQ(print(LinearForm::Constant(3)), context.I32(3));
  LinearForm negated = LinearForm::Constant(9);
  ASSERT_TRUE(negated.AddTerm(x, -1));
  EXPECT_EQ(print(negated), 9 - x);
  // The smallest value has no negation of its type.
  const int64_t smallest = std::numeric_limits<int32_t>::min();
  LinearForm low = LinearForm::Constant(smallest);
  ASSERT_TRUE(low.AddTerm(x, 1));
  EXPECT_EQ(print(low), x + smallest);
}

}  // namespace
}  // namespace polynao::arith
