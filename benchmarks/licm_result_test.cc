#include "benchmarks/licm_result.h"

#include <cmath>
#include <string>
#include <vector>

#include "benchmarks/licm_page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/browser.h"

namespace polynao::benchmarks {
namespace {

using testing::HasSubstr;

LicmRow Row(const std::string& op, int id, double baseline_us, double speedup) {
  LicmRow row;
  row.op = op;
  row.id = id;
  row.values_agree = true;
  row.baseline_ns = baseline_us * 1e3;
  row.optimized_ns = row.baseline_ns / speedup;
  row.speedup = speedup;
  row.output_elements = 10;
  row.baseline_counts.int_add = 100;
  row.optimized_counts.int_add = 40;
  row.baseline_counts.branches = 10;
  row.optimized_counts.branches = 10;
  row.pass_ms = {{"licm", 1.5}, {"cse", 0.5}};
  return row;
}

std::vector<LicmRow> Rows() {
  std::vector<LicmRow> rows = {
      Row("a", 1, 100, 1.5), Row("a", 2, 300, 1.0),   Row("b", 1, 100, 0.9), Row("c", 1, 40, 2.0),
      Row("d", 1, 100, 1.0), Row("d", 2, 100, 1.005), Row("e", 1, 100, 1.01)};
  rows[4].same_code = true;
  rows[2].pass_ms[0].second = 7;
  rows.push_back(Row("f", 1, 0, 1));
  rows.back().error = "no such operator";
  return rows;
}

// Effective: other code, and 50 us or more. Operators are judged by their average, in a band of 1 %.
TEST(LicmResultTest, Summary) {
  const LicmSummary s = SummarizeLicm(Rows());
  EXPECT_EQ(s.cases, 8);
  EXPECT_EQ(s.measured, 7);
  EXPECT_EQ(s.failed, 1);
  EXPECT_EQ(s.same_code, 1);
  EXPECT_EQ(s.too_short, 1);
  EXPECT_EQ(s.effective, 5);
  EXPECT_EQ(s.effective_operators, 4);
  EXPECT_EQ(s.improved, 1);
  EXPECT_EQ(s.unchanged, 2);
  EXPECT_EQ(s.worse, 1);
  EXPECT_EQ(s.improved_cases, 1);
  EXPECT_EQ(s.worse_cases, 1);
  EXPECT_DOUBLE_EQ(s.worst, 0.9);
  EXPECT_EQ(s.worst_case, "b/1");
  EXPECT_DOUBLE_EQ(s.most_passes_ms, 7.5);
  EXPECT_EQ(s.most_passes_case, "b/1");
  EXPECT_DOUBLE_EQ(s.average, (1.5 + 1.0 + 0.9 + 1.005 + 1.01) / 5);
  const double optimized = 100 / 1.5 + 300 + 100 / 0.9 + 100 / 1.005 + 100 / 1.01;
  EXPECT_DOUBLE_EQ(s.total, 700 / optimized);
  ASSERT_EQ(s.operators.size(), 6);
  const LicmOperator& a = s.operators[0];
  EXPECT_EQ(a.effective, 2);
  EXPECT_DOUBLE_EQ(a.average, 1.25);
  EXPECT_DOUBLE_EQ(a.total, 400 / (100 / 1.5 + 300));
  EXPECT_DOUBLE_EQ(a.best, 1.5);
  EXPECT_EQ(a.worst_id, 2);
  EXPECT_DOUBLE_EQ(a.int_ops, 0.4);
  EXPECT_DOUBLE_EQ(a.branches, 1);
  EXPECT_EQ(s.operators[2].effective, 0);
}

TEST(LicmResultTest, NothingMeasured) {
  LicmResult result;
  result.summary = SummarizeLicm({});
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(SummaryText(result), HasSubstr("0 cases"));
}

TEST(LicmResultTest, JsonAndText) {
  LicmResult result;
  result.rows = Rows();
  result.rows[0].values_agree = false;
  result.summary = SummarizeLicm(result.rows);
  EXPECT_FALSE(result.ok());
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_EQ(json["rows"][0]["ok"], false);
  EXPECT_EQ(json["rows"][1]["effective"], true);
  EXPECT_EQ(json["rows"][1]["pass_ms"]["cse"], 0.5);
  EXPECT_EQ(json["rows"][7]["error"], "no such operator");
  EXPECT_EQ(json["summary"]["operators"][1]["verdict"], "worse");
  EXPECT_EQ(json["summary"]["worst_case"], "b/1");
  EXPECT_THAT(RowsText(result), HasSubstr("VALUES DIFFER"));
  EXPECT_THAT(RowsText(result), HasSubstr("FAILED: no such operator"));
  EXPECT_THAT(SummaryText(result), HasSubstr("Of 4 effective operators 1 improved (25.0 %)"));
}

// On cuda there are counts and no times, and instructions where there is a compiler.
TEST(LicmResultTest, Cuda) {
  LicmResult result;
  result.target = "cuda";
  result.rows = {Row("a", 1, 0, 1), Row("a", 2, 0, 1), Row("b", 1, 0, 1), Row("c", 1, 0, 1)};
  result.rows[0].baseline_code = {.executed = 1000,
                                  .executed_integer = 400,
                                  .ptx = 100,
                                  .ptx_integer = 50,
                                  .ptx_branches = 4,
                                  .machine_bytes = 320,
                                  .registers = 20};
  result.rows[0].optimized_code = {.executed = 250,
                                   .executed_integer = 100,
                                   .ptx = 80,
                                   .ptx_integer = 20,
                                   .ptx_branches = 4,
                                   .machine_bytes = 256,
                                   .registers = 24};
  result.rows[1].baseline_code = result.rows[1].optimized_code =
      LicmCode{.executed = 10, .executed_integer = 0, .ptx = 100};
  result.rows[2].baseline_code = {.executed = 100, .executed_integer = 50, .ptx = 10};
  result.rows[2].optimized_code = {.executed = 200, .executed_integer = 0, .ptx = 12};
  result.rows[3].no_code = "no nvcc here";
  result.summary = SummarizeLicm(result.rows);
  const LicmSummary& s = result.summary;
  EXPECT_EQ(s.effective, 0);
  EXPECT_EQ(s.fewer_executed, 1);
  EXPECT_EQ(s.same_executed, 1);
  EXPECT_EQ(s.more_executed, 1);
  EXPECT_NEAR(s.executed, std::cbrt(0.5), 1e-12);
  EXPECT_DOUBLE_EQ(s.most_executed, 2);
  EXPECT_EQ(s.most_executed_case, "b/1");
  EXPECT_NEAR(s.operators[0].executed, 0.5, 1e-12);
  EXPECT_NEAR(s.operators[0].executed_integer, 0.5, 1e-12);
  EXPECT_NEAR(s.operators[1].executed_integer, 1e-3, 1e-12);
  EXPECT_DOUBLE_EQ(s.operators[2].executed, 1);
  EXPECT_DOUBLE_EQ(s.operators[0].ptx, 180.0 / 200);
  EXPECT_DOUBLE_EQ(s.operators[0].ptx_integer, 0.4);
  EXPECT_DOUBLE_EQ(s.operators[0].ptx_branches, 1);
  EXPECT_DOUBLE_EQ(s.operators[0].machine_bytes, 0.8);
  EXPECT_DOUBLE_EQ(s.operators[1].ptx, 1.2);
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_EQ(json["target"], "cuda");
  EXPECT_EQ(json["rows"][0]["optimized_code"]["registers"], 24);
  EXPECT_EQ(json["rows"][0]["optimized_code"]["executed"], 250);
  EXPECT_EQ(json["rows"][3]["optimized_code"], nullptr);
  EXPECT_EQ(json["rows"][3]["no_code"], "no nvcc here");
  EXPECT_FALSE(json["rows"][0].contains("speedup"));
  EXPECT_FALSE(json["summary"]["operators"][0].contains("average"));
  EXPECT_THAT(RowsText(result), HasSubstr("no nvcc here"));
  EXPECT_THAT(SummaryText(result), HasSubstr("fewer in 1, as many in 1, more in 1"));
  EXPECT_THAT(PageHtml(result), HasSubstr("instructions of PTX"));
}

TEST(LicmPageTest, Page) {
  LicmResult result;
  result.rows = Rows();
  result.rows[0].shape = "1x2<3>";
  result.machine = "some machine";
  result.summary = SummarizeLicm(result.rows);
  const std::string html = PageHtml(result);
  EXPECT_THAT(html, HasSubstr("some machine"));
  EXPECT_THAT(html, HasSubstr("1x2&lt;3&gt;"));
  EXPECT_THAT(html, HasSubstr("5 (1 have the same code"));
  EXPECT_THAT(html, HasSubstr("</html>"));
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(html), "");
}

}  // namespace
}  // namespace polynao::benchmarks
