#include "benchmarks/result.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/browser.h"

namespace polynao::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Suite TwoClasses() {
  Suite suite;
  suite.name = "made_up";
  suite.doc = "For tests";
  ClassFigures binary;
  binary.op_class = "binary";
  binary.title = "Binary";
  binary.elementwise = true;
  ClassFigures conv;
  conv.op_class = "conv";
  conv.title = "Convolution";
  suite.classes = {binary, conv};
  suite.cases = {{"binary", "add", "10", "f16"},
                 {"binary", "add", "20", "f16"},
                 {"binary", "add", "30", "f16"},
                 {"conv", "conv2d", "5x5x1,1x3x3x1", "i8"}};
  return suite;
}

Row Ran(const SuiteCase& c, const std::string& impl, int64_t cycles, int64_t bound = 100,
        int64_t traffic = 5'000'000) {
  Row row;
  row.suite_case = c;
  row.impl = impl;
  row.state = Row::State::kAgrees;
  row.cycles = cycles;
  row.bound_cycles = bound;
  row.traffic_bytes = traffic;
  row.instructions = 7;
  row.bytes = {{"gmem_nmem", 64}};
  return row;
}

Row Skipped(const SuiteCase& c, const std::string& impl, const std::string& reason) {
  Row row;
  row.suite_case = c;
  row.impl = impl;
  row.reason = reason;
  return row;
}

SuiteResult Result(std::vector<Row> rows) {
  SuiteResult result;
  result.suite = TwoClasses();
  result.machine.name = "card";
  result.machine.Set("core.nmem_kib", 512);
  result.rows = std::move(rows);
  result.summary = Summarize(result.suite, result.rows, {{{"library", "binary"}, 42}});
  return result;
}

TEST(ResultTest, SpeedupsAreGeometricMeansOverCasesWhereBothAgree) {
  const Suite suite = TwoClasses();
  Row wrong = Ran(suite.cases[2], kCompiled, 10);
  wrong.state = Row::State::kDiffers;
  const SuiteResult result =
      Result({Ran(suite.cases[0], kCompiled, 200), Ran(suite.cases[0], "library", 100),
              Ran(suite.cases[1], kCompiled, 125), Ran(suite.cases[1], "library", 1000),
              // Wrong values: counts nowhere, however fast.
              wrong, Ran(suite.cases[2], "library", 1000)});
  const ClassSummary& binary = result.summary.classes[0];
  EXPECT_EQ(binary.cases, 3);
  const Statistic* speedup = binary.Speedup("library");
  ASSERT_NE(speedup, nullptr);
  EXPECT_EQ(speedup->cases, 2);
  EXPECT_DOUBLE_EQ(speedup->geomean, 2);  // sqrt(0.5 * 8)
  EXPECT_DOUBLE_EQ(speedup->min, 0.5);
  EXPECT_EQ(speedup->min_shape, "add 10");
  EXPECT_DOUBLE_EQ(speedup->max, 8);
  EXPECT_EQ(binary.Speedup("expert"), nullptr);

  ASSERT_EQ(binary.efficiency.size(), 2);
  EXPECT_EQ(binary.efficiency[0].first, kCompiled);
  EXPECT_EQ(binary.efficiency[0].second.cases, 2);
  EXPECT_DOUBLE_EQ(binary.efficiency[0].second.geomean, std::sqrt(0.5 * 0.8));
  EXPECT_DOUBLE_EQ(binary.efficiency[0].second.min, 0.5);
  EXPECT_EQ(binary.efficiency[1].second.cases, 3);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.summary.agrees, 5);
  EXPECT_EQ(result.summary.differs, 1);
}

TEST(ResultTest, TrafficGoalsCountCompiledElementwiseCases) {
  const Suite suite = TwoClasses();
  const SuiteResult result =
      Result({Ran(suite.cases[0], kCompiled, 100, 95, 4'000'001),   // reaches 0.95
              Ran(suite.cases[0], "library", 1000, 95, 4'000'001),  // not ours
              Ran(suite.cases[1], kCompiled, 1000, 949, 5'000'000),
              Ran(suite.cases[2], kCompiled, 100, 90, 4'000'000),     // reaches 0.90
              Ran(suite.cases[3], kCompiled, 1000, 10, 5'000'000)});  // not elementwise
  ASSERT_EQ(result.summary.traffic.size(), 2);
  EXPECT_EQ(result.summary.traffic[0].reached, 1);
  EXPECT_THAT(result.summary.traffic[0].missed, ElementsAre("binary/add/20 0.949"));
  EXPECT_EQ(result.summary.traffic[1].reached, 1);
  EXPECT_THAT(result.summary.traffic[1].missed, ElementsAre());
  // 1 MB and less has no goal.
  const SuiteResult small = Result({Ran(suite.cases[0], kCompiled, 100, 1, 1'000'000)});
  EXPECT_EQ(small.summary.traffic[1].reached, 0);
  EXPECT_THAT(small.summary.traffic[1].missed, ElementsAre());
}

TEST(ResultTest, SkippedRowsStayInSightAndNeverCountAsPassed) {
  const Suite suite = TwoClasses();
  const std::string reason = "no operator is named 'conv2d'";
  const SuiteResult result = Result(
      {Skipped(suite.cases[3], kCompiled, reason), Skipped(suite.cases[3], "library", reason)});
  EXPECT_EQ(result.summary.agrees, 0);
  EXPECT_EQ(result.summary.skipped, 2);
  EXPECT_EQ(result.summary.skip_reasons, (std::map<std::string, int>{{reason, 2}}));
  EXPECT_EQ(result.summary.classes[1].cases, 1);
  EXPECT_EQ(result.summary.classes[1].Speedup("library")->cases, 0);
  EXPECT_FALSE(result.ok()) << "nothing ran";
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_TRUE(json["rows"][0]["ok"].is_null());
  EXPECT_EQ(json["rows"][0]["skipped"], reason);
  EXPECT_TRUE(json["rows"][0]["cycles"].is_null());
  EXPECT_THAT(RowsText(result), HasSubstr("skipped: " + reason));
  EXPECT_THAT(SummaryText(result), HasSubstr("skipped 2: " + reason));
  EXPECT_THAT(PageHtml(result), HasSubstr("no operator is named 'conv2d'"));
}

TEST(ResultTest, FailedRowsAreNotOk) {
  const Suite suite = TwoClasses();
  Row failed = Skipped(suite.cases[0], "library", "cluster 0, core 1: a trap");
  failed.state = Row::State::kFailed;
  const SuiteResult result = Result({Ran(suite.cases[0], kCompiled, 10), failed});
  EXPECT_FALSE(result.ok());
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["rows"][1]["ok"], false);
  EXPECT_EQ(json["rows"][1]["error"], "cluster 0, core 1: a trap");
  EXPECT_THAT(RowsText(result), HasSubstr("FAILED: cluster 0, core 1: a trap"));
}

std::vector<std::string> Keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(ResultTest, JsonSchema) {
  const Suite suite = TwoClasses();
  const SuiteResult result =
      Result({Ran(suite.cases[0], kCompiled, 200), Ran(suite.cases[0], "library", 300)});
  EXPECT_TRUE(result.ok());
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_THAT(Keys(json), ElementsAre("suite", "date", "commit", "config", "machine", "seed",
                                      "filter", "jobs", "wall_seconds", "ok", "rows", "summary"));
  EXPECT_THAT(Keys(json["rows"][0]),
              ElementsAre("case", "class", "op", "shape", "dtype", "impl", "ok", "skipped", "error",
                          "cycles", "bound_cycles", "dram_bound_cycles", "efficiency",
                          "traffic_bytes", "bytes", "instructions", "compile_ms", "simulate_ms"));
  EXPECT_THAT(Keys(json["summary"]),
              ElementsAre("rows", "skip_reasons", "classes", "efficiency_by_traffic", "lines"));
  EXPECT_EQ(json["suite"], "made_up");
  EXPECT_EQ(json["config"], "card");
  EXPECT_EQ(json["machine"]["core.nmem_kib"], 512);
  EXPECT_EQ(json["rows"][0]["case"], "binary/add/10");
  EXPECT_EQ(json["rows"][0]["cycles"], 200);
  EXPECT_EQ(json["rows"][0]["efficiency"], 0.5);
  EXPECT_EQ(json["rows"][0]["bytes"]["gmem_nmem"], 64);
  EXPECT_EQ(json["summary"]["classes"]["binary"]["speedup"]["library"]["geomean"], 1.5);
  EXPECT_EQ(json["summary"]["lines"]["binary"]["library"], 42);
  EXPECT_TRUE(json["summary"]["lines"]["conv"]["library"].is_null());
  // What is printed parses back to the same.
  EXPECT_EQ(nlohmann::ordered_json::parse(json.dump()), json);
}

TEST(ResultTest, PageShowsBarsOfWhatRan) {
  const Suite suite = TwoClasses();
  SuiteResult result =
      Result({Ran(suite.cases[0], kCompiled, 200), Ran(suite.cases[0], "library", 300)});
  result.filter = "<b>";
  const std::string page = PageHtml(result);
  EXPECT_THAT(page, HasSubstr("<title>10, compiled: 1.500</title>"));
  EXPECT_THAT(page, HasSubstr("<title>10, library: 1.000</title>"));
  EXPECT_THAT(page, HasSubstr("class=\"value middle\">1.50</text>"));
  EXPECT_THAT(page, HasSubstr("core.nmem_kib"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(page), "");
}

}  // namespace
}  // namespace polynao::benchmarks
