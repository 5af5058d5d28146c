#include "simulator/timeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/browser.h"

namespace polynao::simulator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RunResult Example() {
  RunResult result;
  result.machine = "unit";
  result.program = "a<b";
  result.cycles = result.end_cycle = 100000;
  result.cores.resize(2);
  result.cores[1] = {.cluster = 1, .core = 2, .is_memory_core = true};
  result.instructions = {"li r0, 1", "fill.f16 r0, r0, r1"};
  result.slices = {{.core = 0, .unit = isa::Unit::kVector, .pc = 1, .begin = 0, .end = 50000},
                   {.core = 1,
                    .unit = isa::Unit::kIoDma,
                    .is_store = true,
                    .pc = 0,
                    .begin = 90000,
                    .end = 100000}};
  result.ports = {{"gmem.channel0", 25600, 0, 0, 0, 0}};
  result.gmem_bucket = 1000;
  result.gmem_buckets.assign(100, 12800);
  return result;
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Timeline, HasARowForEachUnitThatDidSomething) {
  const std::string svg = TimelineSvg(Example());
  EXPECT_THAT(svg, HasSubstr("core 0.0"));
  EXPECT_THAT(svg, HasSubstr("1.memory"));
  EXPECT_THAT(svg, HasSubstr("compute"));
  EXPECT_THAT(svg, Not(HasSubstr(">move<")));
  EXPECT_THAT(svg, HasSubstr("a&lt;b on unit: 100\u2009000 cycles"));
  EXPECT_THAT(svg, HasSubstr("fill.f16 r0, r0, r1\ncycles 0 to 50000 (50000)"));
  EXPECT_THAT(svg, HasSubstr("50%"));
  EXPECT_THAT(svg, HasSubstr("store to GMEM"));
  EXPECT_THAT(svg, Not(HasSubstr("load from GMEM")));
  EXPECT_THAT(svg, HasSubstr("25.6"));
}

TEST(Timeline, TheCurveEndsAtThePeakOfTheChannels) {
  RunResult result = Example();
  result.ports.push_back({"gmem.cache0", 128000, 0, 0, 0, 0});
  EXPECT_THAT(TimelineSvg(result), HasSubstr(">25.6<"));
}

TEST(Timeline, LeavesOutACoreThatHaltedAtOnce) {
  RunResult result = Example();
  result.slices[1].begin = result.slices[1].end - 10;
  EXPECT_THAT(TimelineSvg(result), Not(HasSubstr("1.memory")));
  EXPECT_THAT(TimelineSvg(result, {.begin = 99000}), HasSubstr("1.memory"));
}

TEST(Timeline, ShowsAWindow) {
  const std::string svg = TimelineSvg(Example(), {.begin = 10000, .end = 20000});
  EXPECT_THAT(svg, HasSubstr("cycles 10000 to 20000"));
  EXPECT_THAT(svg, Not(HasSubstr("1.memory")));
}

TEST(Timeline, DrawsManyTinySlicesTogether) {
  RunResult result = Example();
  result.slices.clear();
  for (int i = 0; i < 20000; ++i) {
    result.slices.push_back(
        {.core = 0, .unit = isa::Unit::kVector, .pc = 1, .begin = 5 * i, .end = 5 * i + 3});
  }
  const std::string svg = TimelineSvg(result);
  EXPECT_LT(Count(svg, "<rect"), 2000u);
  EXPECT_THAT(svg, HasSubstr("60%"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity"));
}

TEST(Timeline, OfAnEmptyRunIsAPictureToo) {
  EXPECT_THAT(TimelineSvg(RunResult()), HasSubstr("</svg>"));
}

TEST(Timeline, FilesAreAPageWithTheCountersOrAPicture) {
  const std::string html = TimelineFile(Example(), "t.html");
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("<td>end_cycle</td><td class=\"n\">100\u2009000</td>"));
  const std::string svg = TimelineFile(Example(), "t.svg");
  EXPECT_THAT(svg, StartsWith("<svg"));
  EXPECT_THAT(svg, HasSubstr("<style>"));
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(html), "");
}

}  // namespace
}  // namespace polynao::simulator
