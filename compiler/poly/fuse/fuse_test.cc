// What is easy to get wrong when tiles come before fusion, and the test that would show it:
//
//   producers in the order of their readers                  ProducersStandInFrontOfTheirReaders
//   bands under nodes that take none, as extensions          the same: each stage has loops of its own in a tile
//   the producers' own loops stay, and run                   ProducersRunInTheTilesOfTheirReader, group_count_test
//   tiles that do not exist compute what they would need     "triangle", here and in group_count_test
//   producers that are stored in place, or live on           WhatIsStoredInPlaceOrLiveStays, random_test
//   pyramids, of which each level needs more of the next     DeepPyramidsAreCut
//   strides and remainders, for which a box is too much      "strides" and "pyramid", counted in group_count_test
//   reads where the data say                                 "histogram", FewElementsAreComputedWhereTheyAreRead
//   isl's limit of operations                                WhatIslDoesNotFinishStays
//   loops called parallel that are not                       "recurrence", "root_in_place"
#include "compiler/poly/fuse/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/fuse/count_stores_for_test.h"
#include "compiler/poly/fuse/pipelines_for_test.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ir::Function Parse(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// Schedules the text, compares what it means, and returns the report with the code behind it.
std::string Fused(std::string_view text, ScheduleOptions options) {
  const ir::Function before = Parse(text);
  ir::Function after = before;
  if (options.strategy == "auto") options.strategy = "fuse";
  options.machine = SmallMachine(8);
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return "";
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  // isl reads what the report prints, as pages of trees do.
  const IslContext isl;
  for (const PartReport& part : report->parts) {
    for (const auto& group : part.groups) {
      if (group.is_tiled) EXPECT_NO_THROW(ReadTree(isl.ctx(), group.tree)) << group.tree;
    }
  }
  EXPECT_EQ(ir::CompareMeaning(before, after, 1), "") << report->ToString() << ir::Print(after);
  return report->ToString() + ir::Print(after);
}

class FuseTest : public testing::TestWithParam<std::string> {};

TEST_P(FuseTest, AnyTilesKeepTheMeaning) {
  const std::string& text = PipelinesForTest().at(GetParam());
  for (const std::string strategy : {"fuse", "overlap"}) Fused(text, {.strategy = strategy});
  for (const std::vector<int64_t>& tile : std::vector<std::vector<int64_t>>{
           {1, 1}, {0, 1}, {2, 3}, {3}, {5, 8}, {7, 0, 1}, {16, 5}, {100, 4}, {100, 100}}) {
    SCOPED_TRACE(StrCat(tile[0], " x ", tile.size() > 1 ? tile[1] : 0));
    Fused(text, {.group_tile = tile, .join_all = true});
    Fused(text, {.group_tile = tile, .join_all = true, .parallel = false});
    Fused(text, {.group_tile = tile, .join_all = true, .windows = Windows::kAll});
  }
}

// An extern function that reads sees the elements behind an address: their array stays, and what is stored
// to it stands in front of the call.
TEST(FuseTest, WhatExternFunctionsReadStays) {
  const std::string after = Fused(R"(
      extern reads func second(A: f32[2] in) -> f32 = A[1]
      func f(A: f32[66] in, B: f32[64] out) {
        allocate L: f32[66]
        for (i, 0, 66) { L[i] = A[i] * 2.0 }
        for (i, 0, 64) { B[i] = second(&L[i]) + L[i] }
      })",
                                  {.strategy = "fuse"});
  EXPECT_THAT(after, HasSubstr("second(&L["));
}

std::vector<std::string> PipelineNames() {
  std::vector<std::string> names;
  for (const auto& [name, text] : PipelinesForTest()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, FuseTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

TEST(FuseTest, ProducersRunInTheTilesOfTheirReader) {
  const std::string result =
      Fused(PipelinesForTest().at("blur"), {.group_tile = {4, 8}, .join_all = true});
  EXPECT_THAT(result, HasSubstr("y in tiles of 4 x 8, those along dimension 0 parallel, with b; "));
  EXPECT_THAT(result, HasSubstr("allocate b.tile: f32[i64(4), i64(12)]"));
  EXPECT_THAT(result, Not(HasSubstr("allocate b: ")));
}

// The rows of a tile share what they need: three tiles of 16, 16 and 8 rows compute two more rows each.
// The cost model looks at one tile, which need not touch all that its neighbours do.
TEST(FuseTest, TilesThatTouchLessThanOthers) {
  Fused(
      "func f(P: i32[48, 48]) { for (i, 0, 2) { let x: i32 = P[0, 0] P[0, 0] = 0 P[i + 8, 0] = 0 } "
      "}",
      {.tile = {{2}}});
}

TEST(FuseTest, WindowsSlideAlongTiles) {
  const std::string text =
      "func f(a: f32[42, 9] in, y: f32[40, 9] out) {\n  allocate b: f32[42, 9]\n"
      "  for (i, 0, 42) { for (j, 0, 9) { b[i, j] = a[i, j] / 3.0 } }\n"
      "  for (i, 0, 40) { for (j, 0, 9) { y[i, j] = b[i, j] / b[i + 1, j] + b[i + 2, j] } }\n}\n";
  ScheduleOptions options = {.group_tile = {16, 0}, .join_all = true, .windows = Windows::kAll};
  options.inline_stages = false;
  const std::string result = Fused(text, options);
  EXPECT_THAT(result, HasSubstr("row by row along dimension 0, with b; "));
  EXPECT_THAT(result, HasSubstr("allocate b.tile: f32[i64(4), i64(9)]"));
  options.strategy = "fuse";
  options.machine = SmallMachine(8);
  ir::Function function = Parse(text);
  ASSERT_TRUE(Schedule(function, options).ok());
  EXPECT_EQ(StoreCounter::Count(function, 1).at("b"), (40 + 3 * 2) * 9);
}

// A window that moves back would put new rows in the place of those that are still read.
TEST(FuseTest, WindowsThatMoveBackDoNotSlide) {
  ScheduleOptions options = {.group_tile = {16, 0}, .join_all = true, .windows = Windows::kAll};
  options.inline_stages = false;
  const std::string result = Fused(
      "func f(a: f32[42, 9] in, y: f32[40, 9] out) {\n  allocate b: f32[42, 9]\n"
      "  for (i, 0, 42) { for (j, 0, 9) { b[i, j] = a[i, j] / 3.0 } }\n"
      "  for (i, 0, 40) { for (j, 0, 9) { y[i, j] = b[41 - i, j] / b[40 - i, j] } }\n}\n",
      options);
  EXPECT_THAT(result, Not(HasSubstr("row by row")));
  EXPECT_THAT(result,
              HasSubstr("in tiles of 16 x all, those along dimension 0 parallel, with b; "));
}

// A chain of four stages, each with loops of its own in the tile. The texts of filters are those of the sequence, in
// its order.
TEST(FuseTest, ProducersStandInFrontOfTheirReaders) {
  ir::Function function = Parse(
      "func f(a: f32[40] in, y: f32[37] out) {\n"
      "  allocate b: f32[40]\n  allocate c: f32[39]\n  allocate d: f32[38]\n"
      "  for (i, 0, 40) { b[i] = a[i] / 3.0 }\n"
      "  for (i, 0, 39) { c[i] = b[i] / b[i + 1] }\n"
      "  for (i, 0, 38) { d[i] = c[i] / c[i + 1] + b[i] }\n"
      "  for (i, 0, 37) { y[i] = d[i] / d[i + 1] / b[i] }\n}\n");
  const absl::StatusOr<ScheduleReport> report = Schedule(function, {.strategy = "fuse",
                                                                    .group_tile = {8},
                                                                    .join_all = true,
                                                                    .inline_stages = false,
                                                                    .machine = SmallMachine(8)});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->parts[0].groups.size(), 1);
  const std::string& tree = report->parts[0].groups[0].tree;
  size_t at = tree.find("extension: ");
  ASSERT_NE(at, std::string::npos) << tree;
  EXPECT_EQ(tree.find("extension: ", at + 1), std::string::npos) << tree;
  for (const char* statement : {"S0", "S1", "S2", "S3"}) {
    const size_t filter = tree.find(StrCat("filter: \"{ ", statement, "["), at);
    ASSERT_NE(filter, std::string::npos) << statement << tree;
    EXPECT_NE(tree.find(StrCat("schedule: \"[{ ", statement, "["), filter), std::string::npos)
        << tree;
    at = filter;
  }
}

// Down and up again by five levels: a tile of the last one needs a margin of each level, which doubles from level to
// level.
TEST(FuseTest, DeepPyramidsAreCut) {
  constexpr int kLevels = 5;
  std::string allocations, down, up;
  const auto size = [](int level) { return (256 >> level) + 2; };
  for (int l = 1; l <= kLevels; ++l) {
    const int n = size(l);
    StrAppend(&allocations, "  allocate d", l, ": f32[", n, ", ", n, "]\n");
    const std::string from = l == 1 ? "a" : StrCat("d", l - 1);
    StrAppend(&down, "  for (i, 0, ", n, ") { for (j, 0, ", n, ") { d", l, "[i, j] = ", from,
              "[max(2 * i - 2, 0), max(2 * j - 2, 0)] / 4.0 + ", from,
              "[max(2 * i - 3, 0), max(2 * j - 3, 0)] / 3.0 + ", from,
              "[max(2 * i - 4, 0), max(2 * j - 4, 0)] } }\n");
  }
  for (int l = kLevels - 1; l >= 0; --l) {
    const int n = l == 0 ? 256 : size(l);
    const std::string u = l == 0 ? "y" : StrCat("u", l);
    const std::string from = StrCat(l + 1 == kLevels ? "d" : "u", l + 1);
    if (l > 0) StrAppend(&allocations, "  allocate u", l, ": f32[", n, ", ", n, "]\n");
    StrAppend(&up, "  for (i, 0, ", n, ") { for (j, 0, ", n, ") { ", u, "[i, j] = ", from,
              "[i / 2, j / 2] / 3.0 + ", from, "[(i + 1) / 2, (j + 1) / 2] / 5.0 + ",
              l == 0 ? "a" : StrCat("d", l), "[i, j] } }\n");
  }
  const std::string text =
      StrCat("func f(a: f32[258, 258] in, y: f32[256, 256] out) {\n", allocations, down, up, "}\n");
  const auto redundancy = [&](ScheduleOptions options) -> double {
    ir::Function function = Parse(text);
    options.strategy = "fuse";
    options.count = true;
    const absl::StatusOr<ScheduleReport> report = Schedule(function, options);
    EXPECT_TRUE(report.ok()) << report.status();
    for (const auto& [name, value] : report->Figures()) {
      if (name == "redundancy") return value;
    }
    ADD_FAILURE() << report->ToString();
    return 0;
  };
  EXPECT_GT(redundancy({.group_tile = {8, 8}, .join_all = true}), 3);
  for (const int64_t cache : {int64_t{64} << 10, int64_t{1} << 20}) {
    ScheduleOptions options;
    options.machine.cache_bytes = cache;
    EXPECT_LT(redundancy(options), 1.5) << cache;
  }
}

// A part that needs more operations than isl may do stays as it is.
// Rows of a sparse matrix: nobody knows what one costs, so that the part has the schedule of auto.
TEST(FuseTest, LoopsOfTheDataAreLeftToAuto) {
  const std::string text = R"(
      func f(first: i32[65] in, a: f32[999] in, x: f32[64] in, y: f32[64]) {
        allocate sum: f32[64]
        for (i, 0, 64) { sum[i] = x[i] * 2.0 }
        for (i, 0, 64) {
          for (k, max(first[i], 0), min(max(first[i + 1], 0), 999) - max(first[i], 0)) {
            sum[i] = sum[i] + a[k]
          }
        }
        for (i, 0, 64) { y[i] = sum[i] + x[i] }
      })";
  const std::string fused = Fused(text, {.group_tile = {8}, .join_all = true});
  EXPECT_THAT(fused, Not(HasSubstr(", with ")));
  EXPECT_THAT(fused, HasSubstr("1 loop, tiles of 8, tile loop 0 parallel"));
}

TEST(FuseTest, WhatIslDoesNotFinishStays) {
  const ir::Function before = Parse(PipelinesForTest().at("pyramid"));
  int unchanged = 0, changed = 0;
  for (const int64_t operations : {300, 3'000, 30'000, 100'000, 1'000'000, 10'000'000}) {
    ir::Function after = before;
    ScheduleOptions options{.strategy = "fuse", .group_tile = {4, 4}, .join_all = true};
    options.machine = SmallMachine(8);
    options.max_operations = operations;
    const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->internal_errors, testing::IsEmpty()) << operations;
    ++(report->changed ? changed : unchanged);
    EXPECT_EQ(ir::CompareMeaning(before, after, 1, {.runs = 1}), "") << operations;
  }
  EXPECT_GT(unchanged, 0);
  EXPECT_GT(changed, 0);
}

TEST(FuseTest, WhatIsStoredInPlaceOrLiveStays) {
  const std::string result =
      Fused(PipelinesForTest().at("in_place"), {.group_tile = {4}, .join_all = true});
  EXPECT_THAT(result, Not(HasSubstr("with a")));
  // b depends on itself in other elements: computing it twice in place would be wrong.
  EXPECT_THAT(result, Not(HasSubstr("with b")));
}

TEST(FuseTest, BranchesOfSelectsReadWhatIsStored) {
  EXPECT_THAT(Fused(PipelinesForTest().at("guarded"), {}),
              HasSubstr("computed where they are read: b"));
  // b[0] is not stored. That the first branch does not read it is beyond the proof.
  const std::string unproved =
      "func f(a: f32[16] in, y: f32[16] out) {\n"
      "  allocate b: f32[18]\n"
      "  for (i, 1, 16) { b[i] = a[i - 1] * 2.0 }\n"
      "  for (i, 0, 16) { y[i] = select(1 <= i * i, b[i], 0.5) }\n"
      "}\n";
  EXPECT_THAT(Fused(unproved, {}), Not(HasSubstr("computed where they are read")));
}

// t wraps around; an index must not.
TEST(FuseTest, WhatWrapsAroundStaysOutOfIndicesAndConditions) {
  for (const char* value : {"a[i, (t[i] % 5 + 5) % 5]", "select(t[i] < 3, 1, 2)"}) {
    const std::string text =
        StrCat("func f(a: i32[12, 5] in, y: i32[12] out) {\n  allocate t: i32[12]\n",
               "  for (i, 0, 12) { t[i] = a[i, 0] + a[i, 1] }\n  for (i, 0, 12) { y[i] = ", value,
               " }\n}\n");
    EXPECT_THAT(Fused(text, {}), Not(HasSubstr("computed where they are read")));
  }
  const std::string fits =
      "func f(a: i16[12, 5] in, y: i16[12] out) {\n  allocate t: i32[12]\n"
      "  for (i, 0, 12) { t[i] = cast(i32, a[i, 0]) + cast(i32, a[i, 1]) }\n"
      "  for (i, 0, 12) { y[i] = a[i, (t[i] % 5 + 5) % 5] }\n}\n";
  EXPECT_THAT(Fused(fits, {}), HasSubstr("computed where they are read: t"));
}

// y reads two of the eight layers of t, and z all of them.
TEST(FuseTest, FewElementsAreComputedWhereTheyAreRead) {
  const std::string text =
      "func f(a: f32[40, 16] in, y: f32[40, 16] out, z: f32[8, 36, 16] out) {\n"
      "  allocate t: f32[8, 40, 16]\n"
      "  for (k, 0, 8) { for (i, 0, 40) { for (j, 0, 16) { t[k, i, j] = a[i, j] / 3.0 * cast(f32, "
      "k) "
      "} } }\n"
      "  for (k, 0, 8) { for (i, 0, 36) { for (j, 0, 16) { z[k, i, j] = t[k, i, j] * t[k, i + 1, "
      "j] + "
      "t[k, i + 2, j] * t[k, i + 3, j] + t[k, i + 4, j] } } }\n"
      "  for (i, 0, 40) { for (j, 0, 16) { y[i, j] = t[min(max(cast(i32, a[i, j]), 0), 6), i, j] + "
      "t[min(max(cast(i32, a[i, j]), 0), 6) + 1, i, j] } }\n"
      "}\n";
  const std::string result = Fused(text, {});
  EXPECT_THAT(result, HasSubstr("computed where they are read: t in y"));
  EXPECT_THAT(result, HasSubstr("allocate t"));
}

// Found by random_run --schedules, seed 501041: no loop has the parameter, only an index.
TEST(FuseTest, ParametersOfIndicesAlone) {
  Fused(
      "func f(P: i32[48, 48], n: i32) {\n"
      "  P[0, 0] = 0\n"
      "  let i: i32 = 0\n"
      "  let x: i32 = P[0, 1]\n"
      "  for (k, 2, 3) { }\n"
      "  P[1, n] = x\n"
      "}\n",
      {.join_all = true});
}

// Found by random_run --schedules, seed 4625: a stage that stores nothing.
TEST(FuseTest, StagesThatStoreNothing) {
  Fused("func f(A: i32[64] in) { for (i, 0, 1) { if (0 < A[0]) { } } }\n", {});
  Fused(
      "func f(P: i32[48, 48]) {\n"
      "  for (i, -2, 1) {\n"
      "    let x: i32 = P[0, 0]\n"
      "    {\n"
      "      allocate t: i32[] @local\n"
      "      t[] = P[0, 0]\n"
      "    }\n"
      "    P[0, 0] = 0\n"
      "  }\n"
      "}\n",
      {.join_all = true});
}

// A scalar that only the size of an array uses.
TEST(FuseTest, SizesAreUses) {
  Fused(
      "func f(A: i32[n], n: i32) {\n"
      "  for (i, 0, n) {\n"
      "    allocate size: i32[] size[] = i + 1\n"
      "    allocate L: i32[size[]]\n"
      "    for (j, 0, i + 1) { L[j] = A[j] }\n"
      "    A[i] = L[i] * 2\n"
      "  }\n"
      "}\n",
      {});
}

// Loops of which nobody knows the length are no single iterations: b in the sum would be computed for each element of
// each window.
TEST(FuseTest, WindowsOfUnknownSizesTakeInNothing) {
  const std::string window =
      "func f(a: f32[n + p, m + q] in, w: f32[p, q] in, y: f32[n, m] out, n: i32, m: i32, p: i32, "
      "q: i32) {\n"
      "  allocate b: f32[n + p, m + q]\n"
      "  for (i, 0, n + p) { for (j, 0, m + q) { b[i, j] = a[i, j] * 0.5 + 1.0 } }\n"
      "  for (i, 0, n) { for (j, 0, m) {\n"
      "    y[i, j] = 0.0\n"
      "    for (u, 0, p) { for (v, 0, q) { y[i, j] = y[i, j] + b[i + u, j + v] * w[u, v] } }\n"
      "  } }\n"
      "}\n";
  EXPECT_THAT(Fused(window, {}), Not(HasSubstr("computed where they are read")));
  // Tiles have halos of that size.
  const std::string tiled = Fused(window, {.group_tile = {4, 8}, .join_all = true});
  EXPECT_THAT(tiled, AllOf(HasSubstr("y in tiles of 4 x 8"), HasSubstr("with b")));
  EXPECT_THAT(tiled, HasSubstr("allocate b.tile: f32["));
}

// What an iteration stores for itself, in an array of its own or in that of the one before, is not there any more when
// t is read.
TEST(FuseTest, WhatEachIterationStoresStays) {
  const auto text = [](const std::string& parameter, const std::string& local, const std::string& x,
                       const std::string& reader) {
    return StrCat("func f(a: f32[8] in", parameter, ", y: f32[8] out) {\n  allocate t: f32[8]\n",
                  "  for (i, 0, 8) {\n", local, "    ", x, " = a[i]\n    t[i] = ", x,
                  " * 2.0\n    ", reader, "\n  }\n  for (i, 0, 8) { y[i] = t[i] }\n}\n");
  };
  const std::string local = "    allocate x: f32[8]\n";
  for (const std::string& program :
       {text(", x: f32[8]", "", "x[0]", ""), text("", local, "x[0]", ""),
        text("", local, "x[i]", ""),
        text(", z: f32[8] out", local, "x[i]", "z[i] = select(i >= 1, t[max(i - 1, 0)], 0.0)")}) {
    SCOPED_TRACE(program);
    EXPECT_THAT(Fused(program, {}), Not(HasSubstr("computed where they are read: t")));
  }
  // Each element once: it stays what it is.
  EXPECT_THAT(Fused("func f(a: f32[8] in, y: f32[8] out) {\n  allocate t: f32[8]\n"
                    "  allocate x: f32[8]\n"
                    "  for (i, 0, 8) { x[i] = a[i] / 3.0 t[i] = x[i] * 2.0 }\n"
                    "  for (i, 0, 8) { y[i] = t[i] * x[7 - i] }\n}\n",
                    {}),
              HasSubstr("computed where they are read: x (2 times), t"));
}

// x is no array any more where t is read.
TEST(FuseTest, WhatIsMadeOfAnArrayThatEndsStays) {
  const std::string result = Fused(
      "func f(a: f32[8] in, y: f32[8], n: i32) {\n  allocate t: f32[8]\n"
      "  if (n < 3) { allocate x: f32[8] for (i, 0, 8) { x[i] = a[i] / 3.0 t[i] = x[i] * 2.0 } }\n"
      "  if (n < 3) { for (i, 0, 8) { y[i] = t[i] } }\n}\n",
      {});
  EXPECT_THAT(result, Not(HasSubstr("computed where they are read: t")));
}

// Two nests store a, before y reads b. One of them alone could run behind y.
TEST(FuseTest, WhatChangesInBetweenStays) {
  std::string text = PipelinesForTest().at("overwritten");
  EXPECT_THAT(Fused(text, {.group_tile = {4}, .join_all = true}), HasSubstr("with b, a_new"));
  const std::string nest = "  for (i, 0, 20) { a[i] = i }\n";
  text.insert(text.find(nest), "  for (i, 0, 10) { a[2 * i] = 3 - i }\n");
  EXPECT_THAT(Fused(text, {.group_tile = {4}, .join_all = true}), Not(HasSubstr("with b")));
}

}  // namespace
}  // namespace polynao::poly
