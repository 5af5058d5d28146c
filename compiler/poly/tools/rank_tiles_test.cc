#include "compiler/poly/tools/rank_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"

namespace polynao::poly {
namespace {

absl::StatusOr<std::vector<RankedTile>> Ranked(const std::string& text) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  ScheduleOptions options;
  options.machine = SmallMachine(8);
  options.inline_stages = false;
  return RankTiles(*function, options);
}

// A tile of b is read with a margin of four rows: tiles of many rows and a local array that fits the small cache are
// cheapest.
TEST(RankTilesTest, AllTilesTheCheapestFirst) {
  const absl::StatusOr<std::vector<RankedTile>> tiles = Ranked(
      "func f(a: f32[604, 600] in, y: f32[600, 600] out) {\n"
      "  allocate b: f32[604, 600]\n"
      "  for (i, 0, 604) { for (j, 0, 600) { b[i, j] = a[i, j] / 3.0 / a[i, 599 - j] } }\n"
      "  for (i, 0, 600) { for (j, 0, 600) { y[i, j] = b[i, j] / b[i + 4, j] } }\n"
      "}\n");
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  ASSERT_EQ(tiles->size(), 49);
  std::set<std::vector<int64_t>> different;
  for (size_t i = 0; i < tiles->size(); ++i) {
    different.insert((*tiles)[i].sizes);
    EXPECT_GT((*tiles)[i].cycles, 0);
    if (i > 0) EXPECT_LE((*tiles)[i - 1].cycles, (*tiles)[i].cycles);
  }
  EXPECT_EQ(different.size(), 49);
  // 516 x 512 floats are far from fitting 4 KiB.
  EXPECT_NE(tiles->front().sizes, (std::vector<int64_t>{0, 512, 512}));
  EXPECT_LT(tiles->front().cycles, tiles->back().cycles);
}

TEST(RankTilesTest, OneStageHasNothingToShare) {
  EXPECT_EQ(Ranked("func f(y: f32[9] out) { for (i, 0, 9) { y[i] = 1.0 } }").status().message(),
            "function 'f' has no stages that share tiles");
}

}  // namespace
}  // namespace polynao::poly
