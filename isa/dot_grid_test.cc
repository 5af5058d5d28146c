// POLYNAO_RANDOM_CASES=20000 tries more random grids, POLYNAO_SEED=7 begins with that one.

#include "isa/dot_grid.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "compiler/ir/type.h"
#include "gtest/gtest.h"
#include "isa/native_grid.h"
#include "isa/simd_testing.h"
#include "testing/fuzz.h"

namespace polynao::isa {
namespace {

// Many bytes are the one whose product is largest.
std::vector<uint8_t> RandomBytes(int64_t size, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = random() % 5 ? static_cast<uint8_t>(random()) : 0x80;
  return bytes;
}

// As the interpreter does: each product and each sum in f64, rounded to f32.
void AddProducts(const DotGrid& grid, const uint8_t* window, const uint8_t* lane, uint8_t* dst) {
  const int64_t size = ir::ByteSize(grid.element);
  double sum = grid.adds ? ir::LoadFloat(ir::Type::kF32, dst) : 0;
  for (int64_t r = 0; r < grid.shape.rows; ++r) {
    for (int64_t i = 0; i < grid.shape.n; ++i) {
      const double product =
          ir::LoadFloat(grid.element, window + r * grid.shape.a_stride + i * size) *
          ir::LoadFloat(grid.element, lane + r * grid.shape.b_stride + i * size);
      sum = ir::RoundFloat(ir::Type::kF32, sum + ir::RoundFloat(ir::Type::kF32, product));
    }
  }
  // A NaN may have any payload.
  ir::StoreFloat(ir::Type::kF32, dst, sum);
}

// Whether both hold the same numbers, where NaNs are equal.
bool Agree(ir::Type element, const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  if (!ir::IsFloat(element)) return a == b;
  for (size_t i = 0; i + 4 <= a.size(); i += 4) {
    if (std::memcmp(&a[i], &b[i], 4) == 0) continue;
    if (!std::isnan(ir::LoadFloat(ir::Type::kF32, &a[i])) ||
        !std::isnan(ir::LoadFloat(ir::Type::kF32, &b[i]))) {
      return false;
    }
  }
  return true;
}

// The grid, window by window and lane by lane.
void RunSlowly(const DotGrid& grid, const uint8_t* a, const uint8_t* b, uint8_t* dst) {
  const auto& [rows, columns] = std::pair(grid.windows[0], grid.windows[1]);
  for (int64_t y = 0; y < rows.count; ++y) {
    for (int64_t x = 0; x < columns.count; ++x) {
      for (int64_t g = 0; g < grid.groups[0].count; ++g) {
        for (int64_t l = 0; l < grid.lanes; ++l) {
          const uint8_t* window = a + y * rows.a_stride + x * columns.a_stride;
          const uint8_t* lane = b + g * grid.groups[0].b_stride + l * grid.lane_stride;
          uint8_t* to = dst + y * rows.dst_stride + x * columns.dst_stride +
                        g * grid.groups[0].dst_stride + 4 * l;
          if (ir::IsFloat(grid.element)) {
            AddProducts(grid, window, lane, to);
            continue;
          }
          const uint32_t sum = static_cast<uint32_t>(
              grid.element == ir::Type::kI16 ? portable::DotI16(window, lane, grid.shape)
                                             : portable::DotI8(window, lane, grid.shape));
          uint32_t old = 0;
          if (grid.adds) std::memcpy(&old, to, 4);
          old += sum;
          std::memcpy(to, &old, 4);
        }
      }
    }
  }
}

TEST(DotGridTest, RandomGrids) {
  const uint64_t first = FuzzSeed();
  AtEachSimdLevel([&] {
    int64_t integers = 0, floats = 0;
    for (int64_t i = 0; i < FuzzCases(400); ++i) {
      const uint64_t seed = first + static_cast<uint64_t>(i);
      std::mt19937_64 random(seed);
      const auto draw = [&](int64_t from, int64_t count) {
        return from + static_cast<int64_t>(random() % static_cast<uint64_t>(count));
      };
      DotGrid grid;
      constexpr ir::Type kElements[] = {ir::Type::kI8, ir::Type::kI16, ir::Type::kF16,
                                        ir::Type::kF32};
      grid.element = kElements[draw(0, 4)];
      grid.adds = draw(0, 2) == 1;
      const int64_t size = ir::ByteSize(grid.element);
      grid.shape.n = draw(1, 140);
      grid.shape.rows = draw(1, 3);
      grid.shape.a_stride = (grid.shape.n + draw(0, 9)) * size;
      grid.shape.b_stride = grid.shape.n * size;
      grid.lanes = draw(8, 57);
      grid.lane_stride = grid.shape.rows * grid.shape.b_stride + draw(0, 3) * size;
      grid.group_depth = 1;
      grid.groups[0] = {draw(1, 3), 64 * grid.lane_stride, 256};
      const int64_t pixel = 256 * grid.groups[0].count;
      grid.window_depth = 2;
      grid.windows[1] = {draw(1, 6), draw(1, 40) * size, pixel};
      grid.windows[0] = {draw(1, 6), draw(1, 300) * size, pixel * grid.windows[1].count};
      const std::vector<uint8_t> a =
          RandomBytes(5 * grid.windows[0].a_stride + 5 * grid.windows[1].a_stride +
                          2 * grid.shape.a_stride + grid.shape.n * size,
                      random);
      const std::vector<uint8_t> b = RandomBytes(
          (64 * grid.groups[0].count + 1) * grid.lane_stride + grid.shape.n * size, random);
      std::vector<uint8_t> dst =
          RandomBytes(grid.windows[0].count * grid.windows[0].dst_stride, random);
      const std::vector<uint8_t> before = dst;
      std::vector<uint8_t> expected = dst;
      RunSlowly(grid, a.data(), b.data(), expected.data());
      const bool ran = RunDotGrid(grid, a.data(), b.data(), dst.data());
      ASSERT_TRUE(ran ? Agree(grid.element, dst, expected) : dst == before)
          << "POLYNAO_SEED=" << seed;
      (ir::IsFloat(grid.element) ? floats : integers) += ran ? 1 : 0;
    }
    if (CurrentSimdLevel() >= SimdLevel::kAvx512) EXPECT_GT(floats, 50);
    if (CurrentSimdLevel() >= SimdLevel::kAvx512Vnni) EXPECT_GT(integers, 50);
  });
}

using native::FindGrid;
using native::GridLoop;

// A convolution of 5 x 4 pixels by 128 channels of 3 x 3 x 16, i8: loops y, x, c, l, r, s, i.
std::vector<GridLoop> Convolution() {
  return {{5, 320, 0, 2048}, {4, 32, 0, 512}, {2, 0, 200, 256}, {64, 0, 400, 4},
          {3, 160, 48, 0},   {3, 16, 16, 0},  {16, 1, 1, 0}};
}

TEST(FindGridTest, Convolution) {
  const auto found = FindGrid(Convolution(), ir::Type::kI8, true);
  ASSERT_TRUE(found);
  const DotGrid& grid = found->grid;
  EXPECT_FALSE(found->is_swapped);
  EXPECT_TRUE(grid.adds);
  EXPECT_EQ(grid.element, ir::Type::kI8);
  EXPECT_EQ(grid.shape.n, 48);
  EXPECT_EQ(grid.shape.rows, 3);
  EXPECT_EQ(grid.shape.a_stride, 160);
  EXPECT_EQ(grid.shape.b_stride, 48);
  ASSERT_EQ(grid.window_depth, 2);
  EXPECT_EQ(grid.windows[1].dst_stride, 512);
  ASSERT_EQ(grid.group_depth, 1);
  EXPECT_EQ(grid.groups[0].b_stride, 200);
  EXPECT_EQ(grid.lanes, 64);
  EXPECT_EQ(grid.lane_stride, 400);
}

TEST(FindGridTest, TheOperandOfTheLanesMayBeTheFirst) {
  std::vector<GridLoop> loops = Convolution();
  for (GridLoop& loop : loops) std::swap(loop.a_stride, loop.b_stride);
  const auto found = FindGrid(loops, ir::Type::kI8, false);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_swapped);
  EXPECT_EQ(found->grid.lane_stride, 400);
  EXPECT_EQ(found->grid.shape.a_stride, 160);
}

TEST(FindGridTest, ManyLanesBecomeGroups) {
  const auto found =
      FindGrid({{{10, 64, 0, 4 * 96}, {96, 0, 64, 4}, {64, 1, 1, 0}}}, ir::Type::kI8, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->grid.lanes, 48);
  ASSERT_EQ(found->grid.group_depth, 1);
  EXPECT_EQ(found->grid.groups[0].count, 2);
  EXPECT_EQ(found->grid.groups[0].b_stride, 48 * 64);
}

// Sums of floats are rounded after each product: channels before rows and columns is another sum.
TEST(FindGridTest, FloatsKeepTheirOrder) {
  std::vector<GridLoop> loops = Convolution();
  for (GridLoop& loop : loops) {
    loop.a_stride *= 2;
    loop.b_stride *= 2;
  }
  const auto found = FindGrid(loops, ir::Type::kF16, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->grid.shape.n, 48);
  EXPECT_EQ(found->grid.shape.rows, 3);
  std::rotate(loops.begin() + 4, loops.begin() + 6, loops.end());
  EXPECT_FALSE(FindGrid(loops, ir::Type::kF16, true));
  EXPECT_TRUE(FindGrid(loops, ir::Type::kI16, true));
}

TEST(FindGridTest, WhatIsNone) {
  const auto find = [](size_t loop, GridLoop with) {
    std::vector<GridLoop> loops = Convolution();
    loops[loop] = with;
    return FindGrid(loops, ir::Type::kI8, true).has_value();
  };
  EXPECT_TRUE(find(1, {4, 32, 0, 512}));
  EXPECT_FALSE(find(1, {4, 32, 8, 512}));  // depthwise: moves all three
  EXPECT_FALSE(find(1, {5, 32, 0, 512}));  // results overlap
  EXPECT_FALSE(find(3, {64, 0, 400, 8}));  // results have gaps
  EXPECT_FALSE(find(3, {64, 0, 0, 4}));    // lanes of one element
  EXPECT_FALSE(find(5, {3, 32, 16, 0}));   // dilated: three levels of rows
  EXPECT_FALSE(find(6, {16, 2, 1, 0}));    // elements that are not neighbours
  EXPECT_FALSE(find(0, {0, 320, 0, 2048}));
  EXPECT_FALSE(find(0, {-3, 320, 0, 2048}));
}

}  // namespace
}  // namespace polynao::isa
