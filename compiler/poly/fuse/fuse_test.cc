#include "compiler/poly/fuse/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/fuse/pipelines_for_test.h"
#include "compiler/poly/machine_for_test.h"
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
  }
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

TEST(FuseTest, WhatChangesInBetweenStays) {
  const std::string result =
      Fused(PipelinesForTest().at("overwritten"), {.group_tile = {4}, .join_all = true});
  EXPECT_THAT(result, Not(HasSubstr("with b")));
}

}  // namespace
}  // namespace polynao::poly
