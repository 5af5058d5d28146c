#include "compiler/poly/tools/count_program.h"

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

std::vector<PartCount> Count(const std::string& text, const ProgramCountOptions& options = {}) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  absl::StatusOr<std::vector<PartCount>> parts = CountProgram(*function, options);
  EXPECT_TRUE(parts.ok()) << parts.status();
  return *std::move(parts);
}

const ArrayCount& Array(const PartCount& part, const std::string& name) {
  for (const ArrayCount& array : part.arrays) {
    if (array.name == name) return array;
  }
  ADD_FAILURE() << "no array " << name;
  return part.arrays[0];
}

constexpr char kMatmul[] = R"(
func matmul(C: f64[n, m], A: f32[n, k] in, B: f32[k, m] in, n: i32, m: i32, k: i32) {
  for (i, 0, n) {
    for (j, 0, m) {
      for (l, 0, k) { C[i, j] = C[i, j] + f64(A[i, l]) * f64(B[l, j]) }
    }
  }
}
)";

TEST(CountProgramTest, MatrixProduct) {
  ProgramCountOptions options;
  options.arguments = {{"n", 40}, {"m", 30}, {"k", 50}};
  options.tile = {16, 8, 32};
  const std::vector<PartCount> parts = Count(kMatmul, options);
  ASSERT_EQ(parts.size(), 1u);
  ASSERT_EQ(parts[0].statements.size(), 1u);
  EXPECT_EQ(parts[0].statements[0].instances.value, 40 * 30 * 50);
  EXPECT_EQ(parts[0].statements[0].tiles.value, 3 * 4 * 2);
  const ArrayCount &a = Array(parts[0], "A"), &b = Array(parts[0], "B"), &c = Array(parts[0], "C");
  EXPECT_EQ(a.reads.value, 40 * 30 * 50);
  EXPECT_EQ(a.writes.value, 0);
  EXPECT_EQ(a.footprint.value, 40 * 50);
  EXPECT_EQ(a.FootprintBytes(), 40 * 50 * 4);
  EXPECT_EQ(a.Reuse(), 30.0);
  EXPECT_EQ(b.footprint.value, 50 * 30);
  EXPECT_EQ(c.FootprintBytes(), 40 * 30 * 8);
  EXPECT_EQ(c.Reuse(), 100.0);
  // Each tile brings its part of A: all of A, for each of the four tiles along j.
  EXPECT_EQ(a.tile_volume.value, 4 * 40 * 50);
  EXPECT_EQ(b.tile_volume.value, 3 * 50 * 30);
  EXPECT_EQ(c.tile_volume.value, 2 * 40 * 30);
  EXPECT_EQ(c.VolumeBytes(), 2 * 40 * 30 * 8);
}

// A stencil on a triangle, against loops that do the same.
TEST(CountProgramTest, StencilOnATriangle) {
  const std::string text = R"(
func f(B: f32[n, n], A: f32[n, n] in, n: i32) {
  for (i, 1, n - 2) {
    for (j, 1, i) { B[i, j] = A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1] }
  }
}
)";
  for (int64_t n : {1, 9}) {
    std::set<std::pair<int64_t, int64_t>> read, written, tiles;
    std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>> moved;
    int64_t instances = 0;
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < 1 + i; ++j) {
        ++instances;
        written.insert({i, j});
        tiles.insert({i / 5, j / 3});
        for (const auto& [x, y] :
             {std::pair<int64_t, int64_t>{i - 1, j}, {i + 1, j}, {i, j - 1}, {i, j + 1}}) {
          read.insert({x, y});
          moved.insert({i / 5, j / 3, x, y});
        }
      }
    }
    ProgramCountOptions options;
    options.arguments = {{"n", n}};
    options.tile = {5, 3};
    options.max_operations = 3'000'000;  // of the symbolic form, which is long
    const std::vector<PartCount> parts = Count(text, options);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].statements[0].instances.value, instances) << n;
    EXPECT_EQ(parts[0].statements[0].tiles.value, tiles.size()) << n;
    EXPECT_EQ(Array(parts[0], "A").reads.value, 4 * instances) << n;
    EXPECT_EQ(Array(parts[0], "A").footprint.value, read.size()) << n;
    EXPECT_EQ(Array(parts[0], "B").footprint.value, written.size()) << n;
    EXPECT_EQ(Array(parts[0], "A").tile_volume.value, moved.size())
        << n << " " << Array(parts[0], "A").tile_volume.text;
  }
}

// Two stages, on a square and on a triangle: the tiles of the second one compute elements of the first one around
// their borders again.
TEST(CountProgramTest, OverlappedTilesRecompute) {
  using Offsets = std::vector<std::pair<int64_t, int64_t>>;
  struct Case {
    std::string extent, value;
    Offsets offsets;
  };
  const std::vector<Case> cases = {
      {"n - 2", "A[i - 1, j] + A[i, j] + A[i, j + 1]", {{-1, 0}, {0, 0}, {0, 1}}},
      {"i", "A[i, j] + A[i + 1, j]", {{0, 0}, {1, 0}}}};
  for (const auto& [extent, value, offsets] : cases) {
    const std::string text = StrCat(
        "func f(B: f32[n, n], A: f32[n, n], n: i32) {\n"
        "  for (i, 0, n) { for (j, 0, n) { A[i, j] = 1.0 } }\n"
        "  for (i, 1, n - 2) { for (j, 1, ",
        extent, ") { B[i, j] = ", value, " } }\n}");
    for (const int64_t n : {2, 3, 9, 16}) {
      std::set<std::pair<int64_t, int64_t>> needed;
      std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>> by_tile;
      for (int64_t i = 1; i < n - 1; ++i) {
        for (int64_t j = 1; j < 1 + (extent == "i" ? i : n - 2); ++j) {
          for (const auto& [di, dj] : offsets) {
            needed.insert({i + di, j + dj});
            by_tile.insert({i / 5, j / 3, i + di, j + dj});
          }
        }
      }
      ProgramCountOptions options;
      options.arguments = {{"n", n}};
      options.tile = {5, 3};
      const std::vector<PartCount> parts = Count(text, options);
      ASSERT_EQ(parts[0].flows.size(), 1u);
      const FlowCount& flow = parts[0].flows[0];
      EXPECT_EQ(flow.producer + flow.consumer, "S0S1");
      EXPECT_EQ(flow.needed.value, by_tile.size()) << extent << " " << n;
      EXPECT_EQ(flow.recomputed.value, by_tile.size() - needed.size()) << extent << " " << n;
    }
  }
}

TEST(CountProgramTest, RecomputationIsSymbolic) {
  const std::string text = R"(
func f(B: f32[n], A: f32[n], C: f32[n] in, n: i32) {
  for (i, 0, n) { A[i] = C[i] + 1.0 }
  for (i, 0, n - 2) { B[i] = A[i] + A[i + 1] + A[i + 2] }
}
)";
  ProgramCountOptions options;
  options.tile = {8};
  const FlowCount flow = Count(text, options)[0].flows[0];
  EXPECT_EQ(flow.needed.value, std::nullopt);
  // Two elements for each tile but one.
  for (const int64_t n : {3, 10, 11, 40}) {
    options.arguments = {{"n", n}};
    EXPECT_EQ(Count(text, options)[0].flows[0].recomputed.value, 2 * ((n - 2 + 7) / 8 - 1)) << n;
  }
  EXPECT_THAT(flow.recomputed.text, HasSubstr("floor((5 + n)/8)"));
  EXPECT_THAT(ToString(Count(text, options)), HasSubstr("S0 for tiles of S1\n    needed       "));
}

TEST(CountProgramTest, WithoutArgumentsCountsAreSymbolic) {
  const std::vector<PartCount> parts = Count(kMatmul);
  EXPECT_EQ(parts[0].statements[0].instances.value, std::nullopt);
  EXPECT_THAT(parts[0].statements[0].instances.text, HasSubstr("k * m * n : k > 0"));
  EXPECT_EQ(Array(parts[0], "A").Reuse(), std::nullopt);
  EXPECT_THAT(ToString(parts), HasSubstr("A, 4 bytes an element"));
}

TEST(CountProgramTest, Limits) {
  const std::string whole = Count(kMatmul)[0].statements[0].instances.text;
  for (unsigned long limit = 1;; limit += 1 + limit / 2) {
    ProgramCountOptions options;
    options.max_operations = limit;
    const std::string text = Count(kMatmul, options)[0].statements[0].instances.text;
    if (text == whole) break;
    ASSERT_EQ(text, "not counted: isl needs more operations than it is allowed") << limit;
  }
}

TEST(CountProgramTest, BadInput) {
  const ir::Function function = *ir::ParseFunction(kMatmul);
  ProgramCountOptions options;
  options.tile = {0};
  EXPECT_EQ(CountProgram(function, options).status().message(),
            "expected a tile size of at least 1, found 0");
  options = {};
  options.arguments = {{"q", 3}};
  EXPECT_EQ(CountProgram(function, options).status().message(),
            "expected a parameter of a static control part of 'matmul', found 'q'");
}

}  // namespace
}  // namespace polynao::poly
