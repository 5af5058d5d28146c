#include "sweep/page.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/browser.h"

namespace polynao::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// cycles fall with a, energy rises with it; (3, y) does not fit.
Table Example(bool with_energy) {
  Table table;
  table.config = "mlu270";
  table.axes = {{"a", {"1", "2", "3"}}, {"b", {"x", "y"}}};
  table.programs = {"p", "q"};
  for (int64_t point = 0; point < 6; ++point) {
    for (const std::string& program : table.programs) {
      Row row{point, program};
      if (point == 5) {
        row.error = "no room for </script> in NMEM";
      } else {
        const double a = static_cast<double>(point / 2 + 1), b = static_cast<double>(point % 2);
        row.metrics = {{"cycles", 600 / a + b}};
        if (with_energy) {
          row.metrics["energy_pj"] = 100 * a;
          row.metrics["area_mm2"] = 10 + a;
        }
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

TEST(SweepPage, ComparesInstructionTables) {
  Table table = Example(true);
  table.axes[1] = {std::string(kInstructionsAxis), {"without", "with<"}};
  for (Row& row : table.rows) {
    if (row.program == "q" && row.point % 2 == 1 && row.error.empty()) row.metrics["cycles"] *= 0.5;
  }
  const std::string page = SweepPage(table);
  EXPECT_THAT(page, HasSubstr("<h2>Instruction tables</h2>\n<p>Relative to without"));
  EXPECT_THAT(page, HasSubstr("<th class=\"n\">cycles, with&lt;</th>"));
  EXPECT_THAT(page, HasSubstr("<td>q</td><td class=\"n good\">0.501</td>"));
  EXPECT_THAT(SweepPage(Example(true)), Not(HasSubstr("Instruction tables")));
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(page), "");
}

TEST(SweepPage, ShowsWhatTheTableSays) {
  const std::string page = SweepPage(Example(true));
  EXPECT_THAT(page, HasSubstr("Sweep of 6 machines like mlu270"));
  EXPECT_THAT(page, HasSubstr("5 points are feasible, 1 is not"));
  EXPECT_EQ(Count(page, "<svg"), 5u);  // three fronts, two axes
  EXPECT_EQ(Count(page, "</svg>"), 5u);
  // Cycles against energy: (1, x), (2, x) and (3, x) beat the others.
  EXPECT_THAT(page, HasSubstr("3 points of the front"));
  EXPECT_THAT(page, HasSubstr("p: no room for &lt;/script&gt; in NMEM"));
  // By a: 1, 1/2 and 1/3 of the cycles.
  EXPECT_THAT(page, HasSubstr("1: 1.000, 2: 0.50"));
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(page), "");
}

TEST(SweepPage, HasTheTableAsJson) {
  const Table table = Example(true);
  const std::string page = SweepPage(table);
  constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"data\">\n";
  const size_t begin = page.find(kBegin) + kBegin.size();
  const size_t end = page.find("</script>", begin);
  ASSERT_NE(end, std::string::npos);
  const auto read = ParseTable(page.substr(begin, end - begin), "page");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, table);
}

TEST(SweepPage, WithoutEnergyHasNoFronts) {
  const std::string page = SweepPage(Example(false));
  EXPECT_THAT(page, Not(HasSubstr("Pareto")));
  EXPECT_EQ(Count(page, "<svg"), 2u);
}

TEST(SweepPage, OneAxisOfOneValue) {
  Table table;
  table.config = "unit";
  table.axes = {{"a", {"1"}}};
  table.programs = {"p"};
  table.rows = {{0, "p", "", {{"cycles", 0}}}};
  const std::string page = SweepPage(table);
  EXPECT_EQ(Count(page, "<svg"), 1u);
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf\"")));
}

}  // namespace
}  // namespace polynao::sweep
