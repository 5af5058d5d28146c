#include "compiler/ir/type.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

TEST(TypeTest, NamesAndAliases) {
  for (int i = 0; i < kTypeCount; ++i) {
    const Type type = static_cast<Type>(i);
    EXPECT_EQ(ParseType(TypeName(type)), type);
  }
  EXPECT_EQ(ParseType("float32"), Type::kF32);
  EXPECT_EQ(ParseType("int32"), Type::kI32);
  EXPECT_EQ(ParseType("i33"), std::nullopt);
}

TEST(TypeTest, IntegersWrap) {
  EXPECT_EQ(WrapInt(Type::kI8, 130), -126);
  EXPECT_EQ(WrapInt(Type::kU8, -1), 255);
  EXPECT_EQ(WrapInt(Type::kI1, 2), 0);
  EXPECT_EQ(WrapInt(Type::kI32, int64_t{1} << 31), std::numeric_limits<int32_t>::min());
  EXPECT_FALSE(FitsInt(Type::kI16, 32768));
  EXPECT_TRUE(FitsInt(Type::kI16, -32768));
}

// Every f16 and bf16 value survives the way to float and back, and the midpoint between it and its
// neighbour rounds to the even one of the two.
TEST(TypeTest, NarrowFloatsRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    EXPECT_EQ(FloatToHalf(HalfToFloat(half)), half);
    EXPECT_EQ(FloatToHalf(-HalfToFloat(half)), half | 0x8000);
    if (bits + 1 < 0x7c00) {
      const double low = HalfToFloat(half);
      const double high = HalfToFloat(static_cast<uint16_t>(bits + 1));
      const double middle = (low + high) / 2;
      const double even = bits % 2 == 0 ? low : high;
      EXPECT_EQ(RoundFloat(Type::kF16, middle), even);
      // Just above and below the midpoint, closer than a float tells: double rounding would show.
      EXPECT_EQ(RoundFloat(Type::kF16, std::nextafter(middle, 1e9)), high);
      EXPECT_EQ(RoundFloat(Type::kF16, std::nextafter(middle, -1e9)), low);
    }
  }
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const uint16_t brain = static_cast<uint16_t>(bits);
    EXPECT_EQ(FloatToBfloat(BfloatToFloat(brain)), brain);
  }
}

TEST(TypeTest, NarrowFloatsAtTheEnds) {
  EXPECT_EQ(HalfToFloat(FloatToHalf(65504.0f)), 65504.0f);
  EXPECT_EQ(HalfToFloat(FloatToHalf(65519.99f)), 65504.0f);
  EXPECT_TRUE(std::isinf(HalfToFloat(FloatToHalf(65520.0f))));
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(NAN))));
  EXPECT_TRUE(std::isnan(BfloatToFloat(FloatToBfloat(NAN))));
  EXPECT_TRUE(std::isinf(HalfToFloat(FloatToHalf(INFINITY))));
  EXPECT_EQ(RoundFloat(Type::kF16, 0x1p-25), 0.0);
  EXPECT_EQ(RoundFloat(Type::kF16, 0x1.8p-25), 0x1p-24);
  EXPECT_TRUE(std::signbit(RoundFloat(Type::kF16, -0x1p-30)));
  EXPECT_TRUE(std::isinf(RoundFloat(Type::kF16, 1e300)));
  EXPECT_TRUE(std::isinf(RoundFloat(Type::kBF16, 3.4e38)));
}

TEST(TypeTest, MemoryKeepsValues) {
  uint8_t bytes[9] = {};
  StoreInt(Type::kI16, bytes + 1, -2);
  EXPECT_EQ(LoadInt(Type::kI16, bytes + 1), -2);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[3], 0);
  StoreInt(Type::kI1, bytes, 1);
  EXPECT_EQ(LoadInt(Type::kI1, bytes), 1);
  StoreFloat(Type::kF16, bytes, 1.5);
  EXPECT_EQ(LoadFloat(Type::kF16, bytes), 1.5);
  StoreFloat(Type::kF64, bytes + 1, 0.1);
  EXPECT_EQ(LoadFloat(Type::kF64, bytes + 1), 0.1);
}

TEST(TypeTest, FloorDivision) {
  for (int64_t a = -7; a <= 7; ++a) {
    for (int64_t b : {-3, -1, 1, 4}) {
      const double quotient = std::floor(static_cast<double>(a) / static_cast<double>(b));
      EXPECT_EQ(FloorDiv(a, b), static_cast<int64_t>(quotient)) << a << " / " << b;
      EXPECT_EQ(FloorMod(a, b), a - FloorDiv(a, b) * b) << a << " % " << b;
    }
  }
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(FloorDiv(kLeast, -1), kLeast);
  EXPECT_EQ(FloorMod(kLeast, -1), 0);
}

}  // namespace
}  // namespace polynao::ir
