// The instances that the report counts are those that run.
#include "compiler/poly/fuse/group_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/fuse/count_stores_for_test.h"
#include "compiler/poly/fuse/pipelines_for_test.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

struct Counted {
  ScheduleReport report;
  std::map<std::string, int64_t> before, after;  // stores to each array

  bool AllTiled() const {
    for (const PartReport& part : report.parts) {
      for (const GroupReport& group : part.groups) {
        if (!group.is_tiled) return false;
      }
    }
    return true;
  }
  InstanceCount Instances() const {
    InstanceCount all;
    for (const PartReport& part : report.parts) {
      for (const GroupReport& group : part.groups) {
        EXPECT_TRUE(group.instances.has_value()) << group.not_counted;
        if (!group.instances) continue;
        all.run += group.instances->run;
        all.exist += group.instances->exist;
      }
    }
    return all;
  }
};

Counted Count(const std::string& text, ScheduleOptions options) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  Counted counted;
  counted.before = StoreCounter::Count(*function, 1);
  options.strategy = "fuse";
  options.machine = SmallMachine(8);
  options.inline_stages = false;
  options.count = true;
  const absl::StatusOr<ScheduleReport> report = Schedule(*function, options);
  EXPECT_TRUE(report.ok()) << report.status();
  counted.report = *report;
  counted.after = StoreCounter::Count(*function, 1);
  return counted;
}

class GroupCountTest : public testing::TestWithParam<std::string> {};

// Tiles of one element, such that do not divide the arrays, and larger ones.
TEST_P(GroupCountTest, CountsWhatRuns) {
  const std::string& name = GetParam();
  for (const std::vector<int64_t>& tile :
       std::vector<std::vector<int64_t>>{{1, 1}, {2, 3}, {7, 0, 1}, {16, 100}}) {
    SCOPED_TRACE(StrCat(tile[0], " x ", tile[1]));
    const Counted counted =
        Count(PipelinesForTest().at(name), {.group_tile = tile, .join_all = true});
    const std::string text = counted.report.ToString();
    EXPECT_EQ(counted.Instances().exist, Sum(counted.before)) << text;
    // Where "auto" keeps sums in registers, stores are not instances.
    if (name == "sums" && !counted.AllTiled()) continue;
    EXPECT_EQ(counted.Instances().run, Sum(counted.after)) << text;
    // Arrays that live on, and those that a stage changes in place, are stored as often as the function says.
    for (const std::string array : {"a", "y", "z", name == "in_place" ? "b" : "y"}) {
      if (!counted.before.contains(array)) continue;
      EXPECT_EQ(counted.after.at(array), counted.before.at(array)) << array << "\n" << text;
    }
  }
}

std::vector<std::string> PipelineNames() {
  std::vector<std::string> names;
  for (const auto& [name, text] : PipelinesForTest()) {
    // The arguments of a run are not the sizes that counts assume.
    if (name != "symbolic") names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, GroupCountTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

// By hand: 15 rows in 4 tiles of 4, 19 columns in 3 tiles of 8, of which each needs 4 columns more of b: 15 * (12 +
// 12 + 7).
TEST(GroupCountTest, AHaloByHand) {
  const Counted counted =
      Count(PipelinesForTest().at("blur"), {.group_tile = {4, 8}, .join_all = true});
  EXPECT_EQ(counted.Instances().run, 15 * 19 + 15 * (12 + 12 + 7));
  EXPECT_EQ(counted.Instances().exist, 15 * 19 + 15 * 23);
  EXPECT_EQ(counted.after.at("b"), 15 * (12 + 12 + 7));
  EXPECT_THAT(counted.report.ToString(), HasSubstr("1.19 times the instances"));
}

// Parameters are as long as the model assumes: 64 rows and columns of y in tiles of 8 x 16.
TEST(GroupCountTest, ParametersAreAssumed) {
  const Counted counted =
      Count(PipelinesForTest().at("symbolic"), {.group_tile = {8, 16}, .join_all = true});
  EXPECT_EQ(counted.Instances().run, 64 * 64 + 8 * 4 * 10 * 18);
  EXPECT_EQ(counted.Instances().exist, 64 * 64 + 66 * 66);
}

// Each half of t is an array of its own. Nobody reads t[4], which the program has all the same.
TEST(GroupCountTest, WhatNobodyReadsExists) {
  const Counted counted = Count(
      "func f(x: f32[9] in, y: f32[4] out, z: f32[3] out) {\n  allocate t: f32[9]\n"
      "  for (i, 0, 9) { t[i] = x[i] / 3.0 }\n"
      "  for (i, 0, 4) { y[i] = t[i] / t[3 - i] }\n"
      "  for (i, 0, 3) { z[i] = t[i + 5] / t[i + 6] }\n}\n",
      {.group_tile = {2}, .join_all = true, .windows = Windows::kNone});
  EXPECT_THAT(counted.report.ToString(), HasSubstr("with t.0"));
  EXPECT_EQ(counted.report.parts[0].exist, 9 + 4 + 3);
  EXPECT_EQ(counted.Instances().run, Sum(counted.after));
  const auto figures = counted.report.Figures();
  const std::map<std::string, double> by_name(figures.begin(), figures.end());
  EXPECT_EQ(by_name.at("redundancy"), static_cast<double>(counted.Instances().run) / (9 + 4 + 3));
}

TEST(GroupCountTest, TooManyOperationsAreSaid) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(PipelinesForTest().at("pyramid"));
  const absl::StatusOr<Extraction> extraction = Extract(*function);
  ASSERT_TRUE(extraction.ok());
  EXPECT_EQ(CountInstances(extraction->scops[0], nullptr, 64, 50).status().code(),
            absl::StatusCode::kResourceExhausted);
  const absl::StatusOr<InstanceCount> all = CountInstances(extraction->scops[0], nullptr, 64, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->run, 17 * 13 + 16 * 12 + 30 * 22);
}

}  // namespace
}  // namespace polynao::poly
