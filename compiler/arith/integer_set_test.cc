#include "compiler/arith/integer_set.h"

#include <functional>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/evaluate_for_test.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::Type;
using Truth = IntegerSets::Truth;

class IntegerSetTest : public testing::Test {
 protected:
  BoundedVar Bound(Expr var, int64_t min, int64_t extent) {
    return {var, context_.I32(min), context_.I32(extent)};
  }
  // "always / never" over the values of i in [0, last].
  std::string Split(Expr condition, int64_t last, std::vector<BoundedVar> others = {}) {
    const auto split = sets_.SplitByTruth(condition, i_, {0, last}, others);
    if (!split) return "unknown";
    return absl::StrCat(ToString(split->always), " / ", ToString(split->never));
  }

  Context context_;
  IntegerSets sets_;
  const Expr i_ = context_.NewVar("i"), j_ = context_.NewVar("j"), n_ = context_.NewVar("n");
};

// The example of the tensorization paper: 14 columns over 4 threads of 4 columns.
TEST_F(IntegerSetTest, FourteenColumnsOverFourThreads) {
  EXPECT_EQ(Split(i_ * 4 + j_ < 14, 3, {Bound(j_, 0, 4)}), "[0, 2] / none");
  EXPECT_EQ(Split(i_ < 2, 3), "[0, 1] / [2, 3]");
}

TEST_F(IntegerSetTest, IntervalAlgebra) {
  const Intervals a = {{0, 2}, {5, 9}}, b = {{2, 5}, {11, 12}};
  EXPECT_EQ(ToString(Union(a, b)), "[0, 9] [11, 12]");
  EXPECT_EQ(ToString(Union({{0, 2}}, {{3, 4}})), "[0, 4]");
  EXPECT_EQ(ToString(Intersect(a, b)), "[2, 2] [5, 5]");
  EXPECT_EQ(ToString(Complement(a, {-1, 11})), "[-1, -1] [3, 4] [10, 11]");
  EXPECT_EQ(ToString(Complement(a, {1, 6})), "[3, 4]");
  EXPECT_EQ(ToString(Complement({}, {1, 6})), "[1, 6]");
  EXPECT_TRUE(Contains(a, 5) && !Contains(a, 3) && !Contains({}, 0));
  constexpr int64_t kLeast = INT64_MIN, kGreatest = INT64_MAX;
  const Intervals ends = {{kLeast, kLeast + 2}, {kGreatest - 2, kGreatest}};
  EXPECT_EQ(Union(ends, ends), ends);
  EXPECT_EQ(Complement(ends, {kLeast, kGreatest}), (Intervals{{kLeast + 3, kGreatest - 3}}));
  EXPECT_EQ(Complement({{kLeast + 3, kGreatest - 3}}, {kLeast, kGreatest}), ends);
}

TEST_F(IntegerSetTest, AffineForms) {
  EXPECT_EQ(Split((i_ * 2 + 1) / 3 <= 2, 9), "[0, 3] / [4, 9]");
  EXPECT_EQ(Split(i_ % 4 < 2, 9), "[0, 1] [4, 5] [8, 9] / [2, 3] [6, 7]");
  EXPECT_EQ(Split(Min(i_ * 2, context_.I32(6)) < 5, 9), "[0, 2] / [3, 9]");
  EXPECT_EQ(Split(Or(i_ < 2, And(5 <= i_, i_ <= 6)), 9), "[0, 1] [5, 6] / [2, 4] [7, 9]");
  EXPECT_EQ(Split(Not(Eq(i_, context_.I32(3))), 4), "[0, 2] [4, 4] / [3, 3]");
  EXPECT_EQ(Split(context_.Select(i_ < 3, i_ + 10, i_) < 8, 9), "[3, 7] / [0, 2] [8, 9]");
  EXPECT_EQ(Split(context_.Cast(Type::kI64, i_) < 4, 9), "[0, 3] / [4, 9]");
}

TEST_F(IntegerSetTest, TriangularBounds) {
  // for j in [0, i + 1): j < 3
  const BoundedVar triangle = {j_, context_.I32(0), i_ + 1};
  EXPECT_EQ(Split(j_ < 3, 9, {triangle}), "[0, 2] / none");
  EXPECT_EQ(Split(j_ <= i_, 9, {triangle}), "[0, 9] / none");
  // for j in [i, 5): nothing at all for i >= 5, so anything may be said.
  EXPECT_EQ(Split(j_ < 2, 6, {{j_, i_, 5 - i_}}), "[5, 6] / [2, 6]");
}

TEST_F(IntegerSetTest, WhatIsNotAffineMayBeAnything) {
  const ir::Buffer a = context_.NewBuffer("A", Type::kI32, {context_.I32(16)});
  const ir::Buffer x = context_.NewBuffer("X", Type::kF32, {context_.I32(16)});
  EXPECT_EQ(Split(a(i_) < 3, 9), "none / none");
  EXPECT_EQ(Split(i_ * j_ < 3, 9, {Bound(j_, 0, 4)}), "none / none");
  EXPECT_EQ(Split(And(a(i_) < 3, i_ < 4), 9), "none / [4, 9]");
  EXPECT_EQ(Split(Or(x(i_) < x(j_), i_ < 4), 9), "[0, 3] / none");
  EXPECT_EQ(Split(Or(a(i_) < 3, 3 <= a(i_)), 9), "[0, 9] / none");
  // Narrow arithmetic wraps.
  const Expr b = context_.NewVar("b", Type::kI8);
  EXPECT_EQ(Split(b < b + 1, 9), "none / none");
}

TEST_F(IntegerSetTest, TooManyIntervalsAreUnknown) {
  EXPECT_EQ(Split(Eq(i_ % 2, context_.I32(0)), 99), "unknown");
  EXPECT_EQ(Split(Eq(i_ % 2, context_.I32(0)), 9),
            "[0, 0] [2, 2] [4, 4] [6, 6] [8, 8] / [1, 1] [3, 3] [5, 5] [7, 7] [9, 9]");
}

TEST_F(IntegerSetTest, Decides) {
  const std::vector<BoundedVar> box = {Bound(i_, 0, 4), Bound(j_, 0, 4)};
  EXPECT_EQ(sets_.Decide(i_ * 4 + j_ < 16, box), Truth::kAlways);
  EXPECT_EQ(sets_.Decide(i_ * 4 + j_ < 14, box), Truth::kSometimes);
  EXPECT_EQ(sets_.Decide(16 <= i_ * 4 + j_, box), Truth::kNever);
  EXPECT_EQ(sets_.Decide(Eq((i_ * 4 + j_) / 4, i_), box), Truth::kAlways);
  EXPECT_EQ(sets_.Decide(Ne(i_ * 6 + j_ * 4, context_.I32(7)), {}), Truth::kAlways);
  EXPECT_EQ(sets_.Decide(i_ * j_ < 4, box), Truth::kSometimes);  // for some product of any value
  EXPECT_EQ(sets_.Decide(n_ < 3, {}), Truth::kSometimes);
}

// Inside of the facts the condition always holds; values that they exclude are in both sets.
TEST_F(IntegerSetTest, FactsNarrowTheQuestion) {
  const auto split =
      sets_.SplitByTruth(i_ + j_ < 12, i_, {0, 15}, {Bound(j_, 0, 8)}, {i_ + j_ < 9, i_ < 5});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(ToString(split->always), "[0, 15]");
  EXPECT_EQ(ToString(split->never), "[5, 15]");
}

TEST_F(IntegerSetTest, GivesUpAfterTooManyOperations) {
  IntegerSets stingy({.max_operations = 10});
  EXPECT_EQ(stingy.Decide(i_ * 4 + j_ < 14, {Bound(i_, 0, 4), Bound(j_, 0, 4)}), Truth::kUnknown);
  EXPECT_EQ(stingy.SplitByTruth(i_ * 4 + j_ < 14, i_, {0, 3}, {Bound(j_, 0, 4)}), std::nullopt);
  EXPECT_NE(sets_.Decide(i_ * 4 + j_ < 14, {Bound(i_, 0, 4), Bound(j_, 0, 4)}), Truth::kUnknown);
}

// Random affine conditions over two variables, the second one's range depending on the first,
// against enumeration.
TEST_F(IntegerSetTest, AgreesWithEnumeration) {
  IntegerSets sets({.max_operations = 10000000, .max_intervals = 64});
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    auto pick = [&](int n) { return static_cast<int>(random() % n); };
    std::function<Expr(int)> integer = [&](int depth) -> Expr {
      if (depth == 0) return pick(3) == 0 ? context_.I32(pick(9) - 3) : pick(2) ? i_ : j_;
      const Expr a = integer(depth - 1);
      switch (pick(7)) {
        case 0:
          return a + integer(depth - 1);
        case 1:
          return a - integer(depth - 1);
        case 2:
          return a * (pick(7) - 3);
        case 3:
          return a / (pick(4) + 1);
        case 4:
          return a % (pick(4) + 1);
        case 5:
          return Min(a, integer(depth - 1));
        default:
          return context_.Select(a < pick(5), integer(depth - 1), integer(0));
      }
    };
    std::function<Expr(int)> condition = [&](int depth) -> Expr {
      if (depth == 0) {
        const Expr a = integer(2), b = integer(1);
        switch (pick(4)) {
          case 0:
            return a < b;
          case 1:
            return a <= b;
          case 2:
            return Eq(a, b);
          default:
            return Ne(a, b);
        }
      }
      switch (pick(3)) {
        case 0:
          return And(condition(depth - 1), condition(depth - 1));
        case 1:
          return Or(condition(depth - 1), condition(depth - 1));
        default:
          return Not(condition(depth - 1));
      }
    };
    const Expr c = condition(pick(3));
    const int64_t last = pick(9);
    const BoundedVar other = {j_, i_ / 2 - 1, context_.I32(pick(5))};
    const auto split = sets.SplitByTruth(c, i_, {0, last}, {other});
    ASSERT_TRUE(split.has_value()) << ir::Print(c);
    for (int64_t i = 0; i <= last; ++i) {
      bool always = true, never = true;
      const int64_t start = FloorDiv(i, 2) - 1;
      // An empty loop over a variable that the condition does not use does not count.
      const int64_t extent = ir::UsesVar(c, j_) ? other.extent.int_value() : 1;
      for (int64_t j = start; j < start + extent; ++j) {
        const Outcome outcome = Evaluate(c, {{i_.id(), i}, {j_.id(), j}}, Mode::kIndex);
        (outcome.value ? never : always) = false;
      }
      ASSERT_EQ(Contains(split->always, i), always) << ir::Print(c) << " at i=" << i;
      ASSERT_EQ(Contains(split->never, i), never) << ir::Print(c) << " at i=" << i;
    }
  }
}

}  // namespace
}  // namespace polynao::arith
