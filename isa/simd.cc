#include "isa/simd.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "compiler/ir/type.h"
#include "isa/simd_masks.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// False positives of GCC 12 inside its AVX512 intrinsics (https://gcc.gnu.org/PR105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

namespace polynao::isa {
namespace portable {
namespace {

template <typename T>
T Read(const uint8_t* address, int64_t i) {
  T value;
  std::memcpy(&value, address + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
int32_t Dot(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  uint32_t sum = 0;
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    for (int64_t i = 0; i < shape.n; ++i) {
      // A product of two 16-bit numbers fits 32 bits.
      sum += static_cast<uint32_t>(int32_t{Read<T>(a, i)} * int32_t{Read<T>(b, i)});
    }
  }
  return static_cast<int32_t>(sum);
}

}  // namespace

void HalfToFloat(const uint8_t* halves, float* floats, int64_t n) {
  for (int64_t i = 0; i < n; ++i) floats[i] = ir::HalfToFloat(Read<uint16_t>(halves, i));
}

void FloatToHalf(const float* floats, uint8_t* halves, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t half = ir::FloatToHalf(floats[i]);
    std::memcpy(halves + 2 * i, &half, 2);
  }
}

void RoundToHalf(float* floats, int64_t n) {
  for (int64_t i = 0; i < n; ++i) floats[i] = ir::HalfToFloat(ir::FloatToHalf(floats[i]));
}

float SumToHalf(float acc, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc = ir::HalfToFloat(ir::FloatToHalf(acc + x[i]));
  return acc;
}

int32_t DotI8(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  return Dot<int8_t>(a, b, shape);
}
int32_t DotI16(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  return Dot<int16_t>(a, b, shape);
}

}  // namespace portable

namespace {

struct Routines {
  decltype(&portable::HalfToFloat) half_to_float = portable::HalfToFloat;
  decltype(&portable::FloatToHalf) float_to_half = portable::FloatToHalf;
  decltype(&portable::RoundToHalf) round_to_half = portable::RoundToHalf;
  decltype(&portable::SumToHalf) sum_to_half = portable::SumToHalf;
  decltype(&portable::DotI8) dot_i8 = portable::DotI8;
  decltype(&portable::DotI16) dot_i16 = portable::DotI16;
};

#if defined(__x86_64__)

#define POLYNAO_F16C __attribute__((target("avx,f16c")))
#define POLYNAO_AVX2 __attribute__((target("avx2")))
constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;

POLYNAO_F16C void HalfToFloatF16c(const uint8_t* halves, float* floats, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + 2 * i));
    _mm256_storeu_ps(floats + i, _mm256_cvtph_ps(half));
  }
  portable::HalfToFloat(halves + 2 * i, floats + i, n - i);
}

POLYNAO_F16C void FloatToHalfF16c(const float* floats, uint8_t* halves, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(floats + i), kNearest);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + 2 * i), half);
  }
  portable::FloatToHalf(floats + i, halves + 2 * i, n - i);
}

POLYNAO_F16C void RoundToHalfF16c(float* floats, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(floats + i), kNearest);
    _mm256_storeu_ps(floats + i, _mm256_cvtph_ps(half));
  }
  portable::RoundToHalf(floats + i, n - i);
}

POLYNAO_F16C float SumToHalfF16c(float acc, const float* x, int64_t n) {
  __m128 sum = _mm_set_ss(acc);
  for (int64_t i = 0; i < n; ++i) {
    sum = _mm_cvtph_ps(_mm_cvtps_ph(_mm_add_ss(sum, _mm_set_ss(x[i])), kNearest));
  }
  return _mm_cvtss_f32(sum);
}

POLYNAO_AVX2 int32_t SumLanes(__m256i lanes) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

POLYNAO_AVX2 int32_t DotI8Avx2(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  __m256i sum = _mm256_setzero_si256();
  uint32_t rest = 0;
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    int64_t i = 0;
    for (; i + 16 <= shape.n; i += 16) {
      const __m256i x =
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)));
      const __m256i y =
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    }
    rest += static_cast<uint32_t>(portable::DotI8(a + i, b + i, {.n = shape.n - i}));
  }
  return static_cast<int32_t>(static_cast<uint32_t>(SumLanes(sum)) + rest);
}

POLYNAO_AVX2 int32_t DotI16Avx2(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  __m256i sum = _mm256_setzero_si256();
  uint32_t rest = 0;
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    int64_t i = 0;
    for (; i + 16 <= shape.n; i += 16) {
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + 2 * i));
      const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 2 * i));
      // The one pair of products that overflows madd, 2 * (-32768)^2, wraps as the sum does anyway.
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    }
    rest += static_cast<uint32_t>(portable::DotI16(a + 2 * i, b + 2 * i, {.n = shape.n - i}));
  }
  return static_cast<int32_t>(static_cast<uint32_t>(SumLanes(sum)) + rest);
}

#define POLYNAO_AVX512 __attribute__((target("avx512f,avx512bw")))

POLYNAO_AVX512 void HalfToFloatAvx512(const uint8_t* halves, float* floats, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = First<__mmask16>(n - i);
    const __m512i half = _mm512_maskz_loadu_epi16(mask, halves + 2 * i);
    _mm512_mask_storeu_ps(floats + i, mask, _mm512_cvtph_ps(_mm512_castsi512_si256(half)));
  }
}

POLYNAO_AVX512 void FloatToHalfAvx512(const float* floats, uint8_t* halves, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = First<__mmask16>(n - i);
    const __m256i half = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, floats + i), kNearest);
    _mm512_mask_storeu_epi16(halves + 2 * i, mask, _mm512_castsi256_si512(half));
  }
}

POLYNAO_AVX512 void RoundToHalfAvx512(float* floats, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = First<__mmask16>(n - i);
    const __m256i half = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, floats + i), kNearest);
    _mm512_mask_storeu_ps(floats + i, mask, _mm512_cvtph_ps(half));
  }
}

POLYNAO_AVX512 int32_t SumLanes(__m512i lanes) {
  return SumLanes(
      _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1)));
}

POLYNAO_AVX512 int32_t DotI8Avx512(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  __m512i sum = _mm512_setzero_si512();
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    for (int64_t i = 0; i < shape.n; i += 32) {
      // Masked loads of 64 bytes, of which the lower half is used.
      const __mmask64 mask = First<__mmask32>(shape.n - i);
      const __m512i x = _mm512_maskz_loadu_epi8(mask, a + i);
      const __m512i y = _mm512_maskz_loadu_epi8(mask, b + i);
      sum =
          _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_cvtepi8_epi16(_mm512_castsi512_si256(x)),
                                                  _mm512_cvtepi8_epi16(_mm512_castsi512_si256(y))));
    }
  }
  return SumLanes(sum);
}

POLYNAO_AVX512 int32_t DotI16Avx512(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  __m512i sum = _mm512_setzero_si512();
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    for (int64_t i = 0; i < shape.n; i += 32) {
      const __mmask32 mask = First<__mmask32>(shape.n - i);
      // As in DotI16Avx2, the pair that overflows wraps as the sum does.
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maskz_loadu_epi16(mask, a + 2 * i),
                                                    _mm512_maskz_loadu_epi16(mask, b + 2 * i)));
    }
  }
  return SumLanes(sum);
}

#define POLYNAO_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

POLYNAO_VNNI int32_t DotI8Vnni(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  // The instruction multiplies unsigned by signed: (a + 128) * b; 128 * b is subtracted afterwards.
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  __m512i sum_of_b = _mm512_setzero_si512();
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    for (int64_t i = 0; i < shape.n; i += 64) {
      const __mmask64 mask = First<__mmask64>(shape.n - i);
      const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, a + i), flip);
      const __m512i y = _mm512_maskz_loadu_epi8(mask, b + i);
      sum = _mm512_dpbusd_epi32(sum, x, y);
      sum_of_b = _mm512_dpbusd_epi32(sum_of_b, ones, y);
    }
  }
  return SumLanes(_mm512_sub_epi32(sum, _mm512_slli_epi32(sum_of_b, 7)));
}

POLYNAO_VNNI int32_t DotI16Vnni(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  __m512i sum = _mm512_setzero_si512();
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride, b += shape.b_stride) {
    for (int64_t i = 0; i < shape.n; i += 32) {
      const __mmask32 mask = First<__mmask32>(shape.n - i);
      sum = _mm512_dpwssd_epi32(sum, _mm512_maskz_loadu_epi16(mask, a + 2 * i),
                                _mm512_maskz_loadu_epi16(mask, b + 2 * i));
    }
  }
  return SumLanes(sum);
}

SimdLevel FindHostLevel() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) {
    return SimdLevel::kPortable;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) {
    return SimdLevel::kAvx2;
  }
  return __builtin_cpu_supports("avx512vnni") ? SimdLevel::kAvx512Vnni : SimdLevel::kAvx512;
}

constexpr Routines kRoutines[] = {
    {},
    {HalfToFloatF16c, FloatToHalfF16c, RoundToHalfF16c, SumToHalfF16c, DotI8Avx2, DotI16Avx2},
    // A sum rounds after each element, one after the other: wider vectors have nothing to add.
    {HalfToFloatAvx512, FloatToHalfAvx512, RoundToHalfAvx512, SumToHalfF16c, DotI8Avx512,
     DotI16Avx512},
    {HalfToFloatAvx512, FloatToHalfAvx512, RoundToHalfAvx512, SumToHalfF16c, DotI8Vnni, DotI16Vnni},
};

#else

SimdLevel FindHostLevel() { return SimdLevel::kPortable; }
constexpr Routines kRoutines[std::size(kSimdLevels)] = {};

#endif

constexpr std::string_view kNames[] = {"portable", "avx2", "avx512", "avx512_vnni"};

SimdLevel FirstLevel() {
  const char* wanted = std::getenv("POLYNAO_SIMD");
  if (wanted == nullptr || *wanted == '\0') return HostSimdLevel();
  for (const SimdLevel level : kSimdLevels) {
    if (SimdLevelName(level) == wanted) return std::min(level, HostSimdLevel());
  }
  std::fprintf(stderr, "POLYNAO_SIMD: expected portable, avx2, avx512 or avx512_vnni, found '%s'\n",
               wanted);
  std::exit(1);
}

std::atomic<SimdLevel>& Level() {
  static std::atomic<SimdLevel> level = FirstLevel();
  return level;
}

const Routines& Best() { return kRoutines[static_cast<size_t>(CurrentSimdLevel())]; }

}  // namespace

std::string_view SimdLevelName(SimdLevel level) { return kNames[static_cast<size_t>(level)]; }

SimdLevel HostSimdLevel() {
  static const SimdLevel level = FindHostLevel();
  return level;
}

SimdLevel CurrentSimdLevel() { return Level().load(std::memory_order_relaxed); }

void SetSimdLevel(SimdLevel level) {
  POLYNAO_CHECK(level <= HostSimdLevel()) << SimdLevelName(level);
  Level().store(level, std::memory_order_relaxed);
}

void HalfToFloat(const uint8_t* halves, float* floats, int64_t n) {
  Best().half_to_float(halves, floats, n);
}
void FloatToHalf(const float* floats, uint8_t* halves, int64_t n) {
  Best().float_to_half(floats, halves, n);
}
void RoundToHalf(float* floats, int64_t n) { Best().round_to_half(floats, n); }
float SumToHalf(float acc, const float* x, int64_t n) { return Best().sum_to_half(acc, x, n); }
int32_t DotI8(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  return Best().dot_i8(a, b, shape);
}
int32_t DotI16(const uint8_t* a, const uint8_t* b, const DotRows& shape) {
  return Best().dot_i16(a, b, shape);
}

}  // namespace polynao::isa
