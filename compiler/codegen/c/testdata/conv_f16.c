#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#if !defined(NAO_CONTRACT)
#pragma STDC FP_CONTRACT OFF
#endif
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#if defined(__GNUC__) && !defined(_OPENMP)
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

static inline float nao_min_f32(float a, float b) { return b < a ? b : a; }

static inline float nao_max_f32(float a, float b) { return a < b ? b : a; }

static inline uint32_t nao_bits_of_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float nao_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline double nao_f64_of_bits(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// IEEE binary16, by its bits.
static inline float nao_f32_of_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
  const uint32_t normal = magnitude + ((uint32_t)112 << 23);
  const uint32_t special = magnitude | 0x7f800000;
  const uint32_t small = nao_bits_of_f32((float)(h & 0x3ff) * 0x1p-24f);
  const uint32_t exponent = h & 0x7c00;
  return nao_f32_of_bits(sign | (exponent == 0 ? small : exponent == 0x7c00 ? special : normal));
}

// Rounds to nearest even.
static inline uint16_t nao_f16_of_f32(float x) {
  const uint32_t bits = nao_bits_of_f32(x);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + odd) >> 13;
  const uint32_t small = nao_bits_of_f32(nao_f32_of_bits(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  const uint32_t rounded = magnitude < 0x38800000 ? small : magnitude < 0x47800000 ? normal : special;
  return (uint16_t)((bits >> 16 & 0x8000) | rounded);
}

static inline float nao_round_f16(float x) { return nao_f32_of_f16(nao_f16_of_f32(x)); }

// func conv.f16(A: f16[h, w, 16] in, W: f16[3, 3, 16] in, bias: f32[16] in, B: f16[h, w, 16] out, h: i32, w: i32, limit: f32)
void conv_f16(
    const uint16_t *restrict A,
    const uint16_t *restrict W,
    const float *restrict bias,
    uint16_t *restrict B,
    int32_t h,
    int32_t w,
    float limit) {
  const int32_t y_count = h > 0 ? h : 0;
  #pragma omp parallel for
  for (int32_t y = 0; y < y_count; ++y) {
    for (int32_t x = 0; x < w; ++x) {
      _Alignas(64) float sum[16];  // local
      #pragma omp simd
      for (int32_t c = 0; c < 16; ++c) {
        sum[c] = bias[c];
      }
      for (int32_t ky = 0; ky < 3; ++ky) {
        for (int32_t kx = 0; kx < 3; ++kx) {
          if (0 <= y + ky - 1 && y + ky - 1 < h && 0 <= x + kx - 1 && x + kx - 1 < w) {
            #pragma omp simd
            for (int32_t c = 0; c < 16; ++c) {
              sum[c] = sum[c] + nao_round_f16(nao_f32_of_f16(A[((int64_t)(y + ky - 1) * w + x + kx - 1) * 16 + c]) * nao_f32_of_f16(W[(ky * 3 + kx) * 16 + c]));
            }
          }
        }
      }
      for (int32_t cc = 0; cc < 16; ++cc) {
        const float v = nao_min_f32(nao_max_f32(sum[cc / 4 * 4 + cc % 4], 0.0f), limit);
        B[((int64_t)y * w + x) * 16 + cc] = nao_f16_of_f32(v);
      }
    }
  }
}

int32_t conv_f16_entry(void *const *buffers, const int64_t *scalars) {
  conv_f16(buffers[0], buffers[1], buffers[2], buffers[3], (int32_t)scalars[0], (int32_t)scalars[1], (float)nao_f64_of_bits(scalars[2]));
  return 0;
}
