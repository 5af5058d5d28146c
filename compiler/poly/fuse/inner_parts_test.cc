#include "compiler/poly/fuse/inner_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Split(const std::string& text) {
  absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
  EXPECT_TRUE(before.ok()) << before.status();
  ir::Function after = *before;
  after.body = WithInnerParts(before->body);
  EXPECT_EQ(ir::CompareMeaning(*before, after, 1, {.runs = 2}), "") << ir::Print(after);
  return ir::Print(after);
}

// Loops that begin and end anywhere, empty ones included; each element counts how often it is stored.
TEST(InnerPartsTest, EachIterationRunsOnce) {
  for (int first = -3; first <= 5; ++first) {
    for (int extent = -2; extent <= 9; ++extent) {
      for (const char* value :
           {"y / i64(2) + (y + i64(1)) % i64(2)", "(y - i64(1)) / i64(3) * i64(2)",
            "select(i64(1) <= y && y < i64(6), y / i64(2), y)", "select(y < i64(3), i64(7), y)",
            "select(i64(-1) < y, y * y, i64(5))", "select(i64(5) <= y && y < i64(2), i64(1), y)",
            "y / i64(4) - y % i64(3)"}) {
        SCOPED_TRACE(StrCat("y from ", first, ", ", extent, ": ", value));
        Split(StrCat("func f(u: i64[32], n: i64) { for (y: i64, n - n + ", first, ", n - n + ",
                     extent, ") { u[y + 8] = u[y + 8] + u[y + 8] + ", value, " } }"));
      }
    }
  }
}

TEST(InnerPartsTest, LoopsAroundLoops) {
  const std::string result = Split(
      "func f(d: f32[9, 70] in, u: f32[16, 128], n: i64) {\n"
      "  for (x: i64, n - n + 1, n - n + 14) { vectorize (y: i64, n - n + 1, n - n + 126) {\n"
      "    u[x, y] = select(2 <= x && 3 <= y && y < 120, d[(x + 1) / 2, y / 2], 0.5)\n"
      "  } }\n"
      "}\n");
  EXPECT_THAT(result, HasSubstr("pragma \"few_iterations\""));
  EXPECT_THAT(result, HasSubstr("u[x, y * 2 + 1]"));
}

// The first rows of windows, before and behind which the same stage is written once more.
TEST(InnerPartsTest, WhatTheFirstIterationAloneDoesStays) {
  const auto loops = [](const std::string& test, bool is_else) {
    const std::string inside = "vectorize (y: i64, 0, 100) { u[x, y] = d[x / 2, y / 2] }";
    const std::string other = "u[x, i64(0)] = 1.0";
    return Split(StrCat(
        "func f(d: f32[9, 70] in, u: f32[16, 128]) {\n  for (x: i64, 2, 9) {\n    if (", test,
        ") { ", is_else ? other : inside, " } else { ", is_else ? inside : other, " }\n  }\n}\n"));
  };
  const auto stays = Not(HasSubstr("* 2"));
  EXPECT_THAT(loops("x == i64(2)", false), stays);
  EXPECT_THAT(loops("x < i64(3)", false), stays);
  EXPECT_THAT(loops("i64(2) < x", true), stays);
  // The others do it in many iterations.
  EXPECT_THAT(loops("x == i64(2)", true), HasSubstr("* 2"));
  EXPECT_THAT(loops("x < i64(4)", false), HasSubstr("* 2"));
  EXPECT_THAT(loops("x % 2 == i64(0)", false), HasSubstr("* 2"));
  EXPECT_THAT(loops("x == i64(3)", false), HasSubstr("* 2"));
}

TEST(InnerPartsTest, ShortLoopsStay) {
  const std::string text =
      "func f(u: i64[32]) {\n  for (y: i64, 0, 32) {\n    u[y] = y / i64(2)\n  }\n}\n";
  EXPECT_THAT(Split(text), Not(HasSubstr("let")));
}

}  // namespace
}  // namespace polynao::poly
