#include "isa/dot_grid.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "isa/simd_masks.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// False positives of GCC 12 inside its AVX512 intrinsics (https://gcc.gnu.org/PR105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

namespace polynao::isa {
namespace {

// Method: the instruction multiplies four bytes (or two 16-bit numbers) of each of 16 lanes and adds them to the lane's
// sum. The lanes' elements are packed so that one vector holds the same four bytes of 16 lanes; four bytes of a window
// go to all lanes. Sums then stay in registers, and no sum across a vector is needed. Packing costs about as much as
// one window, so it pays for several windows only.
//
// Floats go the same way, one element of a lane at a time, as f32: a lane's sum is rounded after each product, in the
// order of the elements, and lanes do not meet.
constexpr int64_t kMinWindows = 6;
constexpr int kVectorLanes = 16;
constexpr int kStep = 4;  // bytes of a lane that one instruction takes
constexpr int kVectorBytes = kVectorLanes * kStep;
constexpr int kMaxVectors = 4;
constexpr int kBlockWindows = 4;
constexpr int64_t kMaxPackedBytes = int64_t{8} << 20;

// Four bytes, or the first `left` of them and zeros.
uint32_t ReadStep(const uint8_t* from, int64_t left) {
  uint32_t step = 0;
  std::memcpy(&step, from, left >= kStep ? kStep : static_cast<size_t>(left));
  return step;
}

#if defined(__x86_64__)

#define POLYNAO_AVX512 __attribute__((target("avx512f,avx512bw")))
#define POLYNAO_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

// Rows of 16 numbers to columns.
POLYNAO_AVX512 void Transpose(__m512i (&x)[16]) {
  __m512i y[16];
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  // Now in each quarter of a vector: 4 x 4 numbers.
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  // x[4 g + c] holds column c of each quarter, of rows 4 g to 4 g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88);
    const __m512i high01 = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xdd);
    const __m512i low23 = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88);
    const __m512i high23 = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xdd);
    y[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    y[4 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    y[8 + c] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    y[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// The first 16 steps of a lane, or `left` of its bytes and zeros. Signed bytes become unsigned ones that are greater by
// 128, as the instruction wants its first operand.
struct IntSteps {
  explicit IntSteps(const DotGrid& grid)
      : bytes(grid.shape.n * ir::ByteSize(grid.element)),
        flip(grid.element == ir::Type::kI8 ? 0x80 : 0) {}
  POLYNAO_AVX512 __m512i Load(const uint8_t* lane, int64_t first) const {
    const __m512i loaded =
        _mm512_maskz_loadu_epi8(First<__mmask64>(bytes - first * kStep), lane + first * kStep);
    return _mm512_xor_si512(loaded, _mm512_set1_epi8(static_cast<char>(flip)));
  }
  int64_t steps() const { return (bytes + kStep - 1) / kStep; }
  int64_t bytes;
  int flip;
};

// The same of floats, which become f32.
struct FloatSteps {
  explicit FloatSteps(const DotGrid& grid)
      : n(grid.shape.n), is_half(grid.element == ir::Type::kF16) {}
  POLYNAO_AVX512 __m512i Load(const uint8_t* lane, int64_t first) const {
    const __mmask16 mask = First<__mmask16>(n - first);
    if (!is_half) return _mm512_maskz_loadu_epi32(mask, lane + 4 * first);
    const __m512i halves = _mm512_maskz_loadu_epi16(mask, lane + 2 * first);
    return _mm512_castps_si512(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)));
  }
  int64_t steps() const { return n; }
  int64_t n;
  bool is_half;
};

// Adds the lanes of one group to `packed`: vectors of 16 lanes stand beside each other, step by step. Lanes and bytes
// that do not exist get any value: results of the ones are not stored, and windows have zeros for the others.
template <typename Steps>
POLYNAO_AVX512 void PackGroup(const DotGrid& grid, const uint8_t* b, const Steps& of,
                              uint8_t* packed) {
  const int64_t vectors = (grid.lanes + kVectorLanes - 1) / kVectorLanes;
  const int64_t steps = of.steps();
  for (int64_t r = 0; r < grid.shape.rows; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      const uint8_t* lane = b + v * kVectorLanes * grid.lane_stride + r * grid.shape.b_stride;
      const int64_t lanes = std::min<int64_t>(grid.lanes - v * kVectorLanes, kVectorLanes);
      for (int64_t first = 0; first < steps; first += 16) {
        __m512i block[16];
        for (int64_t l = 0; l < kVectorLanes; ++l) {
          // A lane that does not exist is a copy of the last one.
          block[l] = of.Load(lane + std::min(l, lanes - 1) * grid.lane_stride, first);
        }
        Transpose(block);
        uint8_t* to = packed + ((r * steps + first) * vectors + v) * kVectorBytes;
        const int64_t count = std::min<int64_t>(steps - first, 16);
        for (int64_t s = 0; s < count; ++s, to += vectors * kVectorBytes) {
          _mm512_storeu_si512(to, block[s]);
        }
      }
    }
  }
}

template <bool kI16>
POLYNAO_VNNI inline __m512i MultiplyAdd(__m512i sum, __m512i lanes, __m512i window) {
  if constexpr (kI16) return _mm512_dpwssd_epi32(sum, lanes, window);
  return _mm512_dpbusd_epi32(sum, lanes, window);
}

// 128 times the sum of a window's bytes: what flipped lanes have too much.
POLYNAO_VNNI int32_t FlippedSum(const DotRows& shape, const uint8_t* a) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t r = 0; r < shape.rows; ++r, a += shape.a_stride) {
    for (int64_t i = 0; i < shape.n; i += 64) {
      const __mmask64 mask = First<__mmask64>(shape.n - i);
      sum = _mm512_dpbusd_epi32(sum, ones, _mm512_maskz_loadu_epi8(mask, a + i));
    }
  }
  const __m256i half =
      _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
  __m128i quarter = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  quarter = _mm_add_epi32(quarter, _mm_shuffle_epi32(quarter, 0x4e));
  quarter = _mm_add_epi32(quarter, _mm_shuffle_epi32(quarter, 0xb1));
  return static_cast<int32_t>(static_cast<uint32_t>(_mm_cvtsi128_si32(quarter)) << 7);
}

template <bool kI16, int kWindows, int kVectors>
POLYNAO_VNNI inline void AddStep(const uint32_t* steps, const uint8_t* packed,
                                 __m512i (&sum)[kWindows][kVectors]) {
  __m512i lanes[kVectors];
  for (int v = 0; v < kVectors; ++v) lanes[v] = _mm512_loadu_si512(packed + v * kVectorBytes);
  for (int w = 0; w < kWindows; ++w) {
    const __m512i window = _mm512_set1_epi32(static_cast<int>(steps[w]));
    for (int v = 0; v < kVectors; ++v) {
      sum[w][v] = MultiplyAdd<kI16>(sum[w][v], lanes[v], window);
    }
  }
}

// How integers are multiplied.
template <bool kI16>
struct IntForm {
  struct Window {
    const uint8_t* a;
    int32_t too_much;
  };
  static Window Prepare(const DotGrid& grid, const uint8_t* a, int /*place*/) {
    return {a, kI16 ? 0 : FlippedSum(grid.shape, a)};
  }

  // The lanes of one group for kWindows windows.
  template <int kWindows, int kVectors>
  POLYNAO_VNNI static void Block(const DotGrid& grid, const Window* windows, const uint8_t* packed,
                                 uint8_t* const* dst) {
    __m512i sum[kWindows][kVectors];
    for (int w = 0; w < kWindows; ++w) {
      for (int v = 0; v < kVectors; ++v) {
        sum[w][v] =
            _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_set1_epi32(windows[w].too_much));
      }
    }
    const int64_t bytes = grid.shape.n * (kI16 ? 2 : 1);
    for (int64_t r = 0; r < grid.shape.rows; ++r) {
      const uint8_t* from[kWindows];
      for (int w = 0; w < kWindows; ++w) from[w] = windows[w].a + r * grid.shape.a_stride;
      int64_t i = 0;
      for (; i + kStep <= bytes; i += kStep, packed += kVectors * kVectorBytes) {
        uint32_t steps[kWindows];
        for (int w = 0; w < kWindows; ++w) std::memcpy(&steps[w], from[w] + i, kStep);
        AddStep<kI16, kWindows, kVectors>(steps, packed, sum);
      }
      if (i < bytes) {
        uint32_t steps[kWindows];
        for (int w = 0; w < kWindows; ++w) steps[w] = ReadStep(from[w] + i, bytes - i);
        AddStep<kI16, kWindows, kVectors>(steps, packed, sum);
        packed += kVectors * kVectorBytes;
      }
    }
    for (int w = 0; w < kWindows; ++w) {
      for (int v = 0; v < kVectors; ++v) {
        const __mmask16 mask = First<__mmask16>(grid.lanes - v * kVectorLanes);
        uint8_t* to = dst[w] + v * kVectorBytes;
        __m512i result = sum[w][v];
        if (grid.adds) result = _mm512_add_epi32(result, _mm512_maskz_loadu_epi32(mask, to));
        _mm512_mask_storeu_epi32(to, mask, result);
      }
    }
  }
};

// How floats are multiplied. The product of two halves is exact in f32, so that one rounding of product and sum is that
// of the sum.
template <bool kHalf>
struct FloatForm {
  struct Window {
    const float* a;  // its elements, row by row
  };
  static Window Prepare(const DotGrid& grid, const uint8_t* a, int place) {
    static thread_local std::vector<float> elements[kBlockWindows];
    std::vector<float>& to = elements[place];
    const auto count = static_cast<size_t>(grid.shape.rows * grid.shape.n);
    if (to.size() < count) to.resize(count);
    for (int64_t r = 0; r < grid.shape.rows; ++r, a += grid.shape.a_stride) {
      float* row = to.data() + r * grid.shape.n;
      if constexpr (kHalf) {
        HalfToFloat(a, row, grid.shape.n);
      } else {
        std::memcpy(row, a, static_cast<size_t>(grid.shape.n) * sizeof(float));
      }
    }
    return {to.data()};
  }

  template <int kWindows, int kVectors>
  POLYNAO_AVX512 static void Block(const DotGrid& grid, const Window* windows,
                                   const uint8_t* packed, uint8_t* const* dst) {
    __m512 sum[kWindows][kVectors];
    __mmask16 mask[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      mask[v] = First<__mmask16>(grid.lanes - v * kVectorLanes);
      for (int w = 0; w < kWindows; ++w) {
        sum[w][v] = grid.adds ? _mm512_maskz_loadu_ps(mask[v], dst[w] + v * kVectorBytes)
                              : _mm512_setzero_ps();
      }
    }
    const int64_t count = grid.shape.rows * grid.shape.n;
    for (int64_t i = 0; i < count; ++i, packed += kVectors * kVectorBytes) {
      __m512 lanes[kVectors];
      for (int v = 0; v < kVectors; ++v) lanes[v] = _mm512_loadu_ps(packed + v * kVectorBytes);
      for (int w = 0; w < kWindows; ++w) {
        const __m512 element = _mm512_set1_ps(windows[w].a[i]);
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kHalf) {
            sum[w][v] = _mm512_fmadd_ps(element, lanes[v], sum[w][v]);
          } else {
            sum[w][v] = _mm512_add_ps(sum[w][v], _mm512_mul_ps(element, lanes[v]));
          }
        }
      }
    }
    for (int w = 0; w < kWindows; ++w) {
      for (int v = 0; v < kVectors; ++v) {
        _mm512_mask_storeu_ps(dst[w] + v * kVectorBytes, mask[v], sum[w][v]);
      }
    }
  }
};

template <typename Form>
using BlockRoutine = void (*)(const DotGrid&, const typename Form::Window*, const uint8_t*,
                              uint8_t* const*);

template <typename Form, int kWindows>
BlockRoutine<Form> RoutineFor(int64_t vectors) {
  constexpr BlockRoutine<Form> kRoutines[] = {
      Form::template Block<kWindows, 1>, Form::template Block<kWindows, 2>,
      Form::template Block<kWindows, 3>, Form::template Block<kWindows, 4>};
  return kRoutines[vectors - 1];
}

template <typename Form>
class Runner {
 public:
  Runner(const DotGrid& grid, const uint8_t* packed, int64_t group_bytes)
      : grid_(grid),
        packed_(packed),
        group_bytes_(group_bytes),
        one_(RoutineFor<Form, 1>((grid.lanes + kVectorLanes - 1) / kVectorLanes)),
        block_(RoutineFor<Form, kBlockWindows>((grid.lanes + kVectorLanes - 1) / kVectorLanes)) {}

  void Run(const uint8_t* a, uint8_t* dst) {
    Windows(0, a, dst);
    // Those that wait for a full block.
    for (int w = 0; w < waiting_; ++w) {
      next_group_ = packed_;
      Groups(one_, 0, w, 1, 0);
    }
  }

 private:
  void Windows(int depth, const uint8_t* a, uint8_t* dst) {
    if (depth == grid_.window_depth) return Take(a, dst);
    const DotGrid::WindowLoop& loop = grid_.windows[depth];
    for (int64_t i = 0; i < loop.count; ++i) {
      Windows(depth + 1, a + i * loop.a_stride, dst + i * loop.dst_stride);
    }
  }

  void Take(const uint8_t* a, uint8_t* dst) {
    windows_[waiting_] = Form::Prepare(grid_, a, waiting_);
    dst_[waiting_] = dst;
    if (++waiting_ < kBlockWindows) return;
    next_group_ = packed_;
    Groups(block_, 0, 0, kBlockWindows, 0);
    waiting_ = 0;
  }

  void Groups(BlockRoutine<Form> routine, int depth, int first, int windows, int64_t offset) {
    if (depth == grid_.group_depth) {
      uint8_t* dst[kBlockWindows];
      for (int w = 0; w < windows; ++w) dst[w] = dst_[first + w] + offset;
      routine(grid_, windows_ + first, next_group_, dst);
      next_group_ += group_bytes_;
      return;
    }
    const DotGrid::GroupLoop& loop = grid_.groups[depth];
    for (int64_t i = 0; i < loop.count; ++i) {
      Groups(routine, depth + 1, first, windows, offset + i * loop.dst_stride);
    }
  }

  const DotGrid& grid_;
  const uint8_t* const packed_;
  const int64_t group_bytes_;
  const BlockRoutine<Form> one_, block_;
  const uint8_t* next_group_ = nullptr;
  typename Form::Window windows_[kBlockWindows];
  uint8_t* dst_[kBlockWindows];
  int waiting_ = 0;
};

template <typename Steps>
void PackGroups(const DotGrid& grid, int depth, const uint8_t* b, const Steps& steps,
                int64_t group_bytes, uint8_t*& next) {
  if (depth == grid.group_depth) {
    PackGroup(grid, b, steps, next);
    next += group_bytes;
    return;
  }
  const DotGrid::GroupLoop& loop = grid.groups[depth];
  for (int64_t i = 0; i < loop.count; ++i) {
    PackGroups(grid, depth + 1, b + i * loop.b_stride, steps, group_bytes, next);
  }
}

template <typename Form, typename Steps>
bool RunForm(const DotGrid& grid, const uint8_t* a, const uint8_t* b, uint8_t* dst) {
  // Counts come from registers: each is bounded before it is multiplied.
  constexpr int64_t kMany = int64_t{1} << 20;
  int64_t windows = 1, groups = 1;
  for (int d = 0; d < grid.window_depth; ++d) {
    windows = std::min(windows, kMany) * std::clamp<int64_t>(grid.windows[d].count, 0, kMany);
  }
  for (int d = 0; d < grid.group_depth; ++d) {
    groups = std::min(groups, kMany) * std::clamp<int64_t>(grid.groups[d].count, 0, kMany);
  }
  if (windows < kMinWindows || grid.lanes < kVectorLanes / 2 ||
      grid.lanes > kMaxVectors * kVectorLanes || grid.shape.n < 1 || grid.shape.rows < 1 ||
      grid.shape.n > kMany || grid.shape.rows > kMany) {
    return false;
  }
  const Steps steps(grid);
  const int64_t vectors = (grid.lanes + kVectorLanes - 1) / kVectorLanes;
  const int64_t group_bytes = grid.shape.rows * steps.steps() * vectors * kVectorBytes;
  if (group_bytes > kMaxPackedBytes || groups * group_bytes > kMaxPackedBytes) return false;
  static thread_local std::vector<uint8_t> packed;
  if (static_cast<int64_t>(packed.size()) < groups * group_bytes) {
    packed.resize(static_cast<size_t>(groups * group_bytes));
  }
  uint8_t* next = packed.data();
  PackGroups(grid, 0, b, steps, group_bytes, next);
  Runner<Form>(grid, packed.data(), group_bytes).Run(a, dst);
  return true;
}

#endif

}  // namespace

bool RunDotGrid(const DotGrid& grid, const uint8_t* a, const uint8_t* b, uint8_t* dst) {
#if defined(__x86_64__)
  const SimdLevel level = CurrentSimdLevel();
  if (ir::IsFloat(grid.element)) {
    if (level < SimdLevel::kAvx512) return false;
    return grid.element == ir::Type::kF16 ? RunForm<FloatForm<true>, FloatSteps>(grid, a, b, dst)
                                          : RunForm<FloatForm<false>, FloatSteps>(grid, a, b, dst);
  }
  if (level < SimdLevel::kAvx512Vnni) return false;
  return grid.element == ir::Type::kI16 ? RunForm<IntForm<true>, IntSteps>(grid, a, b, dst)
                                        : RunForm<IntForm<false>, IntSteps>(grid, a, b, dst);
#else
  return false;
#endif
}

}  // namespace polynao::isa
