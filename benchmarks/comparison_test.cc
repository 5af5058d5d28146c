#include "benchmarks/comparison.h"

#include <string>

#include "benchmarks/comparison_page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/browser.h"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ComparisonEntry Entry(const std::string& implementation, double ms) {
  ComparisonEntry entry;
  entry.implementation = implementation;
  entry.time_ns = ms * 1e6;
  entry.runs = 3;
  return entry;
}

Comparison Result() {
  Comparison result;
  result.machine = "a machine";
  result.size = "MINI";
  result.baseline = "gcc";
  result.implementations = {{"gcc", "gcc -O3", 1, ""},
                            {"polly", "clang-19 -mllvm -polly", 1, "clang-19 is not installed"},
                            {"nao-auto", "this compiler", 2, ""}};
  ComparisonEntry skipped = Entry("polly", 0);
  skipped.skipped = "clang-19 is not installed";
  result.rows = {{"gemm", {{"ni", 20}}, {Entry("gcc", 8), skipped, Entry("nao-auto", 1)}},
                 {"lu", {{"n", 40}}, {Entry("gcc", 8), skipped, Entry("nao-auto", 4)}}};
  return result;
}

TEST(ComparisonTest, SpeedupsAndGeometricMeans) {
  const Comparison result = Result();
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.rows[0].Speedup("nao-auto", "gcc"), 8);
  EXPECT_EQ(result.rows[0].Speedup("polly", "gcc"), std::nullopt);
  EXPECT_DOUBLE_EQ(result.GeometricMean("nao-auto").first, 4);  // of 8 and 2
  EXPECT_EQ(result.GeometricMean("nao-auto").second, 2);
  EXPECT_EQ(result.GeometricMean("polly").second, 0);
  EXPECT_THAT(SummaryText(result), HasSubstr("nao-auto         4.000, geometric mean of 2 kernels; "
                                             "this compiler, 2 threads\n"));
  EXPECT_THAT(SummaryText(result), HasSubstr("polly            none: clang-19 is not installed\n"));
}

// A wrong result has no speed-up, is no success, and is said everywhere.
TEST(ComparisonTest, ValuesThatDifferDoNotCount) {
  Comparison result = Result();
  result.rows[0].entries[2].difference = "C: element 3 is 1, expected 2";
  EXPECT_FALSE(result.ok());
  EXPECT_DOUBLE_EQ(result.GeometricMean("nao-auto").first, 2);
  EXPECT_THAT(RowsText(result), HasSubstr("DIFFERS"));
  EXPECT_THAT(SummaryText(result),
              HasSubstr("gemm, nao-auto: VALUES DIFFER: C: element 3 is 1, expected 2"));
  EXPECT_THAT(PageHtml(result), HasSubstr("<td class=\"n bad\">DIFFERS</td>"));
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["rows"][0]["entries"][2]["state"], "differs");
  EXPECT_FALSE(json["rows"][0]["entries"][2].contains("speedup"));
}

TEST(ComparisonTest, JsonHasRowsAndSummary) {
  const nlohmann::ordered_json json = ToJson(Result());
  EXPECT_EQ(json["suite"], "polybench");
  EXPECT_EQ(json["rows"].size(), 2);
  EXPECT_EQ(json["rows"][0]["kernel"], "gemm");
  EXPECT_EQ(json["rows"][0]["sizes"]["ni"], 20);
  EXPECT_EQ(json["rows"][0]["entries"][1]["state"], "skipped");
  EXPECT_EQ(json["rows"][1]["entries"][2]["speedup"], 2.0);
  EXPECT_EQ(json["summary"].size(), 2);
  EXPECT_EQ(json["summary"][1]["implementation"], "nao-auto");
  EXPECT_EQ(json["implementations"][1]["missing"], "clang-19 is not installed");
}

TEST(ComparisonTest, JsonIsReadBack) {
  Comparison result = Result();
  result.date = "2026-11-22T09:47:02Z";
  result.commit = "abc";
  result.filter = "^(gemm|lu)$";
  result.seed = 7;
  result.wall_seconds = 1.5;
  result.rows[0].entries[0].notes = {"2 loops", "said \"no\""};
  result.rows[0].entries[0].least_ns = 0.1;
  result.rows[0].entries[0].compile_ms = 3;
  result.rows[0].entries[0].schedule_ms = 1;
  result.rows[0].entries[2].error = "no such thing";
  result.rows[1].entries[2].difference = "C: element 3 is 1, expected 2";
  const absl::StatusOr<Comparison> back = ComparisonFromJson(ToJson(result));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(result));
  EXPECT_EQ(back->rows[0].entries[2].error, "no such thing");
  EXPECT_TRUE(CheckSameRun(*back, result).ok());
}

TEST(ComparisonTest, WrongJson) {
  const auto error = [](const nlohmann::ordered_json& json) {
    return std::string(ComparisonFromJson(json).status().message());
  };
  const nlohmann::ordered_json good = ToJson(Result());
  EXPECT_EQ(error(nlohmann::ordered_json::array()), "expected a result of polybench, found []");
  EXPECT_EQ(error({{"suite", "licm511"}}),
            "expected a result of polybench, found {\"suite\":\"licm511\"}");
  nlohmann::ordered_json json = good;
  json["seed"] = "one";
  EXPECT_EQ(error(json), "'seed': expected a number, found \"one\"");
  json = good;
  json["rows"][0]["entries"][0]["state"] = "fine";
  EXPECT_THAT(error(json), HasSubstr("expected an entry, found {\"implementation\":\"gcc\""));
  json = good;
  json["rows"][0]["entries"][0] = 5;
  EXPECT_EQ(error(json), "'implementation': expected a text, found none");
  json = good;
  json["rows"][1] = 5;
  EXPECT_EQ(error(json), "'kernel': expected a text, found none");
  json = good;
  json.erase("rows");
  EXPECT_EQ(error(json), "'rows': expected a list");
}

TEST(ComparisonTest, RowsOfOtherRunsAreRefused) {
  const auto error = [](auto change) {
    Comparison known = Result();
    change(known);
    return std::string(CheckSameRun(known, Result()).message());
  };
  EXPECT_EQ(error([](Comparison& r) { r.filter = "gemm", r.date = "then"; }), "");
  EXPECT_EQ(error([](Comparison& r) { r.size = "LARGE"; }),
            "expected rows of size 'MINI', found 'LARGE'");
  EXPECT_EQ(error([](Comparison& r) { r.seed = 2; }), "expected rows of seed '1', found '2'");
  EXPECT_EQ(error([](Comparison& r) { r.machine = "a phone"; }),
            "expected rows of machine 'a machine', found 'a phone'");
  EXPECT_EQ(error([](Comparison& r) { r.commit = "abc"; }),
            "expected rows of commit '', found 'abc'");
  EXPECT_THAT(error([](Comparison& r) { r.implementations[2].threads = 1; }),
              HasSubstr("nao-auto (this compiler, 2 threads)', found 'gcc (gcc -O3, 1 thread), "
                        "polly (clang-19 -mllvm -polly, 1 thread, clang-19 is not installed), "
                        "nao-auto (this compiler, 1 thread)'"));
}

TEST(ComparisonTest, PageShowsEveryKernel) {
  const std::string html = PageHtml(Result());
  EXPECT_THAT(html, HasSubstr(">gemm</td>"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, Not(HasSubstr("FAILED")));
  EXPECT_THAT(html, HasSubstr("missing: clang-19 is not installed"));
  EXPECT_THAT(html, Not(HasSubstr(">polly</text>")));  // no bar, no legend
  EXPECT_THAT(html, HasSubstr(">4.000</td>"));         // the mean of 8 and 2
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(html), "");
}

TEST(ComparisonTest, NothingRunIsNoSuccess) {
  Comparison result = Result();
  for (ComparisonRow& row : result.rows) {
    for (ComparisonEntry& entry : row.entries) entry.skipped = "no reason";
  }
  EXPECT_FALSE(result.ok());
}

}  // namespace
}  // namespace polynao::benchmarks
