#include "compiler/ir/static_counts.h"

#include <string>

#include "base/check.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

Function Parse(std::string_view text) {
  absl::StatusOr<Function> function = ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

std::string Text(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : CountRows(counts)) {
    if (count != 0) text += name + " " + std::to_string(count) + " ";
  }
  return text;
}

// A padded row: 100 rows of 10 elements and 3 taps; the rows cost no time.
TEST(StaticCountsTest, Padding) {
  const Function f = Parse(
      "func f(A: f32[100, 10] in, B: f32[100, 10] out) {\n"
      "  for (c, 0, 100) { for (x, 0, 10) { for (k, 0, 3) {\n"
      "    B[c, x] = B[c, x] + (1 <= x + k && x + k < 11 ? A[c, x + k - 1] : 0.0)\n"
      "  } } }\n"
      "}\n");
  const absl::StatusOr<StaticCounts> counts = CountStatically(f, {}, 1000);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_TRUE(counts->exact);
  RandomArguments arguments(f, 1);
  Counts expected;
  ASSERT_TRUE(Interpret(f, arguments.arguments(), &expected).ok());
  EXPECT_EQ(Text(counts->counts), Text(expected));
}

TEST(StaticCountsTest, WhatDependsOnMemoryIsNotExact) {
  const Function f =
      Parse("func f(A: i32[4] in, B: i32[4] out) { if (A[0] < 3) { B[0] = 1 B[1] = 2 } }\n");
  const absl::StatusOr<StaticCounts> counts = CountStatically(f);
  ASSERT_TRUE(counts.ok());
  EXPECT_FALSE(counts->exact);
  EXPECT_EQ(counts->counts.stores, 2);
}

TEST(StaticCountsTest, Errors) {
  const Function f = Parse(
      "func f(B: i32[9] out, n: i32) { for (i, 0, n) { if (i % 2 == 0) { B[i % 9] = 1 } } }\n");
  EXPECT_THAT(CountStatically(f).status().message(), testing::HasSubstr("a value of 'n'"));
  const IntValues many = {{f.params[1].var, 1000000}};
  EXPECT_THAT(CountStatically(f, many, 1000).status().message(),
              testing::HasSubstr("more than 1000 steps"));
}

// Where conditions do not depend on memory, the counts are the interpreter's.
TEST(StaticCountsTest, RandomPrograms) {
  int exact = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Function f = RandomProgram(
        seed, {.stores = 3, .expression_depth = 2, .all_types = false, .max_iterations = 300});
    RandomArguments arguments(f, seed);
    IntValues scalars;
    for (size_t i = 0; i < f.params.size(); ++i) {
      if (f.params[i].var) scalars[f.params[i].var] = arguments.arguments()[i].int_value;
    }
    const absl::StatusOr<StaticCounts> counts = CountStatically(f, scalars);
    ASSERT_TRUE(counts.ok()) << counts.status();
    if (!counts->exact) continue;
    ++exact;
    Counts expected;
    ASSERT_TRUE(Interpret(f, arguments.arguments(), &expected).ok());
    ASSERT_EQ(Text(counts->counts), Text(expected)) << Print(f);
  }
  EXPECT_GT(exact, 300);
}

}  // namespace
}  // namespace polynao::ir
