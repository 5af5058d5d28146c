#include "compiler/ir/random_tensor.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

constexpr int64_t kCount = 4096;

struct FloatFormat {
  Type type;
  double greatest;
  double least_normal;
  double least;  // subnormal
  double step;   // from 1 to the next value
};
constexpr FloatFormat kFormats[] = {
    {Type::kF16, 65504, 0x1p-14, 0x1p-24, 0x1p-10},
    {Type::kBF16, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7},
    {Type::kF32, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-23},
    {Type::kF64, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074, 0x1p-52},
};

bool IsPowerOfTwo(double value) {
  int exponent;
  return std::isfinite(value) && std::abs(std::frexp(value, &exponent)) == 0.5;
}

TEST(RandomTensorTest, EveryFloatTypeGetsAllOfItsEdges) {
  for (const FloatFormat& f : kFormats) {
    const std::map<std::string, std::function<bool(double)>> classes = {
        {"0", [](double x) { return x == 0 && !std::signbit(x); }},
        {"-0", [](double x) { return x == 0 && std::signbit(x); }},
        {"infinity", [](double x) { return std::isinf(x) && x > 0; }},
        {"-infinity", [](double x) { return std::isinf(x) && x < 0; }},
        {"NaN", [](double x) { return std::isnan(x); }},
        {"greatest", [&](double x) { return x == f.greatest; }},
        {"least", [&](double x) { return x == -f.greatest; }},
        {"twice it overflows",
         [&](double x) {
           return std::abs(x) < f.greatest && std::isinf(RoundFloat(f.type, 2 * x)) &&
                  std::isfinite(x);
         }},
        {"least positive", [&](double x) { return x == f.least; }},
        {"greatest subnormal", [&](double x) { return x == f.least_normal - f.least; }},
        {"least normal", [&](double x) { return std::abs(x) == f.least_normal; }},
        {"after a power of two",
         [&](double x) {
           int exponent;
           const double mantissa = std::abs(std::frexp(x, &exponent));
           return mantissa == 0.5 + f.step / 2;
         }},
        {"before a power of two",
         [&](double x) {
           int exponent;
           return std::abs(std::frexp(x, &exponent)) == 1 - f.step / 2;
         }},
        {"power of two", IsPowerOfTwo},
        {"tie of a conversion to an integer",
         [](double x) { return std::abs(x) < 1000 && std::abs(x - std::trunc(x)) == 0.5; }},
        {"all bits of the mantissa", [&](double x) {
           int exponent;
           const double scaled = std::ldexp(std::frexp(x, &exponent), 53);
           return std::isfinite(x) && std::fmod(scaled, f.step * 0x1p52) == 0 &&
                  std::fmod(scaled, f.step * 0x1p53) != 0;
         }}};
    for (const auto& [name, is_of] : classes) {
      int found = 0;
      for (uint64_t seed = 0; seed < 8; ++seed) {
        const Tensor tensor = RandomTensor(f.type, {kCount}, seed, Values::kAll);
        for (int64_t i = 0; i < kCount; ++i) found += is_of(tensor.Float(i));
      }
      EXPECT_GT(found, 0) << TypeName(f.type) << " " << name;
    }
  }
}

TEST(RandomTensorTest, EveryIntegerTypeGetsAllOfItsEdges) {
  for (int t = 0; t < kTypeCount; ++t) {
    const auto type = static_cast<Type>(t);
    if (IsFloat(type)) continue;
    std::map<int64_t, int> seen;
    uint64_t ones = 0;
    uint64_t zeros = 0;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Tensor tensor = RandomTensor(type, {kCount}, seed, Values::kAll);
      for (int64_t i = 0; i < kCount; ++i) {
        ++seen[tensor.Int(i)];
        ones |= static_cast<uint64_t>(tensor.Int(i));
        zeros |= ~static_cast<uint64_t>(tensor.Int(i));
      }
    }
    const int bits = type == Type::kI1 ? 1 : 8 * ByteSize(type);
    const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    EXPECT_EQ(ones & all, all) << TypeName(type);
    EXPECT_EQ(zeros & all, all) << TypeName(type);
    std::vector<int64_t> edges = {0, 1};
    if (bits > 1) {
      const auto sign = static_cast<int64_t>(uint64_t{1} << (bits - 1));
      // Of a signed type the least and the greatest; of an unsigned one the middle. -1 wraps to the
      // greatest unsigned value.
      for (int64_t edge : {int64_t{-1}, sign, sign - 1}) edges.push_back(WrapInt(type, edge));
      for (int k = 1; k < bits - 1; ++k) {
        edges.push_back(WrapInt(type, int64_t{1} << k));
        edges.push_back(WrapInt(type, (int64_t{1} << k) - 1));
        edges.push_back(WrapInt(type, (int64_t{1} << k) + 1));
      }
    }
    for (int64_t edge : edges) EXPECT_GT(seen[edge], 0) << TypeName(type) << " " << edge;
    if (bits == 8) {
      EXPECT_EQ(seen.size(), 256u) << TypeName(type);
    }
  }
}

TEST(RandomTensorTest, SmallTensorsMeetInfinitiesAndLongRowsEscapeThem) {
  int with = 0;
  int clean_rows = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Tensor small = RandomTensor(Type::kF32, {16}, seed, Values::kAll);
    bool has = false;
    for (int64_t i = 0; i < 16; ++i) has |= !std::isfinite(small.Float(i));
    with += has;
    const Tensor rows = RandomTensor(Type::kF32, {64, 256}, seed, Values::kAll);
    for (int64_t row = 0; row < 64; ++row) {
      bool clean = true;
      for (int64_t i = 0; i < 256; ++i) clean &= std::abs(rows.Float(row * 256 + i)) < 0x1p30;
      clean_rows += clean;
    }
  }
  EXPECT_GT(with, 10);
  EXPECT_LT(with, 40);
  EXPECT_GT(clean_rows, 40 * 64 / 2);
  EXPECT_LT(clean_rows, 40 * 64);
}

TEST(RandomTensorTest, FiniteValuesDoNotOverflowInSums) {
  for (const FloatFormat& f : kFormats) {
    const Tensor tensor = RandomTensor(f.type, {kCount}, 3, Values::kFinite);
    double sum = 0;
    bool subnormal = false;
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(std::isfinite(tensor.Float(i)));
      const double magnitude = std::abs(tensor.Float(i));
      if (i < 256) sum += magnitude;
      subnormal |= magnitude != 0 && magnitude < f.least_normal;
    }
    EXPECT_LT(sum, f.greatest) << TypeName(f.type);
    EXPECT_TRUE(subnormal);
  }
}

TEST(RandomTensorTest, ExactValuesAreTheSameInAllFloatTypes) {
  const Tensor half = RandomTensor(Type::kF16, {1000}, 7, Values::kExact);
  const Tensor wide = RandomTensor(Type::kF64, {1000}, 7, Values::kExact);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(half.Float(i), wide.Float(i));
}

TEST(RandomTensorTest, SeedsAndPlacesMakeTheValues) {
  const Tensor a = RandomTensor(Type::kI32, {1000}, 7, Values::kAll);
  EXPECT_EQ(a.bytes, RandomTensor(Type::kI32, {1000}, 7, Values::kAll).bytes);
  EXPECT_NE(a.bytes, RandomTensor(Type::kI32, {1000}, 8, Values::kAll).bytes);
  EXPECT_EQ(a.Int(500), RandomInt(Type::kI32, 7, 500, Values::kAll));
}

// Large tensors repeat what RandomFloat and RandomInt give for each element; infinities and NaNs are in the first
// period alone.
TEST(RandomTensorTest, ElementsRepeat) {
  const auto period = static_cast<int64_t>(kRandomPeriod);
  const int64_t count = 3 * period + 5;
  for (const Values values : {Values::kAll, Values::kFinite, Values::kExact}) {
    const Tensor floats = RandomTensor(Type::kF16, {count}, 7, values);
    const Tensor integers = RandomTensor(Type::kI8, {count}, 7, values);
    int64_t wild = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto place = static_cast<uint64_t>(i);
      if (i < 100 || i % 1009 == 0 || i >= count - 10) {
        const double expected = RandomFloat(Type::kF16, 7, place, values);
        ASSERT_TRUE(floats.Float(i) == expected || std::isnan(expected)) << i;
        ASSERT_EQ(integers.Int(i), RandomInt(Type::kI8, 7, place, values)) << i;
      }
      if (i >= 2 * period) ASSERT_EQ(floats.Float(i), floats.Float(i - period)) << i;
      if (i >= period) wild += !std::isfinite(floats.Float(i));
    }
    EXPECT_EQ(wild, 0);
  }
}

}  // namespace
}  // namespace polynao::ir
