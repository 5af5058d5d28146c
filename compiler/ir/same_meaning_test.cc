#include "compiler/ir/same_meaning.h"

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Function Parse(std::string_view text) {
  absl::StatusOr<Function> f = ParseFunction(text);
  POLYNAO_CHECK(f.ok()) << f.status();
  return *std::move(f);
}

std::string Compared(std::string_view before, std::string_view after,
                     const MeaningOptions& options = {}) {
  return CompareMeaning(Parse(before), Parse(after), 1, options);
}

TEST(CompareMeaningTest, NamesTheBufferAndTheElement) {
  const std::string wrong = Compared(
      "func f(A: i32[4] in, Out: i32[4] out) { for (i, 0, 4) { Out[i] = A[i] } }",
      "func f(A: i32[4] in, Out: i32[4] out) { for (i, 0, 4) { Out[i] = i == 2 ? 77 : A[i] "
      "} }");
  EXPECT_THAT(wrong, AllOf(HasSubstr("element 2 of Out is 77, expected "), HasSubstr("seed 1")));
}

// Each pair is a rewrite that a pass might make, and that is right for small values only.
TEST(CompareMeaningTest, FullRangesFindWhatSmallValuesHide) {
  struct {
    const char* type;
    const char* before;
    const char* after;
  } const kBroken[] = {
      // The sum wraps.
      {"u8", "(A[i] / 2 + 1) / 2 * 2 + (A[i] + 200) / 4", "(A[i] / 2 + 1) / 2 * 2 + A[i] / 4 + 50"},
      {"i8", "(A[i] + 100) / 2", "A[i] / 2 + 50"},
      {"i16", "A[i] * 512 / 512", "A[i]"},
      {"i32", "(A[i] * 4194304) / 4194304", "A[i]"},
      // An infinity or a NaN, -0, rounding.
      {"f32", "A[i] * 0.0", "A[i] < 0.0 ? -0.0 : 0.0"},
      {"f32", "A[i] + 0.0", "A[i]"},
      {"f16", "A[i] + A[i] - A[i]", "A[i]"},
      {"f32", "A[i] / 3.0", "A[i] * 0.33333334"},
      {"f32", "min(A[i], 1.0)", "min(1.0, A[i])"},
  };
  for (const auto& [type, before, after] : kBroken) {
    const auto function = [&](std::string_view value) {
      return std::string("func f(A: ") + type + "[200] in, B: " + type +
             "[200] out) { for (i, 0, 200) { B[i] = " + std::string(value) + " } }";
    };
    EXPECT_NE(Compared(function(before), function(after)), "") << type << " " << before;
    EXPECT_EQ(Compared(function(before), function(before)), "") << type << " " << before;
  }
  // The narrow values hide these.
  MeaningOptions exact;
  exact.arguments.values = Values::kExact;
  const auto wraps = [](std::string_view value) {
    return std::string("func f(A: i16[200] in, B: i16[200] out) { for (i, 0, 200) { B[i] = ") +
           std::string(value) + " } }";
  };
  EXPECT_EQ(Compared(wraps("A[i] * 512 / 512"), wraps("A[i]"), exact), "");
}

TEST(CompareMeaningTest, ScalarsAreDrawnFromTheirWholeRange) {
  const auto compared = [](const char* type, const char* before, const char* after) {
    const auto function = [&](const char* value) {
      return absl::StrCat("func f(B: ", type, "[1] out, n: i32) { B[0] = ", value, " }");
    };
    return Compared(function(before), function(after), {.draws = 400, .runs = 400});
  };
  EXPECT_EQ(compared("i32", "n + 1 - n", "1"), "");
  EXPECT_THAT(compared("i32", "n / 2", "n < 0 ? 0 - (0 - n) / 2 : n / 2"), HasSubstr("n = -"));
  EXPECT_THAT(compared("i1", "n < n + 7", "true"), HasSubstr("n = 21474836"));
  EXPECT_THAT(compared("i32", "n / -1", "select(0 <= n, 0 - n, max(0 - n, 0))"),
              HasSubstr("n = -2147483648"));
}

TEST(CompareMeaningTest, ACommonMistakeWithNegativeScalarsIsFoundByFewRuns) {
  int found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    found += !CompareMeaning(Parse("func f(B: i32[1] out, n: i32) { B[0] = max(n, 0) }"),
                             Parse("func f(B: i32[1] out, n: i32) { B[0] = n }"), seed)
                  .empty();
  }
  EXPECT_GE(found, 90);  // about every second comparison
}

TEST(CompareMeaningTest, GivenScalars) {
  MeaningOptions options;
  const char* before = "func f(B: i32[1] out, n: i32) { B[0] = n == -5 ? 1 : 2 }";
  const char* after = "func f(B: i32[1] out, n: i32) { B[0] = 2 }";
  options.arguments.scalars["n"] = Argument::Int(-5);
  EXPECT_THAT(Compared(before, after, options), HasSubstr("n = -5"));
  options.arguments.scalars["n"] = Argument::Int(4);
  EXPECT_EQ(Compared(before, after, options), "");
  options.arguments.scalars["m"] = Argument::Int(4);
  EXPECT_THAT(Compared(before, after, options), HasSubstr("not all of these"));
}

TEST(CompareMeaningTest, AnInputThatStopsIsAFailure) {
  const char* stops = "func f(A: i32[4], n: i32) { A[4] = 1 }";
  EXPECT_THAT(Compared(stops, stops),
              AllOf(HasSubstr("stops on all arguments tried"), HasSubstr("index 4 of dimension 0"),
                    HasSubstr("n = ")));
  bool stopped = false;
  MeaningOptions options{.may_stop = true, .stopped = &stopped};
  EXPECT_EQ(Compared(stops, stops, options), "");
  EXPECT_TRUE(stopped);
  // With scalars, draws on which the input stops do not count.
  const char* some = "func f(A: i32[4], n: i32) { if (0 < n) { A[n - 1] = 1 } }";
  options.may_stop = false;
  EXPECT_EQ(Compared(some, some, options), "");
  EXPECT_FALSE(stopped);
}

TEST(CompareMeaningTest, AnOutputThatStopsIsAFailure) {
  EXPECT_THAT(Compared("func f(A: i32[4]) { A[3] = 1 }", "func f(A: i32[4]) { A[3] = 1 / A[4] }"),
              HasSubstr("it stops: "));
}

TEST(CompareMeaningTest, ExtentsAndLoopsOverScalarsFindAffordableSizes) {
  const char* copy =
      "func f(A: f32[n] in, B: f32[n] out, n: i32) { for (i, 0, n) { B[i] = A[i] } }";
  EXPECT_EQ(Compared(copy, copy), "");
  const char* long_loop = "func f(B: i32[1] out, n: i64) { for (i: i64, 0, n) { B[0] = 1 } }";
  EXPECT_EQ(Compared(long_loop, long_loop), "");
}

// A parameter whose extent is negative has no elements; reading one stops the program.
TEST(CompareMeaningTest, NegativeExtents) {
  const Function f = Parse("func f(A: f32[n - 3] in, B: f32[1] out, n: i32) { B[0] = A[0] }");
  MeaningOptions options;
  options.arguments.scalars["n"] = Argument::Int(-2);
  EXPECT_THAT(CompareMeaning(f, f, 1, options), HasSubstr("index 0 of dimension 0 is outside"));
}

TEST(CompareMeaningTest, ParametersMayHaveOtherShapes) {
  EXPECT_EQ(Compared("func f(A: f32[2, 3]) { A[1, 2] = 1.0 }", "func f(A: f32[6]) { A[5] = 1.0 }"),
            "");
  EXPECT_THAT(
      Compared("func f(A: f32[2, 3]) { A[1, 2] = 1.0 }", "func f(A: f32[7]) { A[5] = 1.0 }"),
      HasSubstr("7 elements, expected 6"));
}

TEST(DisagreementTest, ReportsTheElementAndTheFunction) {
  const Function f = Parse("func f(A: f32[2] in, B: f32[2] out) { B[1] = 2.0 }");
  const RandomArguments arguments(f, 1);
  const auto zero = [](absl::Span<const Argument> a) {
    a[1].tensor->SetValue(1, 0);
    return absl::OkStatus();
  };
  EXPECT_THAT(Disagreement(f, arguments, zero),
              AllOf(HasSubstr("element 1 of B is 0, expected 2"), HasSubstr("B[1] = 2.0")));
  const auto fails = [](absl::Span<const Argument>) { return absl::InternalError("no"); };
  EXPECT_THAT(Disagreement(f, arguments, fails), HasSubstr("compiled code: no"));
}

}  // namespace
}  // namespace polynao::ir
