#include "isa/dot_grid.h"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#if !defined(__clang__)
// False positives of GCC 12 inside its AVX512 intrinsics (https://gcc.gnu.org/PR105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

namespace polynao::isa {
namespace {

// Method: the instruction multiplies four bytes (or two 16-bit numbers) of each of 16 lanes and adds them to the lane's sum. The
// lanes' elements are packed so that one vector holds the same four bytes of 16 lanes; four bytes of a window go to all lanes.
// Sums then stay in registers, and no sum across a vector is needed. Packing costs about as much as one window, so it pays for
// several windows only.
constexpr int64_t kMinWindows = 6;
constexpr int kVectorLanes = 16;
constexpr int kStep = 4;  // bytes of a lane that one instruction takes
constexpr int kVectorBytes = kVectorLanes * kStep;
constexpr int kMaxVectors = 4;
constexpr int64_t kMaxPackedBytes = int64_t{8} << 20;

// Four bytes, or the first `left` of them and zeros.
uint32_t ReadStep(const uint8_t* from, int64_t left) {
  uint32_t step = 0;
  std::memcpy(&step, from, left >= kStep ? kStep : static_cast<size_t>(left));
  return step;
}

#if defined(__x86_64__)

#define POLYNAO_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

// Rows of 16 numbers to columns.
POLYNAO_VNNI void Transpose(__m512i (&x)[16]) {
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

// Adds the lanes of one group to `packed`: vectors of 16 lanes stand beside each other, step by step. `flip` makes signed bytes
// unsigned ones that are greater by 128, as the instruction wants its first operand. Lanes and bytes that do not exist get any
// value: results of the ones are not stored, and windows have zeros for the others.
POLYNAO_VNNI void PackGroup(const DotGrid& grid, const uint8_t* b, __m512i flip, uint8_t* packed) {
  const int64_t bytes = grid.shape.n * (grid.is_i16 ? 2 : 1);
  const int64_t vectors = (grid.lanes + kVectorLanes - 1) / kVectorLanes;
  const int64_t steps = (bytes + kStep - 1) / kStep;
  for (int64_t r = 0; r < grid.shape.rows; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      const uint8_t* lane = b + v * kVectorLanes * grid.lane_stride + r * grid.shape.b_stride;
      const int64_t lanes = std::min<int64_t>(grid.lanes - v * kVectorLanes, kVectorLanes);
      for (int64_t first = 0; first < steps; first += 16) {
        const int64_t left = bytes - first * kStep;
        const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        __m512i block[16];
        for (int64_t l = 0; l < kVectorLanes; ++l) {
          // A lane that does not exist is a copy of the last one.
          const uint8_t* from = lane + std::min(l, lanes - 1) * grid.lane_stride + first * kStep;
          block[l] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, from), flip);
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
      const int64_t left = shape.n - i;
      const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
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

// The lanes of one group for kWindows windows.
template <bool kI16, int kWindows, int kVectors>
POLYNAO_VNNI void Block(const DotGrid& grid, const uint8_t* const* a, const int32_t* too_much,
                        const uint8_t* packed, uint8_t* const* dst) {
  __m512i sum[kWindows][kVectors];
  for (int w = 0; w < kWindows; ++w) {
    for (int v = 0; v < kVectors; ++v)
      sum[w][v] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_set1_epi32(too_much[w]));
  }
  const int64_t bytes = grid.shape.n * (kI16 ? 2 : 1);
  for (int64_t r = 0; r < grid.shape.rows; ++r) {
    const int64_t row = r * grid.shape.a_stride;
    const uint8_t* from[kWindows];
    for (int w = 0; w < kWindows; ++w) from[w] = a[w] + row;
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
      const int64_t left = grid.lanes - v * kVectorLanes;
      const __mmask16 mask = left >= kVectorLanes ? static_cast<__mmask16>(0xffff)
                                                  : static_cast<__mmask16>((1 << left) - 1);
      uint8_t* to = dst[w] + v * kVectorBytes;
      __m512i result = sum[w][v];
      if (grid.adds) result = _mm512_add_epi32(result, _mm512_maskz_loadu_epi32(mask, to));
      _mm512_mask_storeu_epi32(to, mask, result);
    }
  }
}

using BlockRoutine = void (*)(const DotGrid&, const uint8_t* const*, const int32_t*, const uint8_t*,
                              uint8_t* const*);
constexpr int kBlockWindows = 4;

template <bool kI16, int kWindows>
BlockRoutine RoutineFor(int64_t vectors) {
  constexpr BlockRoutine kRoutines[] = {Block<kI16, kWindows, 1>, Block<kI16, kWindows, 2>,
                                        Block<kI16, kWindows, 3>, Block<kI16, kWindows, 4>};
  return kRoutines[vectors - 1];
}

template <bool kI16>
class Runner {
 public:
  Runner(const DotGrid& grid, const uint8_t* packed, int64_t group_bytes)
      : grid_(grid),
        packed_(packed),
        group_bytes_(group_bytes),
        one_(RoutineFor<kI16, 1>((grid.lanes + kVectorLanes - 1) / kVectorLanes)),
        block_(RoutineFor<kI16, kBlockWindows>((grid.lanes + kVectorLanes - 1) / kVectorLanes)) {}

  void Windows(int depth, const uint8_t* a, uint8_t* dst) {
    if (depth == grid_.window_depth) return Take(a, dst);
    const DotGrid::WindowLoop& loop = grid_.windows[depth];
    for (int64_t i = 0; i < loop.count; ++i) {
      Windows(depth + 1, a + i * loop.a_stride, dst + i * loop.dst_stride);
    }
  }

  // The windows that wait for a full block.
  void Finish() {
    for (int w = 0; w < waiting_; ++w) {
      next_group_ = packed_;
      Groups(one_, 0, w, 1, 0);
    }
    waiting_ = 0;
  }

 private:
  void Take(const uint8_t* a, uint8_t* dst) {
    a_[waiting_] = a;
    dst_[waiting_] = dst;
    too_much_[waiting_] = kI16 ? 0 : FlippedSum(grid_.shape, a);
    if (++waiting_ < kBlockWindows) return;
    next_group_ = packed_;
    Groups(block_, 0, 0, kBlockWindows, 0);
    waiting_ = 0;
  }

  void Groups(BlockRoutine routine, int depth, int first, int windows, int64_t offset) {
    if (depth == grid_.group_depth) {
      uint8_t* dst[kBlockWindows];
      for (int w = 0; w < windows; ++w) dst[w] = dst_[first + w] + offset;
      routine(grid_, a_ + first, too_much_ + first, next_group_, dst);
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
  const BlockRoutine one_, block_;
  const uint8_t* next_group_ = nullptr;
  const uint8_t* a_[kBlockWindows];
  uint8_t* dst_[kBlockWindows];
  int32_t too_much_[kBlockWindows];
  int waiting_ = 0;
};

POLYNAO_VNNI void PackGroups(const DotGrid& grid, int depth, const uint8_t* b, int64_t group_bytes,
                             uint8_t*& next) {
  if (depth == grid.group_depth) {
    PackGroup(grid, b, _mm512_set1_epi8(grid.is_i16 ? 0 : static_cast<char>(0x80)), next);
    next += group_bytes;
    return;
  }
  const DotGrid::GroupLoop& loop = grid.groups[depth];
  for (int64_t i = 0; i < loop.count; ++i) {
    PackGroups(grid, depth + 1, b + i * loop.b_stride, group_bytes, next);
  }
}

bool RunVnni(const DotGrid& grid, const uint8_t* a, const uint8_t* b, uint8_t* dst) {
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
  const int64_t steps = (grid.shape.n * (grid.is_i16 ? 2 : 1) + kStep - 1) / kStep;
  const int64_t vectors = (grid.lanes + kVectorLanes - 1) / kVectorLanes;
  const int64_t group_bytes = grid.shape.rows * steps * vectors * kVectorBytes;
  if (group_bytes > kMaxPackedBytes || groups * group_bytes > kMaxPackedBytes) return false;
  static thread_local std::vector<uint8_t> packed;
  if (static_cast<int64_t>(packed.size()) < groups * group_bytes) {
    packed.resize(static_cast<size_t>(groups * group_bytes));
  }
  uint8_t* next = packed.data();
  PackGroups(grid, 0, b, group_bytes, next);
  if (grid.is_i16) {
    Runner<true> runner(grid, packed.data(), group_bytes);
    runner.Windows(0, a, dst);
    runner.Finish();
  } else {
    Runner<false> runner(grid, packed.data(), group_bytes);
    runner.Windows(0, a, dst);
    runner.Finish();
  }
  return true;
}

#endif

}  // namespace

bool RunDotGrid(const DotGrid& grid, const uint8_t* a, const uint8_t* b, uint8_t* dst) {
#if defined(__x86_64__)
  if (CurrentSimdLevel() == SimdLevel::kAvx512Vnni) return RunVnni(grid, a, b, dst);
#endif
  return false;
}

}  // namespace polynao::isa
