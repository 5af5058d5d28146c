#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pages/charts.h"
#include "pages/page.h"
#include "pages/svg.h"
#include "testing/browser.h"

namespace polynao::pages {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageTest, TextStandsForItself) {
  EXPECT_EQ(Escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_THAT(Page("a<b", "<p>x</p>"), HasSubstr("<h1>a&lt;b</h1>\n<p>x</p>"));
  EXPECT_THAT(DataElement("[\"</script>\"]"), HasSubstr("[\"\\u003c/script>\"]"));
}

TEST(PageTest, Numbers) {
  EXPECT_EQ(ShortNumber(0.05), "0.05");
  EXPECT_EQ(ShortNumber(940.2), "940");
  EXPECT_EQ(ShortNumber(123456), "123456");
  EXPECT_EQ(ShortNumber(12345678), "1.23e+07");
  EXPECT_EQ(Thousands(-1234567), "-1\u2009234\u2009567");
  EXPECT_EQ(Thousands(-123), "-123");
  EXPECT_EQ(Thousands(0), "0");
}

TEST(TableTest, NumbersStandOnTheRight) {
  Table table({"name", "count", "where", "share", ""}, 1, "where");
  table.Row({"a&b", 3, "here", Cell(0.5, 2, "good"), "short"});
  table.Row({"c", Cell("missing", "off", 4)});
  const std::string html = table.Html();
  EXPECT_THAT(html, HasSubstr("<th>name</th><th class=\"n\">count</th><th>where</th>"
                              "<th class=\"n\">share</th><th></th>"));
  EXPECT_THAT(html, HasSubstr("<td>a&amp;b</td><td class=\"n\">3</td><td>here</td>"
                              "<td class=\"n good\">0.50</td><td>short</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"off\" colspan=\"4\">missing</td>"));
}

std::vector<std::string> Labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const double tick : axis.ticks()) labels.push_back(axis.Label(tick));
  return labels;
}

TEST(AxisTest, PlacesAreInProportion) {
  const Axis linear(0, 10, false, 100, 0);
  EXPECT_DOUBLE_EQ(linear.At(2.5), 75);
  const Axis logarithmic(1, 100, true, 0, 50);
  EXPECT_DOUBLE_EQ(logarithmic.At(10), 25);
}

TEST(AxisTest, TicksAreRound) {
  EXPECT_THAT(Labels(Axis(0, 1.1, false, 0, 1)), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1"));
  EXPECT_THAT(Axis(17, 5017, false, 0, 1, 3).ticks(), ElementsAre(2000, 4000));
  EXPECT_THAT(Labels(Axis(0.4, 24, true, 0, 1)), ElementsAre("0.5", "1", "2", "5", "10", "20"));
  // Powers alone if there are many, steps if there are hardly any.
  EXPECT_THAT(Labels(Axis(0.5, 2e5, true, 0, 1)),
              ElementsAre("1", "10", "100", "1000", "10000", "100000"));
  EXPECT_THAT(Labels(Axis(0.975, 1.025, true, 0, 1)),
              ElementsAre("0.98", "0.99", "1", "1.01", "1.02"));
}

TEST(AxisTest, LabelsOfNeighbouringTicksDiffer) {
  EXPECT_THAT(Labels(Axis::Around({1.0, 1.002}, 0, 1)),
              ElementsAre("1", "1.0005", "1.001", "1.0015", "1.002"));
  EXPECT_THAT(Labels(Axis::Around({1e6, 3e6}, 0, 1)),
              ElementsAre("1e+06", "1.5e+06", "2e+06", "2.5e+06", "3e+06"));
}

TEST(AxisTest, OfNoValuesAndOfOne) {
  for (const std::vector<double>& values : {std::vector<double>{}, {0.0}, {5.0}, {-3.0}}) {
    const Axis axis = Axis::Around(values, 0, 100);
    EXPECT_FALSE(axis.ticks().empty());
    if (!values.empty()) EXPECT_GE(axis.At(values[0]), 0);
  }
}

// y and height of the bars.
std::vector<std::pair<double, double>> Bars(const std::string& svg, const std::string& color) {
  std::vector<std::pair<double, double>> bars;
  const std::regex bar(" y=\"([0-9.]+)\" width=\"[0-9.]+\" height=\"([0-9.]+)\" fill=\"" + color +
                       "\"><title>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), bar), end; it != end; ++it) {
    bars.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  }
  return bars;
}

// 4 and 1/4 are as far from 1; a bar of a value below goes down from 1.
TEST(BarChartTest, LogarithmicBarsBeginAtTheLine) {
  const std::string svg =
      BarChartSvg({.groups = {"a", "b", "c"},
                   .series = {{.name = "s", .values = {4.0, 0.25, std::nullopt}, .color = "#123"}},
                   .line = 1.0,
                   .is_logarithmic = true});
  const auto bars = Bars(svg, "#123");
  ASSERT_EQ(bars.size(), 2);
  EXPECT_NEAR(bars[0].second, bars[1].second, 0.02);
  EXPECT_NEAR(bars[0].first + bars[0].second, bars[1].first, 0.02);
  EXPECT_GT(bars[0].second, 60);
  for (const char* tick : {">0.5</text>", ">1</text>", ">2</text>"}) {
    EXPECT_THAT(svg, HasSubstr(tick));
  }
  EXPECT_THAT(svg, HasSubstr("no value"));
  EXPECT_THAT(svg, HasSubstr("<title>a, s: 4.000</title>"));
}

TEST(BarChartTest, NoValues) {
  for (const bool is_logarithmic : {false, true}) {
    const std::string svg = BarChartSvg({.is_logarithmic = is_logarithmic});
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
  EXPECT_THAT(BarChartSvg({.groups = {"a"}, .series = {{.name = "s", .values = {std::nullopt}}}}),
              HasSubstr("no value"));
}

BarChart Dots() {
  return {.groups = {std::string(60, 'a'), "b", "c", "d", "e"},
          .dots = {{0.9, 1.0, 12.34}, {1.01}, {}, {1.5}, {2}},
          .line = 1.0,
          .is_logarithmic = true,
          .band = 0.01,
          .largest = 3};
}

TEST(BarChartTest, DotsAboveTheLargestHaveTheirNumber) {
  const std::string svg = BarChartSvg(Dots());
  EXPECT_THAT(svg, HasSubstr(">12.3</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>b: 1.010</title></circle>"));
  EXPECT_THAT(svg, HasSubstr("up dashed"));
}

LineChart Lines() {
  LineChart chart{.x_title = "x", .y_title = "y", .places = {"1", "2", "4"}};
  for (const char* name : {"sum", "a program with a long name", "another, which needs a line"}) {
    chart.series.push_back({name, {1, std::nullopt, 2}, chart.series.empty()});
  }
  chart.band = "least to most";
  chart.low = {1, std::nullopt, 1.5};
  chart.high = {1, std::nullopt, 2.5};
  return chart;
}

TEST(LineChartTest, LinesBreakWhereThereIsNoValue) {
  const std::string svg = LineChartSvg(Lines());
  EXPECT_THAT(svg, HasSubstr("<title>sum, 4: 2</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("sum, 2")));
  EXPECT_THAT(svg, HasSubstr("<polygon"));
  EXPECT_THAT(LineChartSvg({.x_title = "x", .y_title = "y", .places = {"1"}}),
              Not(HasSubstr("nan")));
}

Scatter Points() {
  return {"x", "y", {{1, 2, "a<b", false}, {1, 1, "first", true}, {100, 0.5, "last", true}}};
}

TEST(ScatterTest, FrontsAreJoined) {
  const std::string svg = ScatterSvg(Points());
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b</title>"));
  EXPECT_THAT(svg, HasSubstr("<polyline class=\"front\""));
  EXPECT_THAT(ScatterSvg({"x", "y", {}}), Not(HasSubstr("nan")));
}

TEST(SvgTest, AFileHasItsColours) {
  const std::string file = SvgFile(ScatterSvg(Points()));
  EXPECT_THAT(file, ::testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(file, HasSubstr("--ink:"));
  EXPECT_THAT(file, HasSubstr(".chart .grid"));
}

TEST(BrowserTest, EachPartFitsIntoThePage) {
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  Table table({"a", "wide"}, 1);
  table.Row({"x", std::string(3000, '5')});
  BarChart bars{.groups = {"a", "b"}, .line = 1.0};
  for (int i = 0; i < 24; ++i) {
    bars.series.push_back({.name = StrCat("implementation ", i), .values = {i, 1.0}});
    bars.series.back().show_values = true;
  }
  EXPECT_EQ(
      FaultsOf(Page("All", StrCat(table.Html(), BarChartSvg(bars), BarChartSvg(Dots()),
                                  BarChartSvg({}), LineChartSvg(Lines()), ScatterSvg(Points())))),
      "");
}

// The test above would see it.
TEST(BrowserTest, FaultsAreFound) {
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  Svg svg;
  svg.Text(-50, 10, "gone");
  const std::string faults =
      FaultsOf(Page("Bad", StrCat("<tabel></tabel><script>nothing();</script>",
                                  "<div style=\"width: 2000px\">x</div>", svg.Element(100, 20))));
  EXPECT_THAT(faults, HasSubstr("outside of its picture: gone"));
  EXPECT_THAT(faults, HasSubstr("unknown element tabel"));
  EXPECT_THAT(faults, HasSubstr("nothing is not defined"));
  EXPECT_THAT(faults, HasSubstr("wider than the window"));
}

}  // namespace
}  // namespace polynao::pages
