#include "compiler/ir/compare.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

Tensor Floats(Type type, const std::vector<double>& values) {
  Tensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetValue(static_cast<int64_t>(i), values[i]);
  return tensor;
}

TEST(CompareTest, FindsTheLargestDifference) {
  const Difference d =
      Compare(Floats(Type::kF32, {0, 0, 0, NAN}), Floats(Type::kF32, {0, 0.5, 2, NAN}));
  EXPECT_EQ(d.max_abs, 2);
  EXPECT_EQ(d.max_rel, 1);
  EXPECT_EQ(d.where, 2);
}

TEST(CompareTest, SpecialValues) {
  const double inf = HUGE_VAL;
  for (Type type : {Type::kF16, Type::kBF16, Type::kF32, Type::kF64}) {
    const auto max_abs = [&](double a, double b) {
      return Compare(Floats(type, {a}), Floats(type, {b})).max_abs;
    };
    EXPECT_EQ(max_abs(NAN, -NAN), 0);
    EXPECT_EQ(max_abs(inf, inf), 0);
    EXPECT_EQ(max_abs(0.0, -0.0), 0);
    EXPECT_EQ(max_abs(inf, -inf), inf);
    EXPECT_EQ(max_abs(inf, 1), inf);
    EXPECT_EQ(max_abs(NAN, 1), inf);
    EXPECT_EQ(max_abs(NAN, inf), inf);
  }
}

TEST(CompareTest, IntegersInAllBits) {
  Tensor a(Type::kI64, {1});
  Tensor b(Type::kI64, {1});
  a.SetInt(0, (int64_t{1} << 62) + 1);  // the same as a double
  b.SetInt(0, int64_t{1} << 62);
  EXPECT_EQ(Compare(a, b).max_abs, 1);
  EXPECT_EQ(FirstDifference(a, b), 0);
  a.SetInt(0, std::numeric_limits<int64_t>::min());
  b.SetInt(0, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Compare(a, b).max_abs, 0x1p64);
}

TEST(FirstDifferenceTest, SignedZerosDifferAndNansDoNot) {
  const Tensor a = Floats(Type::kF32, {1, NAN, 0.0});
  EXPECT_EQ(FirstDifference(a, Floats(Type::kF32, {1, -NAN, 0.0})), -1);
  EXPECT_EQ(FirstDifference(a, Floats(Type::kF32, {1, NAN, -0.0})), 2);
  EXPECT_EQ(FirstDifference(a, Floats(Type::kF32, {1, 1, 0.0})), 1);
}

TEST(FirstDifferenceTest, StepsBetweenNeighbours) {
  for (Type type : {Type::kF16, Type::kF32, Type::kF64}) {
    const double step = type == Type::kF16 ? 0x1p-10 : type == Type::kF32 ? 0x1p-23 : 0x1p-52;
    const Tensor one = Floats(type, {1});
    EXPECT_EQ(FirstDifference(one, Floats(type, {1 + 2 * step}), 2), -1);
    EXPECT_EQ(FirstDifference(one, Floats(type, {1 + 3 * step}), 2), 0);
    EXPECT_EQ(FirstDifference(Floats(type, {0.0}), Floats(type, {-0.0}), 1), -1);
    // The farthest two values: their distance does not fit an i64 for f64.
    EXPECT_EQ(FirstDifference(Floats(type, {HUGE_VAL}), Floats(type, {-HUGE_VAL}), 4), 0);
    EXPECT_EQ(FirstDifference(Floats(type, {NAN}), Floats(type, {HUGE_VAL}), 1 << 20), 0);
  }
}

}  // namespace
}  // namespace polynao::ir
