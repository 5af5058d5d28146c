#include "compiler/ir/type.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

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

// The limits, wrapping, comparison, division and shifts of every integer type against __int128.
TEST(TypeTest, IntegersOfEveryType) {
  for (int t = 0; t < kTypeCount; ++t) {
    const Type type = static_cast<Type>(t);
    if (IsFloat(type) || type == Type::kI1) continue;
    SCOPED_TRACE(TypeName(type));
    const int width = BitWidth(type);
    const auto number = [&](int64_t value) {
      return type == Type::kU64 ? __int128{static_cast<uint64_t>(value)} : __int128{value};
    };
    const auto value_of = [&](__int128 x) { return WrapInt(type, static_cast<int64_t>(x)); };
    const __int128 one = 1;
    EXPECT_TRUE(number(LeastInt(type)) == (IsUnsigned(type) ? 0 : -(one << (width - 1))));
    EXPECT_TRUE(number(GreatestInt(type)) == (one << (IsUnsigned(type) ? width : width - 1)) - 1);
    EXPECT_EQ(FitsInt(type, -1), !IsUnsigned(type));
    EXPECT_EQ(IsIndexable(type), type != Type::kU64);
    std::vector<int64_t> values = {0, 1, 2, 3, 7, width - 1, width, width + 1};
    for (int64_t v : {LeastInt(type), GreatestInt(type)}) {
      for (int64_t step : {-2, -1, 0, 1, 2}) values.push_back(value_of(__int128{v} + step));
    }
    for (int64_t a : values) {
      for (int64_t b : values) {
        const __int128 x = number(a), y = number(b);
        SCOPED_TRACE(testing::Message() << IntText(type, a) << " and " << IntText(type, b));
        EXPECT_EQ(IntLess(type, a, b), x < y);
        const bool is_out = y < 0 || y >= width;
        EXPECT_EQ(ShiftLeft(type, a, b), is_out ? 0 : value_of(x << static_cast<int>(y)));
        EXPECT_EQ(ShiftRight(type, a, b),
                  is_out ? (x < 0 ? -1 : 0) : value_of(x >> static_cast<int>(y)));
        if (y == 0) continue;
        const __int128 remainder = (x % y + y) % y;
        EXPECT_EQ(ModInt(type, a, b), value_of(remainder));
        EXPECT_EQ(DivInt(type, a, b), value_of((x - remainder) / y));
      }
    }
  }
}

TEST(TypeTest, FloatsBecomeIntegersAndBack) {
  for (int t = 0; t < kTypeCount; ++t) {
    const Type type = static_cast<Type>(t);
    if (IsFloat(type) || type == Type::kI1) continue;
    SCOPED_TRACE(TypeName(type));
    EXPECT_EQ(FloatToInt(type, NAN), 0);
    EXPECT_EQ(FloatToInt(type, HUGE_VAL), GreatestInt(type));
    EXPECT_EQ(FloatToInt(type, -HUGE_VAL), LeastInt(type));
    EXPECT_EQ(FloatToInt(type, 2.9), 2);
    EXPECT_EQ(FloatToInt(type, -0.9), 0);
    EXPECT_EQ(FloatToInt(type, -2.9), IsUnsigned(type) ? 0 : -2);
    const double limit = std::ldexp(1, BitWidth(type) - (IsUnsigned(type) ? 0 : 1));
    EXPECT_EQ(FloatToInt(type, limit), GreatestInt(type));
    EXPECT_EQ(IntToFloat(type, FloatToInt(type, std::nextafter(limit, 0)), Type::kF64),
              BitWidth(type) == 64 ? std::nextafter(limit, 0) : limit - 1);
    EXPECT_EQ(IntToFloat(type, LeastInt(type), Type::kF64), IsUnsigned(type) ? 0 : -limit);
  }
  EXPECT_EQ(FloatToInt(Type::kI1, NAN), 0);
  EXPECT_EQ(FloatToInt(Type::kI1, -0.5), 1);
}

// A double between rounds to the midpoint of two bf16 values, and then to the wrong one.
TEST(TypeTest, IntegersRoundOnce) {
  constexpr int64_t kMiddle = (int64_t{1} << 60) + (int64_t{1} << 52);
  EXPECT_EQ(IntToFloat(Type::kI64, kMiddle, Type::kBF16), 0x1p60);
  EXPECT_EQ(IntToFloat(Type::kI64, kMiddle + 1, Type::kBF16), 0x1.02p60);
  EXPECT_EQ(IntToFloat(Type::kI64, -kMiddle - 1, Type::kBF16), -0x1.02p60);
  EXPECT_EQ(IntToFloat(Type::kU64, -1, Type::kF32), 0x1p64);
  EXPECT_EQ(IntToFloat(Type::kU64, static_cast<int64_t>((uint64_t{kMiddle} + 1) * 8), Type::kBF16),
            0x1.02p63);
  EXPECT_EQ(IntToFloat(Type::kI64, (int64_t{1} << 62) + (int64_t{1} << 38) + 1, Type::kF32),
            0x1.000002p62);
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
