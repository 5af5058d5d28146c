#include "compiler/poly/tools/picture.h"

#include <string>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/poly/tools/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/browser.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

// A[i, j] needs its neighbours above and on the left.
constexpr char kWave[] = R"(
func wave(A: f32[n, n], n: i32) {
  for (i, 1, n - 1) {
    for (j, 1, n - 1) { A[i, j] = A[i - 1, j] + A[i, j - 1] }
  }
}
)";

PictureOptions Options(int64_t n) {
  PictureOptions options;
  options.arguments = {{"n", n}};
  return options;
}

absl::StatusOr<std::string> Svg(const PictureOptions& options, const std::string& text = kWave) {
  return InstancesSvg(*ir::ParseFunction(text), options);
}

int Occurrences(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(PictureTest, APointForEachInstanceAndAnArrowForEachDependence) {
  const absl::StatusOr<std::string> svg = Svg(Options(6));
  ASSERT_TRUE(svg.ok()) << svg.status();
  // 5 x 5 instances, 4 * 5 dependences downwards and as many to the right; two panels.
  EXPECT_EQ(Occurrences(*svg, "<circle "), 2 * 25);
  EXPECT_EQ(Occurrences(*svg, "<line class=\"flow\""), 2 * 40);
  EXPECT_THAT(*svg, HasSubstr("j to the right, i down"));
  EXPECT_THAT(*svg, testing::StartsWith("<svg "));
  EXPECT_THAT(*svg, testing::EndsWith("</svg>\n"));
}

TEST(PictureTest, AGivenScheduleHasToBeLegal) {
  PictureOptions options = Options(6);
  options.order.strategy = "text";
  options.order.text = "{ S0[i, j] -> [i + j, j] }";
  absl::StatusOr<std::string> svg = Svg(options);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr("after, by { S0[i, j] -&gt; [i + j, j] }"));
  EXPECT_THAT(*svg, HasSubstr("j to the right, i + j down"));
  options.order.text = "{ S0[i, j] -> [i - j, j] }";
  svg = Svg(options);
  ASSERT_FALSE(svg.ok());
  EXPECT_THAT(std::string(svg.status().message()), HasSubstr("the schedule violates "));
  EXPECT_THAT(std::string(svg.status().message()), HasSubstr("S0"));
  options.order.text = "{ S1[i] -> [i] }";
  EXPECT_THAT(std::string(Svg(options).status().message()),
              HasSubstr("the schedule has no time for the instances "));
}

// 5 x 5 instances in tiles of 2 x 2: nine tiles, five of them at the border.
TEST(PictureTest, TilesHaveBordersAndNumbers) {
  PictureOptions options = Options(6);
  options.order.tile = {{2}};
  const absl::StatusOr<std::string> svg = Svg(options);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_EQ(Occurrences(*svg, "<path class=\"tile0\""), 2);
  EXPECT_EQ(Occurrences(*svg, "<path class=\"tile1\""), 0);
  EXPECT_EQ(Occurrences(*svg, "<text class=\"number\""), 2 * 9);
  EXPECT_EQ(Occurrences(*svg, ">8</text>\n"), 2);
  EXPECT_EQ(Occurrences(*svg, "j to the right, i down"), 2);
  EXPECT_THAT(*svg, HasSubstr("tiles of 2 x 2, diagonals of tiles 0 and 1 parallel"));
  // One tile that holds everything has no border worth a line.
  options.order.tile = {{8}};
  EXPECT_EQ(Occurrences(*Svg(options), "<path class=\"tile"), 0);
}

TEST(PictureTest, TwoLevelsOfTiles) {
  PictureOptions options = Options(9);
  options.order.tile = {{4}, {2}};
  const absl::StatusOr<std::string> svg = Svg(options);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_EQ(Occurrences(*svg, "<path class=\"tile0\""), 2);
  EXPECT_EQ(Occurrences(*svg, "<path class=\"tile1\""), 2);
}

constexpr char kProduct[] = R"(
func product(C: f32[n, n], A: f32[n, n] in, B: f32[n, n] in, n: i32) {
  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }
}
)";

// Shown without panels, `auto` keeps tiles of C in registers; k is at its first value.
TEST(PictureTest, AutoShowsTilesOfRegisters) {
  PictureOptions options = Options(40);
  options.order.strategy = "auto";
  const absl::StatusOr<std::string> svg = Svg(options, kProduct);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_EQ(Occurrences(*svg, "<circle "), 2 * 40 * 40);
  EXPECT_EQ(Occurrences(*svg, "<path class=\"tile0\""), 2);
  EXPECT_THAT(*svg, HasSubstr("after, by auto"));
  EXPECT_THAT(*svg, HasSubstr("in registers over loop 2"));
  EXPECT_EQ(Occurrences(*svg, "j to the right, i down"), 2);
}

// Every third i, and a scalar of each iteration, which `auto` makes an array.
TEST(PictureTest, StridesAndPrivateScalars) {
  PictureOptions options = Options(10);
  options.order.strategy = "auto";
  const absl::StatusOr<std::string> svg = Svg(options, R"(
func f(A: f32[n, n], n: i32) {
  for (i, 0, n) { for (j, 0, n) { if (i % 3 == 1) {
    allocate t: f32[]
    t[] = A[i, j]
    A[i, j] = t[] * t[]
  } } }
}
)");
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_EQ(Occurrences(*svg, "<circle "), 2 * 30);
  EXPECT_THAT(*svg, HasSubstr(">7</text>"));
  EXPECT_EQ(Occurrences(*svg, "<text class=\"axis\""), 2 * (3 + 10));
}

TEST(PictureTest, TreesOfAutoHaveMarks) {
  const absl::StatusOr<std::string> page =
      TreesHtml(*ir::ParseFunction(kProduct), {.strategy = "auto"});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr(">mark parallel"));
  EXPECT_THAT(*page, HasSubstr("<h3>after, by auto</h3>"));
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(*page), "");
}

// One tree for each group, with what tiles add. b is read twice, so that it is not computed where it is read.
TEST(PictureTest, TreesOfFusedStages) {
  const std::string text = R"(
func f(a: f32[70] in, y: f32[64] out, z: f32[61]) {
  allocate b: f32[66]
  for (i, 0, 66) { b[i] = a[i] / a[i + 1] / a[i + 2] / 3.0 }
  for (i, 0, 64) { y[i] = b[i] / b[i + 1] / b[i + 2] }
  for (i, 0, 60) { z[i + 1] = z[i] / y[i] }
}
)";
  const ScheduleOptions options{.strategy = "fuse", .group_tile = {16}, .join_all = true};
  const absl::StatusOr<std::string> page = TreesHtml(*ir::ParseFunction(text), options);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(Occurrences(*page, "<details"), Occurrences(*page, "</details>"));
  EXPECT_THAT(*page, HasSubstr("<h4>y, 2 stages in tiles</h4>"));
  EXPECT_THAT(*page, HasSubstr("<h4>z, 1 stage, scheduled as by auto</h4>"));
  EXPECT_EQ(Occurrences(*page, ">extension, what each tile adds: "), 1);
  EXPECT_THAT(*page, HasSubstr("<li>y in tiles of 16, those along dimension 0 parallel, with b; "));
  const absl::StatusOr<std::string> tree = Describe(*ir::ParseFunction(text), "tree", options);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_THAT(*tree, HasSubstr("extension: "));
  const absl::StatusOr<std::string> ast = Describe(*ir::ParseFunction(text), "ast", options);
  ASSERT_TRUE(ast.ok()) << ast.status();
  EXPECT_THAT(*ast, HasSubstr("// tile"));
  const absl::StatusOr<std::string> order = Describe(*ir::ParseFunction(text), "schedule", options);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(*order, HasSubstr("no map, since tiles run instances more than once"));
}

TEST(PictureTest, FusedStagesHaveNoPicture) {
  PictureOptions options;
  options.order = {.strategy = "fuse", .group_tile = {4, 4}, .join_all = true};
  EXPECT_THAT(std::string(Svg(options, R"(
func f(a: f32[9, 9] in, y: f32[8, 8] out) {
  allocate b: f32[9, 9]
  for (i, 0, 9) { for (j, 0, 9) { b[i, j] = a[i, j] / a[j, i] / 3.0 } }
  for (i, 0, 8) { for (j, 0, 8) { y[i, j] = b[i, j] / b[i + 1, j + 1] } }
}
)")
                              .status()
                              .message()),
              HasSubstr("those of fused stages are shown as trees"));
}

TEST(PictureTest, BadInput) {
  auto message = [](const PictureOptions& options) {
    return std::string(Svg(options).status().message());
  };
  EXPECT_EQ(message({}), "expected a value for the parameter 'n', found none");
  PictureOptions options = Options(6);
  options.arguments["m"] = 3;
  EXPECT_THAT(message(options), HasSubstr("expected a parameter of 'wave"));
  EXPECT_THAT(message(Options(1)), HasSubstr("found none of its instances"));
  EXPECT_THAT(message(Options(100)), HasSubstr("expected at most 2000 instances of S0"));
  options = Options(6);
  options.statement = "S7";
  EXPECT_EQ(message(options), "expected statement 'S7', found S0");
  options = Options(6);
  options.order.strategy = "best";
  EXPECT_THAT(message(options), HasSubstr("found 'best'"));
  options = Options(6);
  options.dimensions = {0, 2};
  EXPECT_EQ(message(options), "expected loops 0 to 1 of S0, found 2");
  testing::internal::CaptureStderr();
  options = Options(6);
  options.order = {.strategy = "text", .text = "{ S0[i, "};
  EXPECT_THAT(message(options), HasSubstr("schedule"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(PictureTest, TreesNestAsTheNodesDo) {
  const absl::StatusOr<std::string> page = TreesHtml(*ir::ParseFunction(R"(
func f(x: f32[n], y: f32[n], A: f32[n, n] in, n: i32) {
  for (i, 0, n) {
    x[i] = 0.0
    for (j, 0, n) { x[i] = x[i] + A[i, j] * y[j] }
  }
}
)"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(Occurrences(*page, "<details"), Occurrences(*page, "</details>"));
  EXPECT_GE(Occurrences(*page, ">band "), 3);
  EXPECT_GE(Occurrences(*page, ">filter "), 2);
  EXPECT_THAT(*page, HasSubstr("<h3>before</h3>"));
  EXPECT_THAT(*page, testing::Not(HasSubstr("-> ")));  // escaped
}

}  // namespace
}  // namespace polynao::poly
