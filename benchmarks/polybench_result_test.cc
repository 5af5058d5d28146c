#include "benchmarks/polybench_result.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PolyBenchEntry Entry(const std::string& implementation, double ms) {
  PolyBenchEntry entry;
  entry.implementation = implementation;
  entry.time_ns = ms * 1e6;
  entry.runs = 3;
  return entry;
}

PolyBenchResult Result() {
  PolyBenchResult result;
  result.machine = "a machine";
  result.size = "MINI";
  result.baseline = "gcc";
  result.implementations = {{"gcc", "gcc -O3", 1, ""},
                            {"polly", "clang-19 -mllvm -polly", 1, "clang-19 is not installed"},
                            {"nao-auto", "this compiler", 2, ""}};
  PolyBenchEntry skipped = Entry("polly", 0);
  skipped.skipped = "clang-19 is not installed";
  result.rows = {{"gemm", {{"ni", 20}}, {Entry("gcc", 8), skipped, Entry("nao-auto", 1)}},
                 {"lu", {{"n", 40}}, {Entry("gcc", 8), skipped, Entry("nao-auto", 4)}}};
  return result;
}

TEST(PolyBenchResultTest, SpeedupsAndGeometricMeans) {
  const PolyBenchResult result = Result();
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
TEST(PolyBenchResultTest, ValuesThatDifferDoNotCount) {
  PolyBenchResult result = Result();
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

TEST(PolyBenchResultTest, JsonHasRowsAndSummary) {
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

TEST(PolyBenchResultTest, PageShowsEveryKernel) {
  const std::string html = PageHtml(Result());
  EXPECT_THAT(html, HasSubstr(">gemm</td>"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, Not(HasSubstr("FAILED")));
}

TEST(PolyBenchResultTest, NothingRunIsNoSuccess) {
  PolyBenchResult result = Result();
  for (PolyBenchRow& row : result.rows) {
    for (PolyBenchEntry& entry : row.entries) entry.skipped = "no reason";
  }
  EXPECT_FALSE(result.ok());
}

}  // namespace
}  // namespace polynao::benchmarks
