// Pages show what benchmarks/results says, and tables are made of small results as their comments say.
#include "benchmarks/tables/tables.h"

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kResults[] = "benchmarks/results";

TEST(TablesTest, PagesShowWhatTheFilesSay) {
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator("docs")) {
    if (entry.path().extension() != ".md") continue;
    SCOPED_TRACE(entry.path().string());
    const auto page = ReadFile(entry.path().string());
    ASSERT_TRUE(page.ok()) << page.status();
    const auto filled = FillTables(*page, kResults);
    ASSERT_TRUE(filled.ok()) << filled.status();
    // Not EXPECT_EQ: a page is long.
    EXPECT_TRUE(*filled == *page) << "its tables are not those of " << kResults
                                  << "; refresh them with\n  bazel run //tools:result_tables";
    for (size_t at = 0; (at = page->find("<!-- table ", at)) != std::string::npos; ++at) ++tables;
  }
  EXPECT_GE(tables, 15);
}

// Each table stands in a page; a result that no table reads is dead weight.
TEST(TablesTest, EachTableAndEachFileIsShown) {
  std::string pages;
  for (const auto& entry : std::filesystem::directory_iterator("docs")) {
    if (entry.path().extension() == ".md") pages += *ReadFile(entry.path().string());
  }
  for (const ResultTable& table : ResultTables()) {
    EXPECT_THAT(pages, HasSubstr("<!-- table " + std::string(table.name) + " -->"));
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kResults)) {
    if (entry.is_directory()) continue;
    EXPECT_THAT(pages, HasSubstr("/" + entry.path().filename().string() + ")"));
  }
}

class FillTablesTest : public testing::Test {
 protected:
  FillTablesTest()
      : folder_(testing::TempDir() + "/" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    EXPECT_TRUE(MakeDirectory(folder_).ok());
  }
  void Store(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(folder_ + "/" + name, text).ok());
  }
  std::string Error(const std::string& page) {
    return std::string(FillTables(page, folder_).status().message());
  }
  std::string folder_;
};

constexpr char kSteps[] =
    "before\n<!-- table ladder/steps -->\nold\n<!-- end of table -->\nafter\n";

TEST_F(FillTablesTest, ReplacesWhatStandsBetweenTheComments) {
  Store("ladder.json", R"({"date": "2026-01-02T03:04:05Z", "commit": "abc", "rows": [
      {"step": "3", "plan": "one | core", "published_ms": 2, "simulated_ms": 1.5, "ratio": 0.75}]})");
  const auto page = FillTables(kSteps, folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page,
            "before\n<!-- table ladder/steps -->\n\n"
            "| step | plan | published ms | simulated ms | ratio |\n|---|---|---|---|---|\n"
            "| 3 | one \\| core | 2.00 | 1.50 | 0.750 |\n\n"
            "From [ladder.json](../benchmarks/results/ladder.json)\n(2026-01-02, commit abc).\n\n"
            "<!-- end of table -->\nafter\n");
  EXPECT_EQ(*FillTables(*page, folder_), *page);
}

TEST_F(FillTablesTest, SaysHowAMissingResultIsMade) {
  const auto page = FillTables(kSteps, folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page,
              HasSubstr("No result is stored yet. This makes it:\n\n    ./nao bench ladder"));
}

TEST_F(FillTablesTest, Errors) {
  EXPECT_THAT(Error("\n<!-- table no/such -->\n<!-- end of table -->\n"),
              HasSubstr("2: no table is named 'no/such'; there are: tensorize48/classes"));
  EXPECT_THAT(Error("<!-- table ladder/steps -->\n"), HasSubstr("1: expected '<!-- end of table"));
  EXPECT_THAT(Error("<!-- end of table -->\n"), HasSubstr("1: expected a table that ends here"));
  Store("ladder.json", R"({"rows": [{"step": "3", "plan": ""}]})");
  EXPECT_THAT(Error(kSteps), HasSubstr("ladder.json: expected a number at 'published_ms'"));
  Store("ladder.json", "5");
  EXPECT_THAT(Error(kSteps), HasSubstr("ladder.json: expected a JSON object"));
}

// Counts by operator, and why cases have no cycles or other values, without what tells one from the next.
TEST_F(FillTablesTest, CasesOfTheTopiTable) {
  Store("topi511-mlu370.json", R"([
{"machine":"m","suite":"topi511","case":"a/1","count":1,"cycles":200,"bound":100,"values":"agree","values_at":"4"},
{"machine":"m","suite":"topi511","case":"a/2","count":1,"cycles":50,"bound":10,"scalar_stores":3,"values":"differ by up to 2"},
{"machine":"m","suite":"topi511","case":"b/1","count":1,"failure":"not simulated: the scalar unit stores about 4e7 elements","values":"agree"},
{"machine":"m","suite":"topi511","case":"b/2","count":1,"failure":"not simulated: the scalar unit stores about 5e7 elements","values":"agree"}
])");
  const auto page = FillTables(
      "<!-- table topi511/operators -->\n<!-- end of table -->\n"
      "<!-- table topi511/refused -->\n<!-- end of table -->\n",
      folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("| a | 2 | 1 | 2 | 1 | 0.500 |\n"));
  EXPECT_THAT(*page, HasSubstr("| b | 2 | 2 | 0 | 0 | |\n"));
  EXPECT_THAT(*page, HasSubstr("| all | 4 | 3 | 2 | 1 | 0.500 |\n"));
  EXPECT_THAT(*page,
              HasSubstr("| a | 1 | values: differ by up to 2 |\n| b | 2 | not simulated: the "
                        "scalar unit stores more than three million elements |\n"));
}

// A row for each program, with the cycles on both machines.
TEST_F(FillTablesTest, NestsOfTwoMachines) {
  Store("nests-mlu270.json",
        R"([{"machine":"a","suite":"nests","case":"nest/x","count":1,"cycles":200,"bound":100},
            {"machine":"a","suite":"nests","case":"nest/y","count":1,"failure":"no f32"}])");
  Store(
      "nests-mlu370.json",
      R"([{"machine":"b","suite":"nests","case":"nest/x","count":1,"cycles":50,"bound":10,"scalar_stores":1},
            {"machine":"b","suite":"nests","case":"nest/y","count":1,"cycles":4,"bound":3}])");
  const auto page = FillTables("<!-- table nests/cycles -->\n<!-- end of table -->\n", folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("| nest/x | 200 | 0.500 | 50, scalar stores | 0.200 |\n"
                               "| nest/y | none | | 4 | 0.750 |\n"));
}

// Machines are told apart by what both of them have.
TEST_F(FillTablesTest, OtherMachines) {
  Store("a.json", R"({"machine": {"gmem.dram": "ddr4", "dram.cl": 22, "x": 1}})");
  Store("a-flat.json", R"({"machine": {"gmem.dram": "flat", "x": 2}})");
  Store("a-more.json", R"({"machine": {"gmem.dram": "ddr4", "dram.cl": 22, "x": 1}})");
  ResultFolder folder(folder_);
  const auto machines = folder.Machines("a");
  ASSERT_TRUE(machines.ok()) << machines.status();
  ASSERT_EQ(machines->size(), 2);
  EXPECT_EQ((*machines)[1].first, "gmem.dram=flat, x=2");
  EXPECT_THAT(folder.TakeRead(), ElementsAre(Pair("a.json", ""), Pair("a-flat.json", "")));
}

// A row for each other machine, then for each change that matters by the columns that it ran with.
TEST_F(FillTablesTest, LadderChanges) {
  Store("ladder.json", R"({"machine": {"parameters": {"dram.posted": 0}},
      "rows": [{"step": "3", "simulated_ms": 9}, {"step": "5", "simulated_ms": 4}],
      "sensitivity": [
        {"step": "3", "change": "", "simulated_ms": 10}, {"step": "5", "change": "", "simulated_ms": 5},
        {"step": "3", "change": "x=1", "simulated_ms": 10.01}, {"step": "5", "change": "x=1", "simulated_ms": 5},
        {"step": "3", "change": "x=4", "simulated_ms": 10}, {"step": "5", "change": "x=4", "simulated_ms": 6},
        {"step": "3", "change": "y=0", "error": "too small"}]})");
  Store("ladder-posted.json", R"({"machine": {"parameters": {"dram.posted": 1}},
      "rows": [{"step": "3", "simulated_ms": 8}, {"step": "5", "simulated_ms": 3}]})");
  const auto page = FillTables("<!-- table ladder/changes -->\n<!-- end of table -->\n", folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("| change, ms of the steps | 3 | 5 |\n|---|---|---|\n"
                               "| none | 9.00 | 4.00 |\n"
                               "| dram.posted=1 | 8.00 | 3.00 |\n"
                               "| none, of fewer columns | 10.00 | 5.00 |\n"
                               "| x=4 | 10.00 | 6.00 |\n\n"));
}

TEST_F(FillTablesTest, ClassesWithoutCasesAreLeftOut) {
  const std::string figures = R"({"geomean": 0.5, "min": 0.25})";
  Store("tensorize48.json",
        R"({"summary": {"classes": {"conv": {"cases": 0}, "unary": {"cases": 16,
            "efficiency": {"compiled": F, "library": F, "expert": F},
            "speedup": {"library": F, "expert": F, "without-tuning": F}}}}})");
  std::string text = *ReadFile(folder_ + "/tensorize48.json");
  for (size_t at; (at = text.find(": F")) != std::string::npos;) text.replace(at + 2, 1, figures);
  Store("tensorize48.json", text);
  const auto page =
      FillTables("<!-- table tensorize48/classes -->\n<!-- end of table -->\n", folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page,
              HasSubstr("|---|\n| unary | as configured | 16 | 0.500 | 0.500 | 0.500 | 0.500 "
                        "| 0.250 | 0.500 | 0.250 |\n\n"));
}

TEST_F(FillTablesTest, SumsCountLayersAsOftenAsTheNetworkHasThem) {
  // All layers take 10 cycles, 30 without fusion, by the faster of two ways.
  const auto stored = ReadFile(std::string(kResults) + "/resnet50.json");
  ASSERT_TRUE(stored.ok());
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(*stored);
  for (nlohmann::ordered_json& row : json["rows"]) {
    if (row["ok"] != true) continue;
    row["cycles"] = row["impl"] == "compiled" ? 10 : row["impl"] == "unfused" ? 30 : 40;
  }
  Store("resnet50.json", json.dump());
  const auto page = FillTables("<!-- table resnet50/sums -->\n<!-- end of table -->\n", folder_);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("| as configured | fused | 530 | 1.000 |"));
  EXPECT_THAT(*page, HasSubstr("| as configured | unfused | 1590 | 3.000 |"));
  EXPECT_THAT(*page, HasSubstr("| as configured | hand | 2120 | 4.000 |"));
}

}  // namespace
}  // namespace polynao::benchmarks
