// What the machine does at most in a second: multiply-adds in registers of one core, and bytes that so many threads
// read from memory. The best of some runs.
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if (defined(__AMX_INT8__) || defined(__AMX_BF16__)) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

// A register, and independent sums: two units, four cycles each, and some to spare.
#if defined(__AVX512F__)
enum { kVectorBytes = 64, kChains = 16 };
#elif defined(__AVX__)
enum { kVectorBytes = 32, kChains = 10 };
#else
enum { kVectorBytes = 16, kChains = 10 };
#endif
enum { kLanes = kVectorBytes / 4 };

typedef float Vector __attribute__((vector_size(kVectorBytes)));

double roof_f32(void) {
  const int64_t steps = 2000000;
  double best = 0;
  for (int run = 0; run < 10; ++run) {
    Vector sums[kChains], a, b;
    for (int l = 0; l < kLanes; ++l) a[l] = 0.999f, b[l] = 1e-6f * (float)(l + run);
    for (int c = 0; c < kChains; ++c) sums[c] = b + (float)c;
    const double begin = omp_get_wtime();
    for (int64_t i = 0; i < steps; ++i) {
      __asm__ volatile("" : "+x"(a), "+x"(b));
      for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * a + b;
    }
    float keep = 0;
    for (int c = 0; c < kChains; ++c) keep += sums[c][0];
    const double rate = (double)steps * kChains * kLanes / (omp_get_wtime() - begin);
    if (rate > best && keep != 1.25f) best = rate;
  }
  return best;
}

#if (defined(__AMX_INT8__) || defined(__AMX_BF16__)) && defined(__linux__)
enum { kArchReqXcompPerm = 0x1023, kTileData = 18, kRows = 16, kRowBytes = 64, kTiles = 8 };

// Tiles of zeros, in the largest size. 0: the system gives them to us.
static int get_tiles(void) {
  if (syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) != 0) return 1;
  unsigned char config[64];
  memset(config, 0, sizeof(config));
  config[0] = 1;
  for (int i = 0; i < kTiles; ++i) config[16 + 2 * i] = kRowBytes, config[48 + i] = kRows;
  _tile_loadconfig(config);
  return 0;
}

// double NAME(void), with the rate of PRODUCT on elements of BYTES. Many runs: what shares the core uses its one unit
// for tiles, too.
#define TILES(NAME, PRODUCT, BYTES)                                                               \
  static double NAME(void) {                                                                      \
    if (get_tiles() != 0) return 0;                                                               \
    const int64_t steps = 200000;                                                                 \
    double best = 0;                                                                              \
    for (int run = 0; run < 100; ++run) {                                                         \
      const double begin = omp_get_wtime();                                                       \
      for (int64_t i = 0; i < steps; ++i) {                                                       \
        PRODUCT(0, 4, 6);                                                                         \
        PRODUCT(1, 4, 7);                                                                         \
        PRODUCT(2, 5, 6);                                                                         \
        PRODUCT(3, 5, 7);                                                                         \
      }                                                                                           \
      const double rate =                                                                         \
          (double)steps * 4 * kRows * kRows * (kRowBytes / (BYTES)) / (omp_get_wtime() - begin);  \
      if (rate > best) best = rate;                                                               \
    }                                                                                             \
    _tile_release();                                                                              \
    return best;                                                                                  \
  }
#endif

// 0: the processor has no tiles of bytes, the compiler does not know them, or the system does not give them to us.
#if defined(__AMX_INT8__) && defined(__linux__)
TILES(tiles_i8, _tile_dpbssd, 1)
#else
static double tiles_i8(void) { return 0; }
#endif

// The same for tiles of bf16.
#if defined(__AMX_BF16__) && defined(__linux__)
TILES(tiles_bf16, _tile_dpbf16ps, 2)
#else
static double tiles_bf16(void) { return 0; }
#endif

// Products of bytes added to sums of 32 bits, exactly: four by one instruction, or two by one and their sum by another.
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
enum { kProducts = 64 };
typedef __m512i Words;
#define ADD(sum) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#elif defined(__AVX2__)
enum { kProducts = 16 };
typedef __m256i Words;
#define ADD(sum)                                             \
  __asm__ volatile("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" \
                   : "+x"(sum), "=&x"(products)              \
                   : "x"(a), "x"(b))
#endif

// 0: the processor has no such instructions, or the compiler does not know them.
static double vectors_i8(void) {
#if defined(ADD)
  const int64_t steps = 2000000;
  double best = 0;
  for (int run = 0; run < 10; ++run) {
    // Ten variables, not an array: an array stays in memory.
    Words a, b, products;
    memset(&a, run, sizeof(a));
    memset(&b, run + 1, sizeof(b));
    products = a;
    Words s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a;
    const double begin = omp_get_wtime();
    for (int64_t i = 0; i < steps; ++i) {
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
    }
    const double seconds = omp_get_wtime() - begin;
    const Words sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + products;
    const double rate = (double)steps * 10 * kProducts / seconds;
    if (rate > best && sum[0] != 1) best = rate;
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

// bf16 as a library takes them: in tiles, or as f32 (vdpbf16ps multiplies no more in a cycle than two vfmadd).
double roof_bf16(void) {
  const double tiles = tiles_bf16();
  return tiles > 0 ? tiles : roof_f32();
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
