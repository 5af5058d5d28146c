#include "compiler/ir/intrinsics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "compiler/ir/type.h"

namespace polynao::ir {
namespace {

double Fma(Type type, double x, double y, double z) {
  return RoundFloat(type, FusedMultiplyAdd(type, x, y, z));
}

// The processor's own, on operands whose sums cancel, meet halfway and leave each other behind.
TEST(FusedMultiplyAddTest, AgreesWithTheProcessorInF32) {
  std::mt19937_64 random(1);
  int differs = 0;  // from two roundings, so that the test can tell them apart
  for (int i = 0; i < 1'000'000; ++i) {
    const auto draw = [&] {
      const double sign = random() % 2 == 0 ? 1 : -1;
      const auto mantissa = static_cast<double>((1 << 23) + random() % (1 << 23));
      // Few bits, often, for sums on the half.
      const double cut = random() % 2 == 0 ? mantissa : std::floor(mantissa / 4096) * 4096;
      return std::ldexp(sign * cut, static_cast<int>(random() % 60) - 53);
    };
    const double x = draw(), y = draw(), z = draw();
    const auto a = static_cast<float>(x), b = static_cast<float>(y), c = static_cast<float>(z);
    ASSERT_EQ(Fma(Type::kF32, x, y, z), std::fmaf(a, b, c)) << x << " " << y << " " << z;
    differs += std::fmaf(a, b, c) != static_cast<float>(static_cast<double>(a) * b + c);
  }
  EXPECT_GT(differs, 0);
}

// 2049 / 2048 is halfway between two numbers of f16; the last operand says on which side the sum is.
TEST(FusedMultiplyAddTest, RoundsHalfwayProductsOnceInF16) {
  const double x = 3, y = 683.0 / 2048, up = 1 + 0x1p-10, little = 0x1p-24;
  EXPECT_EQ(Fma(Type::kF16, x, y, 0), 1.0);
  EXPECT_EQ(Fma(Type::kF16, x, y, little), up);
  EXPECT_EQ(Fma(Type::kF16, x, y, -little), 1.0);
}

// 259 / 256 likewise in bf16, with so little on one side that f64 does not see it.
TEST(FusedMultiplyAddTest, RoundsHalfwayProductsOnceInBf16) {
  const double x = 7, y = 37.0 / 256, down = 258.0 / 256, up = 260.0 / 256;
  EXPECT_EQ(Fma(Type::kBF16, x, y, 0), up);
  EXPECT_EQ(Fma(Type::kBF16, x, y, 0x1p-100), up);
  EXPECT_EQ(Fma(Type::kBF16, x, y, -0x1p-100), down);
  EXPECT_EQ(Fma(Type::kBF16, -x, y, 0x1p-100), -down);
}

TEST(FusedMultiplyAddTest, KeepsInfinitiesNansAndSigns) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Type type : {Type::kF16, Type::kBF16, Type::kF32, Type::kF64}) {
    EXPECT_EQ(Fma(type, infinity, 1, 1), infinity);
    EXPECT_TRUE(std::isnan(Fma(type, infinity, 0, 1)));
    EXPECT_TRUE(std::isnan(Fma(type, infinity, 1, -infinity)));
    EXPECT_TRUE(std::signbit(Fma(type, -0.0, 1, -0.0)));
    EXPECT_FALSE(std::signbit(Fma(type, -0.0, 1, 0.0)));
    EXPECT_EQ(Fma(type, 3, 5, 7), 22);
  }
}

}  // namespace
}  // namespace polynao::ir
