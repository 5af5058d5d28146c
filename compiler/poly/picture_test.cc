#include "compiler/poly/picture.h"

#include <string>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  options.schedule = "{ S0[i, j] -> [i + j, j] }";
  absl::StatusOr<std::string> svg = Svg(options);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr("after, by { S0[i, j] -&gt; [i + j, j] }"));
  options.schedule = "{ S0[i, j] -> [i - j, j] }";
  svg = Svg(options);
  ASSERT_FALSE(svg.ok());
  EXPECT_THAT(std::string(svg.status().message()), HasSubstr("the schedule violates "));
  EXPECT_THAT(std::string(svg.status().message()), HasSubstr("S0"));
  options.schedule = "{ S1[i] -> [i] }";
  EXPECT_THAT(std::string(Svg(options).status().message()),
              HasSubstr("the schedule has no time for the instances "));
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
  options.dimensions = {0, 2};
  EXPECT_EQ(message(options), "expected loops 0 to 1 of S0, found 2");
  testing::internal::CaptureStderr();
  options = Options(6);
  options.schedule = "{ S0[i, ";
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
