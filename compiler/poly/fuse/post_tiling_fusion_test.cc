// The examples of Zhao and Di, "Optimizing the Memory Hierarchy by Compositing Automatic Transformations on
// Computations and Data" (MICRO 2020), by the numbers of their figures and equations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/fuse/count_stores_for_test.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/order/schedule.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;
using testing::Not;

// Figure 1(a): an image is quantized (S0), convolved with B (S1, S2), and what is negative becomes zero (S3). "#X" is
// where S0 reads: A in the figure, where nothing behind it uses A; another image here, so that a tile may compute what
// it needs.
std::string Convolution(const std::string& from = "X") {
  return StrCat(
      "@assert(KH >= 1)\n@assert(KW >= 1)\n", "func conv(", from, ": f32[H, W]",
      from == "X" ? " in" : "",
      ", B: f32[KH, KW] in, C: f32[H - KH + 1, W - KW + 1] out, H: i32, W: i32, KH: i32, KW: i32) "
      "{\n",
      from == "X" ? "  allocate A: f32[H, W]\n" : "",
      "  for (h, 0, H) { for (w, 0, W) { A[h, w] = floor(", from,
      "[h, w] * 8.0) / 8.0 } }\n"
      "  for (h, 0, H - KH + 1) { for (w, 0, W - KW + 1) {\n"
      "    C[h, w] = 0.0\n"
      "    for (kh, 0, KH) { for (kw, 0, KW) { C[h, w] = C[h, w] + A[h + kh, w + kw] * B[kh, kw] } "
      "}\n"
      "  } }\n"
      "  for (h, 0, H - KH + 1) { for (w, 0, W - KW + 1) { C[h, w] = max(C[h, w], 0.0) } }\n"
      "}\n");
}

ir::Function Parse(const std::string& text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// The one part of a function, with its dependences.
struct Part {
  ir::Function function;
  Extraction extraction;
  Dependences dependences;
  const Scop& scop() const { return extraction.scops.at(0); }
  isl::union_map Map(const std::string& text) const {
    return isl::union_map(scop().isl->ctx(), text).intersect_params(scop().context);
  }
};

Part PartOfText(const std::string& text) {
  Part part{Parse(text), {}, {}};
  absl::StatusOr<Extraction> extraction = Extract(part.function);
  EXPECT_TRUE(extraction.ok()) << extraction.status();
  part.extraction = *std::move(extraction);
  EXPECT_EQ(part.extraction.scops.size(), 1u);
  part.dependences = ComputeDependences(part.scop());
  return part;
}

// The text with numbers for its sizes.
std::string Sized(std::string text, int image, int window) {
  const auto replace = [&](const std::string& name, int value) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
      const auto is_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      };
      const bool whole = (at == 0 || !is_name(text[at - 1])) && !is_name(text[at + name.size()]);
      if (whole) text.replace(at, name.size(), StrCat(value));
      at += 1;
    }
  };
  for (const char* name : {", H: i32", ", W: i32", ", KH: i32", ", KW: i32"}) {
    const size_t at = text.find(name);
    text.erase(at, std::string(name).size());
  }
  text.erase(0, text.find("func"));
  replace("KH", window);
  replace("KW", window);
  replace("H", image);
  replace("W", image);
  return text;
}

// { [o0, o1] -> S0[h, w] }: what each tile of size x size elements of C computes of the quantization.
isl::union_map TilesOfQuantization(const Part& part, int64_t size) {
  const std::vector<Stage> stages = StagesOf(part.scop(), part.dependences);
  EXPECT_EQ(stages.size(), 2u);  // A; C: what is stored in C falls into one tile
  EXPECT_TRUE(stages[0].is_local);
  const Group group{.root = 1, .producers = {0}, .sizes = {size, size}};
  const absl::StatusOr<GroupTree> tree = MakeGroupTree(part.scop(), stages, group);
  EXPECT_TRUE(tree.ok()) << tree.status();
  return tree->instances.at("S0").to_union_map();
}

std::string Fused(const std::string& text, std::vector<int64_t> tile, bool join_all = true,
                  bool inline_stages = true) {
  const ir::Function before = Parse(text);
  ir::Function after = before;
  ScheduleOptions options{.strategy = "fuse"};
  options.group_tile = std::move(tile);
  options.join_all = join_all;
  options.inline_stages = inline_stages;
  options.count = true;
  options.machine = SmallMachine(8);
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return "";
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  for (uint64_t seed = 1; seed < 6; ++seed) {
    EXPECT_EQ(ir::CompareMeaning(before, after, seed, {.runs = 1, .may_stop = true}), "")
        << report->ToString() << ir::Print(after);
  }
  return report->ToString() + ir::Print(after);
}

TEST(PostTilingFusionTest, Figure1aAndFigure2a) {
  const Part part = PartOfText(Convolution("A"));
  const Scop& scop = part.scop();
  ASSERT_EQ(scop.statements.size(), 4u);
  const isl::union_set domain(
      scop.isl->ctx(),
      "[H, W, KH, KW] -> { S0[h, w] : 0 <= h < H and 0 <= w < W;"
      " S1[h, w] : 0 <= h <= H - KH and 0 <= w <= W - KW;"
      " S2[h, w, kh, kw] : 0 <= h <= H - KH and 0 <= w <= W - KW and 0 <= kh < KH and 0 <= kw < KW;"
      " S3[h, w] : 0 <= h <= H - KH and 0 <= w <= W - KW }");
  EXPECT_TRUE(
      scop.Domain().intersect_params(scop.context).is_equal(domain.intersect_params(scop.context)))
      << Text(scop.Domain());
  // The first schedule of section II-A.
  EXPECT_TRUE(
      scop.schedule.map()
          .intersect_domain(scop.Domain())
          .intersect_params(scop.context)
          .is_equal(part.Map("{ S0[h, w] -> [0, h, w, 0, 0, 0]; S1[h, w] -> [1, h, w, 0, 0, 0];"
                             " S2[h, w, kh, kw] -> [1, h, w, 1, kh, kw];"
                             " S3[h, w] -> [2, h, w, 0, 0, 0] }")
                        .intersect_domain(scop.Domain())))
      << Text(scop.schedule.map());
}

// The schedules of section II-A are legal, as figure 1(b) and figure 1(c) need; one that runs S3 before the sum is
// complete is not.
TEST(PostTilingFusionTest, Figure1bAndFigure1c) {
  const Part part = PartOfText(Convolution("A"));
  const auto violation = [&](const std::string& text) {
    const absl::StatusOr<isl::schedule> schedule =
        ParseSchedule(part.scop(), part.dependences, text);
    return schedule.ok() ? "" : std::string(schedule.status().message());
  };
  const std::string conservative =
      "[H, W, KH, KW] -> { S0[h, w] -> [0, h, w, 0, 0, 0]; S1[h, w] -> [1, h, w, 0, 0, 0];"
      " S2[h, w, kh, kw] -> [1, h, w, kh, kw, 1]; S3[h, w] -> [1, h, w, KH - 1, KW - 1, 2] }";
  EXPECT_EQ(violation(conservative), "");
  // All statements in one nest: S0 of the element that the window reaches.
  EXPECT_EQ(violation("[H, W, KH, KW] -> { S0[h, w] -> [h, w, 0, 0, 0]; S1[h, w] -> [h + KH - 1, w "
                      "+ KW - 1, 0, 0, 1];"
                      " S2[h, w, kh, kw] -> [h + KH - 1, w + KW - 1, kh, kw, 2];"
                      " S3[h, w] -> [h + KH - 1, w + KW - 1, KH - 1, KW - 1, 3] }"),
            "");
  EXPECT_THAT(
      violation(
          "[H, W, KH, KW] -> { S0[h, w] -> [0, h, w, 0, 0, 0]; S1[h, w] -> [1, h, w, 0, 0, 0];"
          " S2[h, w, kh, kw] -> [1, h, w, kh, kw, 1]; S3[h, w] -> [1, h, w, 0, 0, 2] }"),
      HasSubstr("violates a"));
}

// H = W = 6, KH = KW = 3, tiles of 4 x 4 of the quantization: 4 x 4, 4 x 2, 2 x 4 and 2 x 2 of its instances.
TEST(PostTilingFusionTest, Figure3) {
  const Part part = PartOfText(Sized(Convolution(), 6, 3));
  const isl::union_map tiles = part.Map("{ S0[h, w] -> [floor(h / 4), floor(w / 4)] }")
                                   .intersect_domain(part.scop().Domain());
  const auto count = [&](int o0, int o1) {
    const isl::union_set tile(part.scop().isl->ctx(), StrCat("{ [", o0, ", ", o1, "] }"));
    int points = 0;
    tile.apply(tiles.reverse()).foreach_point([&](const isl::point&) { ++points; });
    return points;
  };
  EXPECT_EQ(count(0, 0), 16);
  EXPECT_EQ(count(0, 1), 8);
  EXPECT_EQ(count(1, 0), 8);
  EXPECT_EQ(count(1, 1), 4);
}

// Equations (2) to (6) at H = W = 6, KH = KW = 3, T2 = T3 = 2: the blue tile (1, 0) and the red one (1, 1) read 16
// elements each, and share 8.
TEST(PostTilingFusionTest, Figure4AndEquation6) {
  const Part part = PartOfText(Sized(Convolution(), 6, 3));
  const isl::union_map tiles = TilesOfQuantization(part, 2);
  EXPECT_TRUE(tiles.is_equal(part.Map(
      "{ [o0, o1] -> S0[h, w] : 0 <= o0 < 2 and 0 <= o1 < 2 and 2 o0 <= h < 2 o0 + 3 + 2 - 1"
      " and 2 o1 <= w < 2 o1 + 3 + 2 - 1 }")))
      << Text(tiles);
  const auto of_tile = [&](const char* tile) {
    return isl::union_set(part.scop().isl->ctx(), tile).apply(tiles);
  };
  const auto is = [&](const isl::union_set& set, const char* text) {
    return set.is_equal(isl::union_set(part.scop().isl->ctx(), text));
  };
  EXPECT_TRUE(is(of_tile("{ [1, 0] }"), "{ S0[h, w] : 2 <= h <= 5 and 0 <= w <= 3 }"));
  EXPECT_TRUE(is(of_tile("{ [1, 1] }"), "{ S0[h, w] : 2 <= h <= 5 and 2 <= w <= 5 }"));
  EXPECT_TRUE(is(of_tile("{ [1, 0] }").intersect(of_tile("{ [1, 1] }")),
                 "{ S0[h, w] : 2 <= h <= 5 and 2 <= w <= 3 }"));
}

// Equation (6) for any sizes. The image ends somewhere, which the equation leaves out.
TEST(PostTilingFusionTest, Equation6WithSymbols) {
  const Part part = PartOfText(Convolution());
  const isl::union_map tiles = TilesOfQuantization(part, 2).intersect_params(part.scop().context);
  const isl::union_map equation =
      part.Map(
              "[H, W, KH, KW] -> { [o0, o1] -> S0[h, w] :"
              " 0 <= 2 o0 <= H - KH and 0 <= 2 o1 <= W - KW and 2 o0 <= h < 2 o0 + KH + 2 - 1"
              " and 2 o1 <= w < 2 o1 + KW + 2 - 1 }")
          .intersect_range(part.scop().Domain());
  EXPECT_TRUE(tiles.is_equal(equation)) << Text(tiles);
}

// Figure 5 in code: the quantization in each tile, in an array of KH + 1 rows, and nothing of it outside.
TEST(PostTilingFusionTest, Figure5) {
  const std::string result = Fused(Convolution(), {2, 2});
  EXPECT_THAT(result, HasSubstr("C in tiles of 2 x 2"));
  EXPECT_THAT(result, HasSubstr("with A"));
  EXPECT_THAT(result, HasSubstr("parallel ("));
  EXPECT_THAT(result, HasSubstr("allocate A.tile: f32["));
  EXPECT_THAT(result, Not(HasSubstr("allocate A:")));
  EXPECT_THAT(result, HasSubstr("2 stages in 1 group"));
  // Without being told so by a tile's sizes, not into the sum, where each element would be computed for each of the
  // window's.
  EXPECT_THAT(Fused(Convolution(), {}, false), Not(HasSubstr("computed where they are read")));
  const std::string sized = Fused(Sized(Convolution(), 6, 3), {2, 2});
  EXPECT_THAT(sized, HasSubstr("allocate A.tile: f32[i64(4), i64(4)]"));
}

// As printed, S0 changes the image in place, and its values live on: tiles compute what they read of it from the old
// values, and S0 itself runs behind them. That is twice the work for S0, so the model does not choose it.
TEST(PostTilingFusionTest, Figure1aInPlace) {
  const std::string result = Fused(Convolution("A"), {2, 2});
  EXPECT_THAT(result,
              HasSubstr("C in tiles of 2 x 2, those along dimension 0 parallel, with A_new"));
  EXPECT_THAT(result, HasSubstr("allocate A_new.tile: f32["));
  EXPECT_LT(result.find("A_new.tile["), result.find(" A["));
  // Of the sizes alone, without being told to join what can be joined.
  EXPECT_THAT(Fused(Convolution("A"), {32, 32}, false), HasSubstr("with A_new"));
  const std::string chosen = Fused(Convolution("A"), {}, false);
  EXPECT_THAT(chosen, Not(HasSubstr("A_new")));
  EXPECT_THAT(chosen, HasSubstr("2 stages, none in tiles of another"));
}

// Section III-C: with other loops over kh and kw and other subscripts the example is a product of matrices, and tiles
// are rectangles.
TEST(PostTilingFusionTest, AProductHasRectangularTiles) {
  const Part part = PartOfText(
      "func f(X: f32[8, 8] in, B: f32[8, 8] in, C: f32[8, 8] out) {\n"
      "  allocate A: f32[8, 8]\n"
      "  for (h, 0, 8) { for (w, 0, 8) { A[h, w] = floor(X[h, w]) } }\n"
      "  for (h, 0, 8) { for (w, 0, 8) {\n"
      "    C[h, w] = 0.0\n"
      "    for (k, 0, 8) { C[h, w] = C[h, w] + A[h, k] * B[k, w] }\n"
      "  } }\n"
      "}\n");
  EXPECT_TRUE(TilesOfQuantization(part, 2).is_equal(part.Map(
      "{ [o0, o1] -> S0[h, w] : 0 <= o0, o1 < 4 and 2 o0 <= h <= 2 o0 + 1 and 0 <= w < 8 }")));
}

// Figure 6: op1 and op2 read parts of what op0 stores. Parts that do not meet: op0 falls into both. Others: nothing is
// computed twice.
TEST(PostTilingFusionTest, Figure6) {
  const auto graph = [](const std::string& first) {
    return StrCat(
        "func f(x: f32[16, 8] in, op1: f32[8, 6] out, op2: f32[6, 8] out) {\n"
        "  allocate op0: f32[16, 8]\n"
        "  for (i, 0, 16) { for (j, 0, 8) { op0[i, j] = x[i, j] / 3.0 + x[15 - i, j] * x[i, 7 - j] "
        "} }\n"
        "  for (i, 0, 8) { for (j, 0, 6) { op1[i, j] = op0[i, j] / op0[i, j + 2] } }\n"
        "  for (i, 0, 6) { for (j, 0, 8) { op2[i, j] = op0[i + ",
        first, ", j] * op0[i + ", first, " + 2, j] } }\n}\n");
  };
  const std::string apart = Fused(graph("8"), {4, 4}, true, false);
  EXPECT_THAT(apart, HasSubstr("with op0.0"));
  EXPECT_THAT(apart, HasSubstr("with op0.1"));
  const std::string meet = Fused(graph("5"), {4, 4}, true, false);
  EXPECT_THAT(meet, Not(HasSubstr("with op0")));
}

// Section IV-C: instances of which no tile has a use do not run.
TEST(PostTilingFusionTest, WhatNoTileNeedsDoesNotRun) {
  const std::string text =
      "func f(x: f32[20] in, y: f32[8] out) {\n"
      "  allocate t: f32[20]\n"
      "  for (i, 0, 20) { t[i] = x[i] / 3.0 + x[19 - i] }\n"
      "  for (i, 0, 8) { y[i] = t[i + 4] / t[i + 5] }\n}\n";
  ir::Function after = Parse(text);
  ScheduleOptions options{.strategy = "fuse"};
  options.group_tile = {4};
  options.join_all = true;
  options.inline_stages = false;
  options.windows = Windows::kNone;
  options.machine = SmallMachine(8);
  ASSERT_TRUE(Schedule(after, options).ok());
  EXPECT_EQ(StoreCounter::Count(after, 1).at("t"), 10);  // two tiles of five
  EXPECT_EQ(StoreCounter::Count(Parse(text), 1).at("t"), 20);
}

// Algorithm 1 leaves a space alone that has fewer parallel loops than the live-out one: here none along i.
TEST(PostTilingFusionTest, WhatRunsInOrderStaysAlone) {
  const std::string result = Fused(
      "func f(x: f32[12, 12] in, y: f32[12, 12] out) {\n"
      "  allocate t: f32[12, 12]\n"
      "  for (j, 0, 12) { t[0, j] = x[0, j] }\n"
      "  for (i, 1, 11) { for (j, 0, 12) { t[i, j] = t[i - 1, j] * 0.5 + x[i, j] } }\n"
      "  for (i, 0, 12) { for (j, 0, 12) { y[i, j] = t[i, j] / t[i, 11 - j] } }\n}\n",
      {4, 4});
  EXPECT_THAT(result, Not(HasSubstr("with t")));
}

}  // namespace
}  // namespace polynao::poly
