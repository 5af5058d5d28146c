// Several last stages that share what they read, and tiles whose arrays share memory.

#include "compiler/poly/fuse/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/fuse/count_stores_for_test.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Result {
  std::string text;  // the report, and the code behind it
  std::map<std::string, int64_t> stores;
};

Result Fused(const std::string& text, ScheduleOptions options) {
  const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
  EXPECT_TRUE(before.ok()) << before.status();
  if (!before.ok()) return {};
  ir::Function after = *before;
  options.strategy = "fuse";
  options.inline_stages = false;
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  EXPECT_EQ(ir::CompareMeaning(*before, after, 1), "") << report->ToString() << ir::Print(after);
  return {report->ToString() + ir::Print(after), StoreCounter::Count(after, 1)};
}

ScheduleOptions Tiles(std::vector<int64_t> sizes) {
  return {.group_tile = std::move(sizes), .join_all = true, .machine = SmallMachine(8)};
}

// A nest over all elements of `array`, f32[rows, columns].
std::string Nest(const std::string& array, int rows, int columns, const std::string& value) {
  return StrCat("  for (i, 0, ", rows, ") { for (j, 0, ", columns, ") { ", array,
                "[i, j] = ", value, " } }\n");
}

const char* const kGradients = "b[i, j] / b[i + 1, j] + b[i, j + 1]";

std::string TwoOutputs(int rows, int columns, const std::string& z) {
  return StrCat("func f(a: f32[", rows + 1, ", ", columns + 1, "] in, y: f32[", rows, ", ", columns,
                "] out, z: f32[", rows, ", ", columns, "] out) {\n  allocate b: f32[", rows + 1,
                ", ", columns + 1, "]\n", Nest("b", rows + 1, columns + 1, "a[i, j] / 3.0"),
                Nest("y", rows, columns, kGradients), Nest("z", rows, columns, z), "}\n");
}

TEST(GroupingTest, RootsThatReadTheSameShareTiles) {
  const Result result = Fused(TwoOutputs(10, 14, "b[i + 1, j + 1] * b[i, j]"), Tiles({4, 8}));
  EXPECT_THAT(result.text, HasSubstr("y+z in tiles of 4 x 8"));
  EXPECT_THAT(result.text, HasSubstr("with b; "));
  // Three tiles of 5, 5 and 3 rows by two of 9 and 7 columns, once for both.
  EXPECT_EQ(result.stores.at("b"), (5 + 5 + 3) * (9 + 7));
  EXPECT_EQ(result.stores.at("y"), 10 * 14);
}

TEST(GroupingTest, TheModelJoinsRootsOfLargeArrays) {
  const absl::StatusOr<ir::Function> function =
      ir::ParseFunction(TwoOutputs(3000, 4000, "b[i + 1, j + 1] * b[i, j]"));
  ASSERT_TRUE(function.ok());
  ir::Function after = *function;
  const absl::StatusOr<ScheduleReport> report =
      Schedule(after, {.strategy = "fuse", .inline_stages = false});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->ToString(), HasSubstr("y+z in tiles of "));
}

// Where nobody knows how many columns there are, tiles have a number of their own: a box of all columns has no constant
// size.
TEST(GroupingTest, TilesOfUnknownExtents) {
  const absl::StatusOr<ir::Function> before = ir::ParseFunction(
      "func f(a: f32[n, m] in, y: f32[n, m], n: i32, m: i32) {\n  allocate b: f32[n, m]\n"
      "  for (i, 0, n) { for (j, 0, m) { b[i, j] = a[i, j] / 3.0 } }\n"
      "  for (i, 0, n) { for (j, 0, m) { y[i, j] = b[i, min(j + 1, m - 1)] / b[max(i - 1, 0), j] } "
      "}\n}\n");
  ASSERT_TRUE(before.ok()) << before.status();
  for (const bool inline_stages : {false, true}) {
    ir::Function after = *before;
    const absl::StatusOr<ScheduleReport> report =
        Schedule(after, {.strategy = "fuse", .inline_stages = inline_stages});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(ir::CompareMeaning(*before, after, 1), "") << report->ToString();
    if (!inline_stages) EXPECT_THAT(report->ToString(), HasSubstr("with b; "));
  }
}

TEST(GroupingTest, ThreeRootsAndWindows) {
  const std::string text = StrCat(
      "func f(a: i32[20, 9] in, x: i32[17, 9], y: i32[17, 9] out, z: i32[17, 9] out) {\n"
      "  allocate b: i32[20, 9]\n",
      Nest("b", 20, 9, "a[i, j] * 3"), Nest("x", 17, 9, "b[i, j] - b[i + 3, j]"),
      Nest("y", 17, 9, "b[i + 1, j] * b[i + 2, j]"), Nest("z", 17, 9, "b[i + 3, j] + 1"), "}\n");
  EXPECT_THAT(Fused(text, Tiles({5, 4})).text, HasSubstr("x+y+z in tiles of 5 x 4"));
  ScheduleOptions rows = Tiles({17, 4});
  rows.windows = Windows::kAll;
  const Result slid = Fused(text, rows);
  EXPECT_THAT(slid.text, HasSubstr("row by row along dimension 0, with b; "));
  EXPECT_EQ(slid.stores.at("b"), 20 * 9);
}

// z reads y, which two nests store: its tile would need rows of y that other tiles store.
TEST(GroupingTest, RootsThatWaitForEachOtherStayApart) {
  const Result result = Fused(
      StrCat("func f(a: f32[11, 15] in, y: f32[10, 14] out, z: f32[10, 14] out) {\n"
             "  allocate b: f32[11, 15]\n",
             Nest("b", 11, 15, "a[i, j] / 3.0"), Nest("y", 10, 14, kGradients),
             Nest("y", 1, 14, "0.0"), Nest("z", 10, 14, "b[i + 1, j + 1] * y[9 - i, j]"), "}\n"),
      Tiles({4, 8}));
  EXPECT_THAT(result.text, Not(HasSubstr("y+z")));
}

TEST(GroupingTest, RootsOfOtherSizesStayApart) {
  const std::string text = StrCat(
      "func f(a: f32[20, 9] in, y: f32[17, 9] out, z: f32[9, 9] out) {\n"
      "  allocate b: f32[20, 9]\n",
      Nest("b", 20, 9, "a[i, j] / 3.0"), Nest("y", 17, 9, "b[i, j] - b[i + 3, j]"),
      Nest("z", 9, 9, "b[2 * i, j] * 7.0"), "}\n");
  EXPECT_THAT(Fused(text, Tiles({5, 4})).text, Not(HasSubstr("y+z")));
}

// One half of b for each of the outputs, which have different sizes; nobody needs row 8.
TEST(GroupingTest, DisjointFootprintsSplitAnArray) {
  const std::string text = StrCat(
      "func f(a: f32[20, 9] in, y: f32[7, 9] out, z: f32[10, 8] out) {\n"
      "  allocate c: f32[20, 9]\n  allocate b: f32[20, 9]\n",
      Nest("c", 20, 9, "a[i, j] / 3.0"),
      "  for (i, 0, 20) { b[i, 0] = 1.5 }\n"
      "  for (i, 0, 20) { for (j, 1, 8) { b[i, j] = c[i, j] / 7.0 + c[i, j - 1] } }\n",
      Nest("y", 7, 9, "b[i, j] - b[i + 1, j]"),
      Nest("z", 10, 8, "b[9 + i, j + 1] / b[10 + i, j + 1]"), "}\n");
  const Result result = Fused(text, Tiles({3, 4}));
  EXPECT_THAT(result.text, AllOf(HasSubstr("y in tiles of 3 x 4"), HasSubstr("with c.0, b.0; "),
                                 HasSubstr("z in tiles of 3 x 4"), HasSubstr("with c.1, b.1; ")));
  // The tiles of y need 4 + 4 + 2 rows of 9 elements, those of z 4 + 4 + 4 + 2 rows of 8.
  EXPECT_EQ(result.stores.at("b"), 10 * 9 + 14 * 8);
  ScheduleOptions whole = Tiles({20, 4});
  whole.windows = Windows::kAll;
  Fused(text, whole);
}

TEST(GroupingTest, OverlappingFootprintsDoNot) {
  const std::string text = StrCat(
      "func f(a: f32[20, 9] in, y: f32[10, 9] out, z: f32[10, 8] out) {\n"
      "  allocate b: f32[20, 9]\n",
      Nest("b", 20, 9, "a[i, j] / 3.0"), Nest("y", 10, 9, "b[i, j] - b[i + 1, j]"),
      Nest("z", 10, 8, "b[9 + i, j] / b[10 + i, j + 1]"), "}\n");
  EXPECT_THAT(Fused(text, Tiles({3, 4})).text, Not(HasSubstr("b.0")));
}

// b is read for the last time by c's loops, so d takes its memory; e is of another type.
TEST(GroupingTest, ArraysThatDoNotLiveAtOnceShareMemory) {
  const std::string text = StrCat(
      "func f(a: f32[20, 20] in, y: f32[17, 17] out) {\n  allocate b: f32[20, 20]\n"
      "  allocate c: f32[19, 19]\n  allocate d: f32[18, 18]\n  allocate e: i32[18, 18]\n",
      Nest("b", 20, 20, "a[i, j] / 3.0"), Nest("c", 19, 19, "b[i, j] / b[i + 1, j + 1]"),
      Nest("d", 18, 18, "c[i, j] / c[i + 1, j + 1]"),
      Nest("e", 18, 18, "select(d[i, j] > 1.0, 1, 2)"),
      Nest("y", 17, 17, "d[i, j] / d[i + 1, j + 1] + cast(f32, e[i, j])"), "}\n");
  const Result result = Fused(text, Tiles({4, 8}));
  // Tiles of 7 x 11 of b and 5 x 9 of d.
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("allocate b.tile: f32[i64(77)]"), Not(HasSubstr("allocate d.tile")),
                    HasSubstr("allocate c.tile: f32[i64(6), i64(10)]"),
                    HasSubstr("allocate e.tile: i32[i64(4), i64(8)]")));
  // 4 * (77 + 60 + 32) bytes; 4 * (77 + 60 + 45 + 32) are 0.8 KiB.
  EXPECT_THAT(result.text, HasSubstr("; 0.7 KiB in each tile"));
  // Rows after still read what windows hold.
  ScheduleOptions rows = Tiles({17, 8});
  rows.windows = Windows::kAll;
  EXPECT_THAT(Fused(text, rows).text, HasSubstr("allocate d.tile: "));
}

// Every second row computes no row of b: it reads the one before, which c must not overwrite.
TEST(GroupingTest, RowsThatOthersHaveComputedStay) {
  const std::string text = StrCat(
      "func f(a: f32[10, 20] in, y: f32[20, 20] out) {\n  allocate b: f32[10, 20]\n"
      "  allocate c: f32[20, 20]\n  allocate d: f32[20, 20]\n",
      Nest("b", 10, 20, "a[i, j] / 3.0"), Nest("c", 20, 20, "b[i / 2, j] * 7.0"),
      Nest("d", 20, 20, "c[i, j] / 5.0"), Nest("y", 20, 20, "d[i, j] + d[i, 19 - j]"), "}\n");
  ScheduleOptions rows = Tiles({10, 0});
  rows.windows = Windows::kAll;
  EXPECT_THAT(Fused(text, rows).text, HasSubstr("allocate b.tile: f32[i64(1), "));
}

// Nine terms: their loops are in the vector's, and unrolled.
TEST(GroupingTest, SumsOfFewTermsStayInRegisters) {
  const auto text = [](int size) {
    return StrCat("func f(a: f32[20, 20] in, w: f32[", size, ", ", size,
                  "] in, y: f32[9, 9] out) {\n"
                  "  allocate b: f32[10, 10]\n",
                  Nest("b", 10, 10, "0.0"), "  for (i, 0, 10) { for (j, 0, 10) { for (p, 0, ", size,
                  ") { for (q, 0, ", size,
                  ") { b[i, j] = b[i, j] + a[i + p, j + q] * w[p, q] } } } }\n",
                  Nest("y", 9, 9, "b[i, j] / b[i + 1, j + 1]"), "}\n");
  };
  EXPECT_THAT(Fused(text(3), Tiles({4, 8})).text, HasSubstr("unroll ("));
  EXPECT_THAT(Fused(text(6), Tiles({4, 8})).text, Not(HasSubstr("unroll (")));
}

// Two elements are stored with each that is read, where it says: the loop over them is the innermost, and unrolled.
TEST(GroupingTest, WhatIsStoredWhereTheDataSaysIsReadOnce) {
  const auto text = [](int copies, const std::string& read) {
    return StrCat("func f(a: i32[2, 20, 20] in, y: i32[20, 20] out) {\n  allocate h: i32[", copies,
                  ", 20, 8]\n  for (c, 0, ", copies,
                  ") { for (i, 0, 20) { for (z, 0, 8) { h[c, i, z] = 0 } } }\n  for (c, 0, ",
                  copies, ") { for (i, 0, 20) { for (j, 0, 20) { h[c, i, ", read,
                  " % 8] = h[c, i, ", read, " % 8] + 1 } } }\n",
                  Nest("y", 20, 20, "h[0, i, j % 8] + h[1, i, 7]"), "}\n");
  };
  const auto is_unrolled = [&](int copies, const std::string& read) {
    return Fused(text(copies, read), Tiles({4, 0})).text.find("unroll (") != std::string::npos;
  };
  EXPECT_TRUE(is_unrolled(2, "a[0, i, j]"));
  EXPECT_FALSE(is_unrolled(9, "a[0, i, j]"));
  EXPECT_FALSE(is_unrolled(2, "a[c, i, j]"));
}

}  // namespace
}  // namespace polynao::poly
