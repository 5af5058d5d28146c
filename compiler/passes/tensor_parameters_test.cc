#include "compiler/passes/tensor_parameters.h"

#include <random>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::Type;
using ir::Var;
using ir::VarMap;

class TensorParametersTest : public testing::Test {
 protected:
  Var Param(std::string_view name) {
    problem_.parameters.push_back(c_.NewVar(name, Type::kI64));
    return problem_.parameters.back();
  }
  void Equal(Expr pattern, int64_t value) { Equal(pattern, c_.I64(value)); }
  void Equal(Expr pattern, Expr value) {
    problem_.equations.push_back({pattern, value});
    for (Var var : problem_.parameters) problem_.uses[var] += ir::UsesVar(pattern, var);
  }

  // The first values that `accept` takes: "a=1 b=2", or why there are none.
  std::string Solution(const std::function<bool(const VarMap&)>& accept = [](const VarMap&) {
    return true;
  }) {
    std::string text;
    std::string why;
    arith::Analyzer analyzer(c_);
    const bool solved = SolveParameters(
        problem_, analyzer,
        [&](const VarMap& values) {
          if (!accept(values)) return false;
          for (Var var : problem_.parameters) {
            const Expr value = values.at(var);
            StrAppend(
                &text, text.empty() ? "" : " ", var.name(), "=",
                value.Is(ir::ExprKind::kIntImm) ? StrCat(value.int_value()) : ir::Print(value));
          }
          return true;
        },
        &why);
    return solved ? text : StrCat("none: ", why);
  }

  ir::Context c_;
  ParameterProblem problem_;
};

TEST_F(TensorParametersTest, OneUnknownAfterTheOther) {
  const Var a = Param("a"), b = Param("b"), d = Param("d");
  Equal(a * b * d, 30);
  Equal(d, 5);
  Equal(b * d, 15);
  EXPECT_EQ(Solution(), "a=2 b=3 d=5");
}

TEST_F(TensorParametersTest, EquationsThatContradict) {
  const Var a = Param("a"), b = Param("b");
  Equal(a, 4);
  Equal(a * b, 6);
  EXPECT_EQ(Solution(), "none: 'a * b' would have to be 6");
}

TEST_F(TensorParametersTest, ZeroStrides) {
  const Var a = Param("a"), b = Param("b");
  Equal(a, 4);
  Equal(a * b, 0);
  EXPECT_EQ(Solution(), "a=4 b=0");
  Equal(b * 7, 7);
  EXPECT_EQ(Solution(), "none: 'b * 7' would have to be 7");
}

TEST_F(TensorParametersTest, QuotientsTakeTheSmallest) {
  const Var co = Param("co"), wo = Param("wo");
  Equal(co / 64, 2);
  EXPECT_EQ(Solution(), "co=128 wo=0");
  // Another equation decides before, and has to agree.
  Equal(wo * co, 384);
  Equal(wo, 3);
  EXPECT_EQ(Solution(), "co=128 wo=3");
  Equal(co, 130);
  EXPECT_EQ(Solution(), "none: 'wo * co' would have to be 384");
}

TEST_F(TensorParametersTest, SharedFactorsTryDivisors) {
  const Var sh = Param("sh"), dh = Param("dh"), wi = Param("wi");
  Equal(sh * wi, 60);
  Equal(dh * wi, 36);
  EXPECT_EQ(Solution(), "sh=60 dh=36 wi=1");
  EXPECT_EQ(Solution([&](const VarMap& values) { return values.at(wi).int_value() > 3; }),
            "sh=15 dh=9 wi=4");
  EXPECT_EQ(Solution([&](const VarMap& values) { return values.at(wi).int_value() > 6; }),
            "sh=5 dh=3 wi=12");
  EXPECT_EQ(Solution([&](const VarMap& values) { return values.at(wi).int_value() > 12; }),
            "none: ");
}

TEST_F(TensorParametersTest, WhatIsLeftOpenTakesTheSmallestThatConditionsAllow) {
  const Var k = Param("k"), pitch = Param("pitch"), bank = Param("bank"), free = Param("free");
  problem_.conditions = {pitch >= k * 3, ir::Eq(pitch * 2 % 64, c_.I64(0)), bank >= pitch * 2,
                         pitch < bank};
  Equal(k, 20);
  EXPECT_EQ(Solution(), StrCat("k=20 pitch=64 bank=128 ", free.name(), "=0"));
}

TEST_F(TensorParametersTest, RunTimeValues) {
  const Var n = c_.NewVar("n");
  const Expr wide = c_.Cast(Type::kI64, n);
  const Var rows = Param("rows"), count = Param("count"), stride = Param("stride");
  Equal(rows, wide);
  Equal(count * 4, wide * 4);
  Equal(stride * rows, wide * 3);
  EXPECT_EQ(Solution(), "none: 'stride * rows' would have to be cast(i64, n) * 3");
  problem_.equations.pop_back();
  EXPECT_EQ(Solution(), "rows=cast(i64, n) count=cast(i64, n) stride=0");
}

// Whatever a convolution's numbers are, its strides give numbers with the same strides.
TEST_F(TensorParametersTest, RandomConvolutions) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Var sh = Param("sh"), sw = Param("sw"), dh = Param("dh"), dw = Param("dw"),
            wi = Param("wi"), ci = Param("ci");
  for (int round = 0; round < 300; ++round) {
    VarMap truth;
    for (Var var : problem_.parameters) {
      truth[var] = c_.I64(1 + static_cast<int64_t>(random() % 12));
    }
    problem_.equations.clear();
    arith::Analyzer analyzer(c_);
    for (Expr stride : {sh * wi * ci, sw * ci, dh * wi * ci, dw * ci, ci}) {
      const Expr value = BindParameters(stride, truth, problem_.parameters, analyzer);
      // ci alone must be known; the others may be missing.
      if (stride == ci || random() % 4 != 0) Equal(stride, value);
    }
    const bool solved = SolveParameters(
        problem_, analyzer,
        [&](const VarMap& values) {
          for (const ParameterEquation& equation : problem_.equations) {
            EXPECT_EQ(BindParameters(equation.pattern, values, problem_.parameters, analyzer),
                      equation.value);
          }
          return true;
        },
        nullptr);
    EXPECT_TRUE(solved);
  }
}

TEST_F(TensorParametersTest, WidenedReachesSums) {
  const Var n = c_.NewVar("n");
  const Expr e = c_.Cast(Type::kI64, ir::Max(n * 4 - 1, c_.I32(0)));
  EXPECT_EQ(ir::Print(Widened(e)), "max(cast(i64, n) * 4 - 1, 0)");
  // i8 arithmetic wraps anywhere.
  const Expr narrow = c_.Cast(Type::kI64, c_.Cast(Type::kI8, n) + 1);
  EXPECT_EQ(Widened(narrow), narrow);
}

}  // namespace
}  // namespace polynao
