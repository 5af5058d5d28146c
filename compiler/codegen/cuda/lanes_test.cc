#include "compiler/codegen/cuda/lanes.h"

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::Expr;

class LanesTest : public ::testing::Test {
 protected:
  // "first, step"; "-" if there is no such form.
  std::string Form(Expr e, int64_t n = 4) {
    const auto lanes = LanesOf(e, v_, n, lets_);
    return lanes ? ir::Print(lanes->first) + ", " + std::to_string(lanes->step) : "-";
  }
  ir::Context c_;
  ir::Var i_ = c_.NewVar("i");
  ir::Var v_ = c_.NewVar("v");
  ir::VarMap lets_;
};

TEST_F(LanesTest, Multiples) {
  EXPECT_TRUE(IsMultiple(i_ * 8 - 4, 4, lets_));
  EXPECT_TRUE(IsMultiple((i_ * 4) % 12, 4, lets_));
  EXPECT_TRUE(IsMultiple(c_.Cast(ir::Type::kI64, i_ * 4), 4, lets_));
  EXPECT_TRUE(IsMultiple(ir::Min(i_ * 4, c_.I32(8)), 4, lets_));
  EXPECT_FALSE(IsMultiple(i_ * 6, 4, lets_));
  EXPECT_FALSE(IsMultiple(i_, 4, lets_));
  EXPECT_FALSE(IsMultiple((i_ * 4) % 6, 4, lets_));
  EXPECT_FALSE(IsMultiple((i_ * 4) / 4, 4, lets_));
}

TEST_F(LanesTest, Forms) {
  EXPECT_EQ(Form(i_ * 4 + v_), "i * 4, 1");
  EXPECT_EQ(Form(i_ - v_ * 2), "i - 0 * 2, -2");
  EXPECT_EQ(Form(i_ * 7), "i * 7, 0");
  // Lanes of an aligned group share quotients by multiples of it.
  EXPECT_EQ(Form((i_ * 4 + v_) / 8), "i * 4 / 8, 0");
  EXPECT_EQ(Form((i_ * 4 + v_) % 12), "i * 4 % 12, 1");
  for (Expr e : {(i_ * 4 + v_) / 6, (i_ * 2 + v_) / 8, (i_ * 4 + v_ * 2) / 8, v_ * v_,
                 (i_ * 4 + v_) % -4, c_.Select(v_ < 2, i_, v_)}) {
    EXPECT_EQ(Form(e), "-") << ir::Print(e);
  }
}

// What a let stands for counts; its name stays in the form.
TEST_F(LanesTest, Lets) {
  const ir::Var t = c_.NewVar("t"), odd = c_.NewVar("odd");
  EXPECT_FALSE(IsMultiple(t, 4, lets_));
  lets_ = {{t, i_ * 8 + 4}, {odd, i_ * 8 + 2}};
  EXPECT_TRUE(IsMultiple(t, 4, lets_));
  EXPECT_TRUE(IsMultiple(t + i_ * 4, 4, lets_));
  EXPECT_FALSE(IsMultiple(t, 8, lets_));
  EXPECT_FALSE(IsMultiple(odd, 4, lets_));
  EXPECT_EQ(Form(t + v_), "t, 1");
  EXPECT_EQ(Form((t + v_) / 8), "t / 8, 0");
  EXPECT_EQ(Form((odd + v_) / 8), "-");
}

// Every form against the expression, lane by lane.
TEST_F(LanesTest, FormsAreRight) {
  for (Expr e : {i_ * 4 + v_, 3 - v_ + i_ * 8, (i_ * 4 + v_) / 8, (i_ * 4 - 8 + v_) % 12,
                 ((i_ * 4 + v_) % 16 + i_ * 32) / 4}) {
    const auto lanes = LanesOf(e, v_, 4, lets_);
    ASSERT_TRUE(lanes.has_value()) << ir::Print(e);
    for (int64_t i = -5; i < 20; ++i) {
      for (int64_t v = 0; v < 4; ++v) {
        const ir::IntValues values = {{i_, i}, {v_, v}};
        EXPECT_EQ(*ir::EvaluateInt(e, values),
                  *ir::EvaluateInt(lanes->first, values) + lanes->step * v)
            << ir::Print(e) << " at " << i << ", " << v;
      }
    }
  }
}

TEST_F(LanesTest, WideAccesses) {
  const ir::Buffer rows = c_.NewBuffer("A", ir::Type::kF32, {c_.I32(9), c_.I32(16)});
  const ir::Buffer odd = c_.NewBuffer("B", ir::Type::kF32, {c_.I32(9), c_.I32(15)});
  std::vector<Expr> first;
  EXPECT_TRUE(IsWide(rows, {i_, i_ * 4 + v_}, 0, v_, 4, lets_, &first));
  EXPECT_EQ(ir::Print(first[1]), "i * 4");
  EXPECT_FALSE(IsWide(odd, {i_, i_ * 4 + v_}, 0, v_, 4, lets_, &first));
  // The rows of a private copy are no part of its address.
  EXPECT_TRUE(IsWide(odd, {i_, i_ * 4 + v_}, 1, v_, 4, lets_, &first));
  EXPECT_FALSE(IsWide(rows, {i_, i_ * 4 + v_ * 2}, 0, v_, 4, lets_, &first));
  EXPECT_FALSE(IsWide(rows, {i_, i_ + v_}, 0, v_, 4, lets_, &first));
  EXPECT_FALSE(IsWide(rows, {v_, i_ * 4}, 0, v_, 4, lets_, &first));
  EXPECT_FALSE(IsWide(rows, {v_, i_ * 4 + v_}, 0, v_, 4, lets_, &first));
}

}  // namespace
}  // namespace polynao::codegen
