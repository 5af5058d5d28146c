#include "sweep/analysis.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PointSum Sum(int64_t point, double cycles, double energy) {
  return {point, "", {{"cycles", cycles}, {"energy_pj", energy}}};
}

TEST(Analysis, SumsOverPrograms) {
  Table table;
  table.axes = {{"a", {"1", "2"}}};
  table.programs = {"p", "q"};
  table.rows = {{0, "p", "", {{"cycles", 3}, {"area_mm2", 7}}},
                {0, "q", "", {{"cycles", 4}, {"area_mm2", 7}}},
                {1, "p", "", {{"cycles", 5}, {"area_mm2", 8}}},
                {1, "q", "too large", {}}};
  const std::vector<PointSum> sums = SumPoints(table);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].metrics, (MetricValues{{"cycles", 7}, {"area_mm2", 7}}));
  EXPECT_EQ(sums[1].error, "q: too large");
  EXPECT_THAT(sums[1].metrics, IsEmpty());
}

TEST(Analysis, ParetoFrontKeepsWhatNothingBeats) {
  EXPECT_THAT(
      ParetoFront(
          {Sum(0, 3, 1), Sum(1, 1, 3), Sum(2, 2, 2), Sum(3, 2, 3), Sum(4, 2, 2), {5, "no", {}}},
          "cycles", "energy_pj"),
      ElementsAre(1, 2, 4, 0));
  EXPECT_THAT(ParetoFront({}, "cycles", "energy_pj"), IsEmpty());
  EXPECT_THAT(ParetoFront({Sum(0, 1, 1)}, "cycles", "area_mm2"), IsEmpty());
}

TEST(Analysis, ParetoFrontAsByAllPairs) {
  constexpr uint64_t kSeed = 811;
  SCOPED_TRACE(StrCat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<PointSum> sums;
    const int64_t count = static_cast<int64_t>(random() % 40);
    for (int64_t p = 0; p < count; ++p) {
      sums.push_back(
          Sum(p, static_cast<double>(random() % 12), static_cast<double>(random() % 12)));
    }
    std::vector<int64_t> expected;
    for (const PointSum& x : sums) {
      const bool is_beaten = std::any_of(sums.begin(), sums.end(), [&](const PointSum& y) {
        const double ax = x.metrics.at("cycles"), bx = x.metrics.at("energy_pj");
        const double ay = y.metrics.at("cycles"), by = y.metrics.at("energy_pj");
        return ay <= ax && by <= bx && (ay < ax || by < bx);
      });
      if (!is_beaten) expected.push_back(x.point);
    }
    std::vector<int64_t> front = ParetoFront(sums, "cycles", "energy_pj");
    EXPECT_TRUE(std::is_sorted(front.begin(), front.end(), [&](int64_t x, int64_t y) {
      return sums[static_cast<size_t>(x)].metrics.at("cycles") <
             sums[static_cast<size_t>(y)].metrics.at("cycles");
    }));
    std::sort(front.begin(), front.end());
    EXPECT_EQ(front, expected);
  }
}

// cycles = 2^a * 3^b but for one infeasible point.
TEST(Analysis, SensitivitiesAreMeansOverTheOtherAxes) {
  Table table;
  table.axes = {{"a", {"0", "1", "2"}}, {"b", {"0", "1"}}};
  table.programs = {"p"};
  for (int64_t p = 0; p < 6; ++p) {
    if (p == 5) {
      table.rows.push_back({p, "p", "no", {}});
    } else {
      table.rows.push_back({p, "p", "", {{"cycles", std::pow(2.0, p / 2) * std::pow(3.0, p % 2)}}});
    }
  }
  const auto result = Sensitivities(table, SumPoints(table), "cycles");
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].axis, "a");
  EXPECT_DOUBLE_EQ(*result[0].relative[1], 2);
  EXPECT_DOUBLE_EQ(*result[0].relative[2], 4);
  EXPECT_DOUBLE_EQ(result[0].effect, 4);
  EXPECT_EQ(result[1].axis, "b");
  EXPECT_DOUBLE_EQ(*result[1].relative[1], 3);
  const auto none = Sensitivities(table, SumPoints(table), "energy_pj");
  EXPECT_FALSE(none[0].relative[0].has_value());
  EXPECT_EQ(none[0].effect, 1);
  EXPECT_EQ(none[0].axis, "a");
}

// Two machines, two tables, two programs, of which one cannot run by the second table on the second machine.
TEST(Analysis, TablesAreComparedProgramByProgram) {
  Table table;
  table.axes = {{"a", {"0", "1"}}, {std::string(kInstructionsAxis), {"without", "with"}}};
  table.programs = {"p", "q"};
  const auto add = [&](int64_t point, const char* program, double cycles) {
    Row& row = table.rows.emplace_back();
    row.point = point;
    row.program = program;
    if (cycles == 0) row.error = "no";
    if (cycles > 0) row.metrics = {{"cycles", cycles}, {"area_mm2", 5}};
  };
  for (const auto& [point, p, q] :
       {std::tuple(0, 100, 10), {1, 50, 10}, {2, 100, 20}, {3, 200, 0}}) {
    add(point, "p", p);
    add(point, "q", q);
  }
  const std::vector<ProgramRatios> ratios = RatiosAlong(table, kInstructionsAxis, "cycles");
  ASSERT_EQ(ratios.size(), 2u);
  EXPECT_EQ(ratios[0].program, "p");
  EXPECT_DOUBLE_EQ(*ratios[0].relative[1], 1);  // of 1/2 and 2
  EXPECT_DOUBLE_EQ(*ratios[1].relative[1], 1);  // of the first machine alone
  EXPECT_DOUBLE_EQ(*MeansOf(ratios)[1], 1);
  EXPECT_EQ(RatiosAlong(table, "b", "cycles").size(), 0u);
  EXPECT_TRUE(MeansOf({}).empty());
  table.rows[2].metrics["cycles"] = 25;  // p at point 1: ratios 1/4 and 2
  const std::string text = InstructionsText(table);
  EXPECT_THAT(text, ::testing::HasSubstr("cycles, relative to without                     with\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("p +0\\.707\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("geometric mean, cycles +0\\.841\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("geometric mean, area +1\\.000\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("energy")));
  EXPECT_THAT(text,
              ::testing::HasSubstr("with: fewer cycles in 1 programs, the same in 1, more in 0\n"));
  table.axes.back().name = "b";
  EXPECT_EQ(InstructionsText(table), "");
}

TEST(Analysis, BestPointIsTheFirstOfTheLeast) {
  const std::vector<PointSum> sums = {Sum(0, 4, 1), Sum(1, 2, 3), Sum(2, 2, 2), Sum(3, 1, 4)};
  EXPECT_EQ(BestPoint(sums, {"cycles"}), 3);
  EXPECT_EQ(BestPoint(sums, {"cycles", "energy_pj"}), 0);
  EXPECT_EQ(BestPoint(sums, {"area_mm2"}), std::nullopt);
  EXPECT_EQ(BestPoint({}, {"cycles"}), std::nullopt);
}

}  // namespace
}  // namespace polynao::sweep
