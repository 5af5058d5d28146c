#include "isa/simd.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "compiler/ir/type.h"
#include "isa/simd_testing.h"

namespace polynao::isa {
namespace {

constexpr uint64_t kSeed = 20240610;

const uint8_t* Bytes(const void* data) { return static_cast<const uint8_t*>(data); }

TEST(Simd, ConvertsEveryHalf) {
  AtEachSimdLevel([] {
    std::vector<uint16_t> halves(65536), back(65536), portable_back(65536);
    for (int i = 0; i < 65536; ++i) halves[i] = static_cast<uint16_t>(i);
    std::vector<float> floats(65536), portable(65536);
    HalfToFloat(Bytes(halves.data()), floats.data(), 65536);
    portable::HalfToFloat(Bytes(halves.data()), portable.data(), 65536);
    FloatToHalf(floats.data(), reinterpret_cast<uint8_t*>(back.data()), 65536);
    portable::FloatToHalf(floats.data(), reinterpret_cast<uint8_t*>(portable_back.data()), 65536);
    for (int i = 0; i < 65536; ++i) {
      const float expected = ir::HalfToFloat(halves[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(floats[i]) && std::isnan(portable[i])) << i;
        EXPECT_TRUE(std::isnan(ir::HalfToFloat(back[i]))) << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(expected)) << i;
      ASSERT_EQ(std::bit_cast<uint32_t>(portable[i]), std::bit_cast<uint32_t>(expected)) << i;
      ASSERT_EQ(back[i], halves[i]);
      ASSERT_EQ(portable_back[i], halves[i]);
    }
  });
}

TEST(Simd, RoundsAndSumsLikeThePortableForms) {
  AtEachSimdLevel([] {
    std::mt19937_64 random(kSeed);
    for (int64_t n = 0; n < 70; ++n) {
      std::vector<float> x(n);
      for (float& value : x) {
        do {
          value = std::bit_cast<float>(static_cast<uint32_t>(random()));
          // Half of them in the range of f16, where rounding has something to decide.
          if (random() % 2)
            value = std::ldexp(std::fmod(value, 1.0f), static_cast<int>(random() % 40) - 25);
        } while (std::isnan(value));
      }
      std::vector<float> rounded = x, portable = x;
      RoundToHalf(rounded.data(), n);
      portable::RoundToHalf(portable.data(), n);
      EXPECT_EQ(rounded, portable);
      for (float& value : x) value = std::isfinite(value) ? std::fmod(value, 8.0f) : 1;
      EXPECT_EQ(SumToHalf(0.5f, x.data(), n), portable::SumToHalf(0.5f, x.data(), n)) << n;
    }
  });
}

TEST(Simd, DotProductsOfAllLengths) {
  AtEachSimdLevel([] {
    std::mt19937_64 random(kSeed);
    for (int64_t n = 0; n < 100; ++n) {
      std::vector<int16_t> a(n + 1), b(n + 1);
      for (int64_t i = 0; i < n; ++i) {
        a[i] = static_cast<int16_t>(random() % 3 ? random() : 0x8000);
        b[i] = static_cast<int16_t>(random() % 3 ? random() : 0x8000);
      }
      // Odd addresses too: memories of the machine are only bytes.
      std::vector<uint8_t> a8(n + 1), b8(n + 1);
      std::memcpy(a8.data() + 1, a.data(), n);
      std::memcpy(b8.data() + 1, b.data(), n);
      uint32_t sum16 = 0, sum8 = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum16 += static_cast<uint32_t>(int32_t{a[i]} * b[i]);
        sum8 +=
            static_cast<uint32_t>(static_cast<int8_t>(a8[i + 1]) * static_cast<int8_t>(b8[i + 1]));
      }
      EXPECT_EQ(static_cast<uint32_t>(DotI16(Bytes(a.data()), Bytes(b.data()), {.n = n})), sum16)
          << n;
      EXPECT_EQ(static_cast<uint32_t>(portable::DotI16(Bytes(a.data()), Bytes(b.data()), {.n = n})),
                sum16);
      EXPECT_EQ(static_cast<uint32_t>(DotI8(a8.data() + 1, b8.data() + 1, {.n = n})), sum8) << n;
      EXPECT_EQ(static_cast<uint32_t>(portable::DotI8(a8.data() + 1, b8.data() + 1, {.n = n})),
                sum8);
    }
  });
}

TEST(Simd, DotProductsOfSeveralRows) {
  AtEachSimdLevel([] {
    std::mt19937_64 random(kSeed);
    std::vector<uint8_t> a(4000), b(4000);
    for (uint8_t& byte : a) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : b) byte = static_cast<uint8_t>(random());
    for (int64_t n : {0, 1, 15, 16, 31, 33, 63, 64, 65, 127, 130}) {
      for (int64_t rows : {0, 1, 2, 3, 7}) {
        const DotRows shape{.n = n, .rows = rows, .a_stride = 261, .b_stride = 2 * n};
        uint32_t sum8 = 0, sum16 = 0;
        for (int64_t r = 0; r < rows; ++r) {
          const uint8_t* row_a = a.data() + r * shape.a_stride;
          const uint8_t* row_b = b.data() + r * shape.b_stride;
          sum8 += static_cast<uint32_t>(portable::DotI8(row_a, row_b, {.n = n}));
          sum16 += static_cast<uint32_t>(portable::DotI16(row_a, row_b, {.n = n}));
        }
        for (const auto dot : {DotI8, portable::DotI8}) {
          EXPECT_EQ(static_cast<uint32_t>(dot(a.data(), b.data(), shape)), sum8)
              << n << " " << rows;
        }
        for (const auto dot : {DotI16, portable::DotI16}) {
          EXPECT_EQ(static_cast<uint32_t>(dot(a.data(), b.data(), shape)), sum16)
              << n << " " << rows;
        }
      }
    }
  });
}

// A conversion of n elements touches no byte beyond them.
TEST(Simd, ConversionsStayInside) {
  AtEachSimdLevel([] {
    for (int64_t n = 0; n < 40; ++n) {
      std::vector<float> floats(n + 1, 1.5f);
      std::vector<uint8_t> halves(2 * n + 1, 0x77);
      FloatToHalf(floats.data(), halves.data(), n);
      EXPECT_EQ(halves[2 * n], 0x77) << n;
      for (float& value : floats) value = 1 / 3.0f;
      RoundToHalf(floats.data(), n);
      EXPECT_EQ(floats[n], 1 / 3.0f) << n;
      HalfToFloat(halves.data(), floats.data(), n);
      EXPECT_EQ(floats[n], 1 / 3.0f) << n;
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(floats[i], 1.5f) << n << " " << i;
    }
  });
}

TEST(Simd, LevelsHaveNames) {
  EXPECT_EQ(SimdLevelName(SimdLevel::kPortable), "portable");
  EXPECT_EQ(SimdLevelName(SimdLevel::kAvx2), "avx2");
  EXPECT_EQ(SimdLevelName(SimdLevel::kAvx512), "avx512");
  EXPECT_EQ(SimdLevelName(SimdLevel::kAvx512Vnni), "avx512_vnni");
  EXPECT_LE(CurrentSimdLevel(), HostSimdLevel());
}

}  // namespace
}  // namespace polynao::isa
