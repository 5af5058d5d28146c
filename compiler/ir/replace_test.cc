#include "compiler/ir/replace.h"

#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

TEST(ReplaceTest, WhatStandsInPlaceIsLeftAsItIs) {
  Context c;
  const Var x = c.NewVar("x", Type::kI32), y = c.NewVar("y", Type::kI32);
  const Expr sum = x + y;
  EXPECT_EQ(Print(Replace(sum * (sum + x), {{sum, x}, {x, y}})), "x * (x + y)");
  EXPECT_EQ(Replace(sum, {{x * y, x}}), sum);
}

// Each of 60 sums has the one before twice: 2^60 paths.
TEST(ReplaceTest, SharedPartsAreRebuiltOnce) {
  Context c;
  const Var x = c.NewVar("x", Type::kF32), y = c.NewVar("y", Type::kF32);
  Expr of_x = x, of_y = y;
  for (int i = 0; i < 60; ++i) of_x = of_x * of_x, of_y = of_y * of_y;
  EXPECT_EQ(Replace(of_x, {{x, y}}), of_y);
}

TEST(UsesBufferTest, LoadsStoresAndAddresses) {
  const auto parsed = ParseFunction(
      "func f(A: f32[4] in, B: f32[4] out, C: f32[4] in) {\n"
      "  for (i, 0, 4) { if (A[i] < 1.0) { B[i] = 2.0 } }\n"
      "}\n",
      "f.nir");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(UsesBuffer(parsed->body, parsed->params[0].buffer));
  EXPECT_TRUE(UsesBuffer(parsed->body, parsed->params[1].buffer));
  EXPECT_FALSE(UsesBuffer(parsed->body, parsed->params[2].buffer));
}

}  // namespace
}  // namespace polynao::ir
