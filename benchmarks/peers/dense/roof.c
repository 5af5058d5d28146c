// What the machine does at most in a second: multiply-adds in registers of one core, and bytes that so many threads
// read from memory. The best of some runs.
#include <omp.h>
#include <stdlib.h>
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#include <immintrin.h>
#endif
#if defined(__AMX_INT8__) && defined(__linux__)
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

typedef float Vector __attribute__((vector_size(64)));

enum { kChains = 16 };  // independent sums: two units, four cycles each, and some to spare

double roof_f32(void) {
  const int64_t steps = 2000000;
  double best = 0;
  for (int run = 0; run < 10; ++run) {
    Vector sums[kChains], a, b;
    for (int l = 0; l < 16; ++l) a[l] = 0.999f, b[l] = 1e-6f * (float)(l + run);
    for (int c = 0; c < kChains; ++c) sums[c] = b + (float)c;
    const double begin = omp_get_wtime();
    for (int64_t i = 0; i < steps; ++i) {
      __asm__ volatile("" : "+x"(a), "+x"(b));
      for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * a + b;
    }
    float keep = 0;
    for (int c = 0; c < kChains; ++c) keep += sums[c][0];
    const double rate = (double)steps * kChains * 16 / (omp_get_wtime() - begin);
    if (rate > best && keep != 1.25f) best = rate;
  }
  return best;
}

// 0: the processor has no tiles of bytes, the compiler does not know them, or the system does not give them to us.
static double tiles_i8(void) {
#if defined(__AMX_INT8__) && defined(__linux__)
  enum { kArchReqXcompPerm = 0x1023, kTileData = 18, kRows = 16, kRowBytes = 64, kTiles = 8 };
  if (syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) != 0) return 0;
  unsigned char config[64];
  memset(config, 0, sizeof(config));
  config[0] = 1;
  for (int i = 0; i < kTiles; ++i) config[16 + 2 * i] = kRowBytes, config[48 + i] = kRows;
  _tile_loadconfig(config);
  const int64_t steps = 200000;
  double best = 0;
  // Many runs: what shares the core uses its one unit for tiles, too.
  for (int run = 0; run < 100; ++run) {
    const double begin = omp_get_wtime();
    for (int64_t i = 0; i < steps; ++i) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      _tile_dpbssd(2, 5, 6);
      _tile_dpbssd(3, 5, 7);
    }
    const double rate = (double)steps * 4 * kRows * kRows * kRowBytes / (omp_get_wtime() - begin);
    if (rate > best) best = rate;
  }
  _tile_release();
  return best;
#else
  return 0;
#endif
}

// 0: the processor has no dot products of bytes, or the compiler does not know them.
static double vectors_i8(void) {
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
  const int64_t steps = 2000000;
  double best = 0;
  for (int run = 0; run < 10; ++run) {
    // Twelve variables, not an array: an array stays in memory.
    const __m512i a = _mm512_set1_epi32(run), b = _mm512_set1_epi32(run + 1);
    __m512i s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a, s10 = a,
            s11 = a;
    const double begin = omp_get_wtime();
    for (int64_t i = 0; i < steps; ++i) {
#define ADD(sum) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
      ADD(s0);
      ADD(s1);
      ADD(s2);
      ADD(s3);
      ADD(s4);
      ADD(s5);
      ADD(s6);
      ADD(s7);
      ADD(s8);
      ADD(s9);
      ADD(s10);
      ADD(s11);
#undef ADD
    }
    const int keep =
        _mm512_reduce_add_epi32(s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11);
    const double rate = (double)steps * 12 * 64 / (omp_get_wtime() - begin);
    if (rate > best && keep != 1) best = rate;
  }
  return best;
#else
  return 0;
#endif
}

double roof_i8(void) {
  const double tiles = tiles_i8(), vectors = vectors_i8();
  return tiles > vectors ? tiles : vectors;
}

double roof_bytes(int threads) {
  const int64_t count = (int64_t)64 << 20;  // floats: more than caches hold
  float* memory = aligned_alloc(4096, (size_t)count * sizeof(float));
  if (memory == NULL) return 0;
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < count; ++i) memory[i] = 1.0f;
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    float sum = 0;
    const double begin = omp_get_wtime();
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) sum += memory[i];
    const double rate = (double)count * sizeof(float) / (omp_get_wtime() - begin);
    if (rate > best && sum > 0) best = rate;
  }
  free(memory);
  return best;
}
