#include "compiler/passes/loop_partition.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/simplify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Result {
  std::string text;  // the body
  LoopPartitionStats stats;
  ir::Function function;
};

// Partitions (and simplifies, if asked to) the function; checks flag and meaning.
Result Partitioned(const std::string& params, const std::string& body, bool simplify = true,
                   const LoopPartitionOptions& options = {}, const std::string& attributes = "") {
  const ir::Function before =
      ParseProgram(StrCat(attributes, "func f(", params, ") {\n", body, "}\n"));
  Result result;
  result.function = before;
  const absl::StatusOr<bool> changed = LoopPartition(result.function, options, &result.stats);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(*changed, before.body != result.function.body);
  if (simplify) {
    EXPECT_TRUE(Simplify(result.function).ok());
  }
  for (int64_t n : {0, 1, 2, 7}) {
    EXPECT_EQ(CompareMeaning(before, result.function, n), "") << ir::Print(result.function);
  }
  result.text = ir::Print(result.function.body);
  return result;
}

std::string Printed(const std::string& params, const std::string& body) {
  return ir::Print(ParseProgram(StrCat("func f(", params, ") {\n", body, "}\n")).body);
}

constexpr char kParams[] = "A: f32[64] in, B: f32[64] out, n: i32, m: i32";

// Section IV-C, figures 3 and 4: 4 x 14 values copied by 4 threads of 4 columns. The last thread
// has 2.
TEST(LoopPartitionTest, PaperExample) {
  const std::string params = "A: f32[56] in, C: f32[4, 16] out";
  const std::string before = R"(
    thread (tid, 4) {
      allocate AL: f32[16] @nmem
      pragma "MEMCPY" {
        for (i, 0, 4) {
          for (j, 0, 4) {
            if (tid * 4 + j < 14) { AL[i * 4 + j] = A[i * 14 + tid * 4 + j] }
          }
        }
      }
      for (i, 0, 4) { C[i, tid * 4] = AL[i * 4] }
    })";
  const std::string after = R"(
    thread (tid, 4) {
      allocate AL: f32[16] @nmem
      if (tid < 3) {
        pragma "MEMCPY" {
          for (i, 0, 4) {
            for (j, 0, 4) { AL[i * 4 + j] = A[i * 14 + tid * 4 + j] }
          }
        }
      } else {
        pragma "MEMCPY" {
          for (i, 0, 4) {
            for (j, 0, 2) { AL[i * 4 + j] = A[i * 14 + tid * 4 + j] }
          }
        }
      }
      for (i, 0, 4) { C[i, tid * 4] = AL[i * 4] }
    })";
  const Result result = Partitioned(params, before, /*simplify=*/false);
  EXPECT_EQ(result.text, Printed(params, after));
  EXPECT_EQ(result.stats.ToString(),
            "tid in [0, 3]: tid * 4 + j < 14: T [0, 2], F none, B [3, 3]; "
            "pieces [0, 2] [3, 3]\n"
            "j in [0, 3]: tid * 4 + j < 14: T [0, 1], F [2, 3], B none; pieces "
            "[0, 1] [2, 3]\n");
  EXPECT_EQ(result.stats.isl_questions, 0);
}

TEST(LoopPartitionTest, SerialLoopsBecomeConsecutive) {
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 4) { for (j, 0, 4) { if (i * 4 + "
                        "j < 14) { B[i * 4 + j] = 1.0 "
                        "} } }")
                .text,
            Printed(kParams,
                    "for (i, 0, 3) { for (j, 0, 4) { B[i * 4 + j] = 1.0 } }"
                    "for (j, 0, 2) { B[j + 12] = 1.0 }"));
}

TEST(LoopPartitionTest, KindsAndPragmasStayOnEveryPiece) {
  const std::string body =
      "parallel (i, 0, 10) { pragma \"x\" { vectorize (j, 0, 8) { "
      "if (i < 6) { B[j] = 1.0 } else { B[j] = 2.0 } } } }";
  EXPECT_EQ(Partitioned(kParams, body).text,
            Printed(kParams,
                    "parallel (i, 0, 6) { pragma \"x\" { vectorize "
                    "(j, 0, 8) { B[j] = 1.0 } } }"
                    "parallel (i, 6, 4) { pragma \"x\" { vectorize "
                    "(j, 0, 8) { B[j] = 2.0 } } }"));
}

TEST(LoopPartitionTest, TwoGuardsOnTwoLoops) {
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 8) { for (j, 0, 8) { if (i < 5 && "
                        "j < 7) { B[i * 8 + j] = 1.0 "
                        "} } }")
                .text,
            Printed(kParams, "for (i, 0, 5) { for (j, 0, 7) { B[i * 8 + j] = 1.0 } }"));
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 8) { for (j, 0, 8) { if (i < 5 || "
                        "j < 7) { B[i * 8 + j] = 1.0 "
                        "} } }")
                .text,
            Printed(kParams,
                    "for (i, 0, 5) { for (j, 0, 8) { B[i * 8 + j] = 1.0 } }"
                    "for (i, 5, 3) { for (j, 0, 7) { B[i * 8 + j] = 1.0 } }"));
}

TEST(LoopPartitionTest, NestedAndSeparateGuards) {
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 8) { if (2 <= i) { B[i] = 1.0 if "
                        "(i < 6) { B[i] = 2.0 } } B[63] = "
                        "3.0 }")
                .text,
            Printed(kParams,
                    "for (i, 0, 2) { B[63] = 3.0 }"
                    "for (i, 2, 4) { B[i] = 1.0 B[i] = 2.0 B[63] = 3.0 }"
                    "for (i, 6, 2) { B[i] = 1.0 B[63] = 3.0 }"));
}

// A select guards the load in it: padding by one on both sides of 6 values.
TEST(LoopPartitionTest, PaddingBySelect) {
  const Result result =
      Partitioned(kParams, "for (i, 0, 8) { B[i] = select(1 <= i && i < 7, A[i - 1], 0.0) }");
  EXPECT_EQ(result.text, Printed(kParams,
                                 "B[0] = 0.0"
                                 "for (i, 1, 6) { B[i] = A[i - 1] }"
                                 "B[7] = 0.0"));
  // With a window inside: the guard is constant for no border value of i, its two parts are.
  const Result window = Partitioned(kParams,
                                    "for (i, 0, 6) { for (k, 0, 3) { B[i] = B[i] + "
                                    "select(1 <= i + k && i + k < 7, A[i + k - 1], "
                                    "0.0) } }");
  EXPECT_EQ(window.text, Printed(kParams,
                                 "B[0] = B[0] + 0.0 for (k, 1, 2) { B[0] = B[0] + A[k - 1] }"
                                 "for (i, 1, 4) { for (k, 0, 3) { B[i] = B[i] + A[i + k - 1] } }"
                                 "for (k, 0, 2) { B[5] = B[5] + A[k + 4] } B[5] = B[5] + 0.0"));
  EXPECT_EQ(window.text.find("select"), std::string::npos);
}

TEST(LoopPartitionTest, TriangularGuards) {
  // Whether j < i depends on both; each i has a loop of its own length, so pieces are single
  // values.
  const Result rectangle =
      Partitioned(kParams, "for (i, 0, 4) { for (j, 0, 4) { if (j < i) { B[i * 4 + j] = 1.0 } } }");
  EXPECT_THAT(rectangle.text, HasSubstr("if (j < i)"));
  EXPECT_EQ(rectangle.stats.loops[0].pieces, (arith::Intervals{{0, 0}, {1, 3}}));
  // The inner loop ends at i: the guard is true for i < 3 whatever j is.
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 8) { for (j, 0, i + 1) { if (j < 3) { B[i "
                        "* 8 + j] = 1.0 } } }",
                        /*simplify=*/false)
                .stats.loops[0]
                .pieces,
            (arith::Intervals{{0, 2}, {3, 7}}));
}

TEST(LoopPartitionTest, MinAndMax) {
  // In a guard.
  EXPECT_EQ(Partitioned(kParams, "for (i, 0, 9) { if (min(i * 2, 10) < 7) { B[i] = 1.0 } }").text,
            Printed(kParams, "for (i, 0, 4) { B[i] = 1.0 }"));
  // As a loop's bound.
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 4) { for (j, 0, min(4, 14 - i * "
                        "4)) { B[i * 4 + j] = 1.0 } }")
                .text,
            Printed(kParams,
                    "for (i, 0, 3) { for (j, 0, 4) { B[i * 4 + j] = 1.0 } }"
                    "for (j, 0, 2) { B[j + 12] = 1.0 }"));
  EXPECT_EQ(
      Partitioned(kParams, "for (i, 0, 6) { for (j, max(2 - i, 0), 3) { B[i * 4 + j] = 1.0 } }")
          .text,
      Printed(kParams,
              "for (i, 0, 2) { for (j, 2 - i, 3) { B[i * 4 + j] = 1.0 } }"
              "for (i, 2, 4) { for (j, 0, 3) { B[i * 4 + j] = 1.0 } }"));
}

TEST(LoopPartitionTest, FloorDivisionAndRemainder) {
  const Result result =
      Partitioned(kParams, "for (i, 0, 16) { if (i / 4 % 2 == 0) { B[i] = 1.0 } }");
  EXPECT_EQ(result.text,
            Printed(kParams, "for (i, 0, 4) { B[i] = 1.0 } for (i, 8, 4) { B[i] = 1.0 }"));
  EXPECT_GT(result.stats.isl_questions, 0);
}

TEST(LoopPartitionTest, LetsAreSeenThrough) {
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 4) { for (j, 0, 4) { let t = i * 4 + j "
                        "if (t < 14) { B[t] = A[t] } } }")
                .text,
            Printed(kParams,
                    "for (i, 0, 3) { for (j, 0, 4) { let t = i * 4 + j B[t] = A[t] } }"
                    "for (j, 0, 2) { let t = j + 12 B[t] = A[t] }"));
}

TEST(LoopPartitionTest, ThreadLoopsStayOne) {
  const std::string body = R"(
    thread (cid, 2) {
      thread (tid, 4) {
        for (j, 0, 4) {
          if (cid * 16 + tid * 4 + j < 30) { B[cid * 16 + tid * 4 + j] = A[j] }
        }
      }
    })";
  const std::string after = R"(
    thread (cid, 2) {
      thread (tid, 4) {
        if (cid < 1) {
          for (j, 0, 4) { B[cid * 16 + tid * 4 + j] = A[j] }
        } else {
          if (tid < 3) {
            for (j, 0, 4) { B[cid * 16 + tid * 4 + j] = A[j] }
          } else {
            for (j, 0, 2) { B[cid * 16 + tid * 4 + j] = A[j] }
          }
        }
      }
    })";
  EXPECT_EQ(Partitioned(kParams, body, /*simplify=*/false).text, Printed(kParams, after));
}

TEST(LoopPartitionTest, ThreadsWithoutWorkAreLeftOut) {
  EXPECT_EQ(Partitioned(kParams,
                        "thread (tid, 8) { for (j, 0, 2) { if (3 <= tid) { "
                        "B[tid * 2 + j] = 1.0 } "
                        "} }",
                        /*simplify=*/false)
                .text,
            Printed(kParams,
                    "thread (tid, 8) { if (3 <= tid) { for (j, 0, 2) "
                    "{ B[tid * 2 + j] = 1.0 } } }"));
}

TEST(LoopPartitionTest, LeavesAlone) {
  const std::vector<std::string> bodies = {
      // No guard.
      "for (i, 0, 8) { B[i] = A[i] }",
      // Not affine.
      "for (i, 0, 8) { if (A[i] < 3.0) { B[i] = 1.0 } }",
      "for (i, 0, 8) { for (j, 0, 8) { if (i * j < 9 + n) { B[i] = 1.0 } } }",
      // On a parameter only.
      "for (i, 0, 8) { if (n < 3) { B[i] = 1.0 } }",
      // A loop of unknown length, and a guard that changes nowhere in particular.
      "for (i, 0, n) { if (i % 2 == 0) { B[i] = 1.0 } }",
      "for (i, 0, n) { if (i * n < 5) { B[i] = 1.0 } }",
      // Bounds that may not be computed before the loop: n + m may leave i32.
      "for (i, 0, n) { if (i < n + m) { B[i] = 1.0 } }",
      // Threads of unknown number run one program.
      "thread (tid, n) { for (j, 0, 4) { if (tid < 2) { B[j] = 1.0 } } }",
      // A threshold that is not known.
      "for (i, 0, 8) { if (i < n) { B[i] = 1.0 } }",
      // Alternating: more pieces than the limit.
      "for (i, 0, 60) { if (i % 2 == 0) { B[i] = 1.0 } }",
      // Under a thread loop without a loop, an if is as good as a piece.
      "thread (tid, 8) { if (tid < 5) { B[tid] = 1.0 } }",
      // Pieces of the outer loop would have thread loops of their own.
      "for (i, 0, 4) { thread (tid, 4) { if (i < 3) { B[i * 4 + tid] = 1.0 } } "
      "}",
  };
  for (const std::string& body : bodies) {
    const Result result = Partitioned(kParams, body, /*simplify=*/false);
    EXPECT_EQ(result.text, Printed(kParams, body));
  }
}

// The load after the affine part is evaluated as before, and not where it was not.
TEST(LoopPartitionTest, PartsThatReadMemoryStay) {
  EXPECT_EQ(
      Partitioned(kParams, "for (i, 0, 80) { if (i < 60 && A[i] < 1.0) { B[i] = 1.0 } }").text,
      Printed(kParams, "for (i, 0, 60) { if (A[i] < 1.0) { B[i] = 1.0 } }"));
  EXPECT_EQ(Partitioned(kParams, "for (i, 0, 64) { if (A[i] < 1.0 && i < 60) { B[i] = 1.0 } }",
                        /*simplify=*/false)
                .text,
            Printed(kParams,
                    "for (i, 0, 60) { if (A[i] < 1.0) { B[i] = 1.0 } }"
                    "for (i, 60, 4) { if (A[i] < 1.0 && false) { B[i] = 1.0 } }"));
}

TEST(LoopPartitionTest, LimitOfPiecesLeavesGuardsInPlace) {
  const std::string body =
      "for (i, 0, 12) { if (i < 3) { B[0] = 1.0 } if (i < "
      "6) { B[1] = 1.0 } if (i < 9) { B[2] = "
      "1.0 "
      "} }";
  EXPECT_EQ(Partitioned(kParams, body, true, {.max_pieces = 2}).text,
            Printed(kParams,
                    "for (i, 0, 3) { B[0] = 1.0 B[1] = 1.0 B[2] = 1.0 }"
                    "for (i, 3, 9) { if (i < 6) { B[1] = 1.0 } if (i < 9) { "
                    "B[2] = 1.0 } }"));
  const Result nest = Partitioned(kParams, body, true, {.max_nest_pieces = 1});
  EXPECT_EQ(nest.stats.loops[0].pieces.size(), 2);
  EXPECT_THAT(nest.stats.ToString(), HasSubstr("(over the limit)"));
  EXPECT_EQ(Partitioned(kParams, body, false, {.max_pieces = 1}).text, Printed(kParams, body));
}

// A remainder that takes all of its values has the range of a variable: nothing to ask isl for.
TEST(LoopPartitionTest, RemaindersOfOtherLoops) {
  const auto questions = [](const std::string& guard) {
    const Result result = Partitioned(
        kParams, StrCat("for (i, 0, 60) { for (j, 0, 16) { if (", guard, ") { B[j] = 1.0 } } }"));
    EXPECT_THAT(result.stats.ToString(), HasSubstr("j in [0, 15]: ")) << guard;
    return result.stats.isl_questions;
  };
  const int64_t of_i = 1;  // of one period
  EXPECT_EQ(questions("i % 3 * 16 + j < 40"), of_i);
  EXPECT_EQ(questions("50 <= i % 3 * 16 + j * 2"), of_i);
  // Not independent of each other, or not all values: 45 <= i.
  EXPECT_EQ(questions("i % 3 * 16 + i % 2 + j < 40"), of_i + 1);
  EXPECT_EQ(questions("(i + 1) / 2 % 3 * 16 + j < 40"), of_i + 1);
}

// Of what repeats too often not even the first values get a piece.
TEST(LoopPartitionTest, RepeatingGuards) {
  const auto nest = [](const std::string& guard, const std::string& extent = "16") {
    return StrCat("for (i, 0, 60) { for (j, 0, ", extent, ") { if (", guard,
                  ") { B[j] = 1.0 } } }");
  };
  for (const std::string guard :
       {"i % 3 * 16 + j < 40", "j + i * 16 - i / 3 * 48 < 40", "i / 2 % 2 < j && j < 9",
        "min(i % 3, j) < 2", "1 <= i % 3 && i % 3 * 16 + j < 40"}) {
    const Result result = Partitioned(kParams, nest(guard));
    EXPECT_THAT(result.text, HasSubstr("for (i, 0, 60) {")) << guard;
    EXPECT_THAT(result.stats.ToString(), Not(HasSubstr("i in"))) << guard;
  }
  // Constant in one period: in all of them.
  EXPECT_EQ(Partitioned(kParams, nest("i / 2 % 3 < 3 || j == 20")).text,
            Printed(kParams, "for (i, 0, 60) { for (j, 0, 16) { B[j] = 1.0 } }"));
  // Few enough periods; a loop inside, or a fact, that does not repeat.
  for (const std::string& nest_of_pieces :
       {std::string("for (i, 0, 9) { for (j, 0, 16) { if (i % 3 * 16 + j < 40) "
                    "{ B[j] = 1.0 } } }"),
        nest("i % 2 * 64 + j < 30", "i + 1"),
        nest("i < 7) { if (i % 3 * 16 + j < 40").append("}")}) {
    const Result result = Partitioned(kParams, nest_of_pieces);
    EXPECT_THAT(result.stats.ToString(), HasSubstr("i in")) << nest_of_pieces;
  }
}

TEST(LoopPartitionTest, OnlyInPragmas) {
  const std::string body =
      "for (i, 0, 8) { if (i < 5) { B[i] = 1.0 } }"
      "for (i, 0, 8) { pragma \"x\" { for (j, 0, 2) { if "
      "(i < 5) { B[i] = 1.0 } } } }";
  EXPECT_EQ(Partitioned(kParams, body, true, {.only_in_pragmas = true}).text,
            Printed(kParams,
                    "for (i, 0, 8) { if (i < 5) { B[i] = 1.0 } }"
                    "for (i, 0, 5) { pragma \"x\" { for (j, 0, 2) { B[i] = 1.0 } } }"));
}

TEST(LoopPartitionTest, AllocationsOfPiecesAreTheirOwn) {
  const Result result = Partitioned(kParams,
                                    "for (i, 0, 4) { allocate T: f32[4] for (j, 0, 4) { "
                                    "if (i * 4 + j < 14) { T[j] = A[j] "
                                    "B[i * 4 + j] = T[j] } } }");
  EXPECT_THAT(result.text, Not(HasSubstr("if")));
}

// What the bounds of a loop say about other variables holds inside of it only: the second loop here
// never runs, and must not make the first guard look constant.
TEST(LoopPartitionTest, EmptyLoopsBesideAGuard) {
  const Result result =
      Partitioned(kParams,
                  "for (i, 0, 8) { for (j, 0, 3) { if (i * 4 + j < 14) { B[i] = 1.0 } }"
                  " for (k, i, 0) { if (k * 5 + i < 3) { B[0] = 2.0 } } }",
                  /*simplify=*/false);
  EXPECT_EQ(result.stats.loops[0].guards[0].always, (arith::Intervals{{0, 2}}));
  EXPECT_EQ(result.stats.loops[0].guards[0].never, (arith::Intervals{{4, 7}}));
}

// Conditions around a guard are facts inside; what is known at one place says nothing of another.
TEST(LoopPartitionTest, EnclosingConditionsNarrowGuards) {
  // Of several variables: the inner guard follows from the outer one wherever that is not decided.
  const Result nested = Partitioned(kParams,
                                    "for (i, 0, 8) { for (j, 0, 8) { if (i + j < 9) { "
                                    "if (i + j < 12) { B[i] = 1.0 } } } }");
  EXPECT_THAT(nested.text, Not(HasSubstr("< 12")));
  EXPECT_EQ(nested.stats.loops[0].guards[1].always, (arith::Intervals{{0, 7}}));
  // Beside it, it does not.
  const Result beside = Partitioned(kParams,
                                    "for (i, 0, 8) { for (j, 0, 8) { if (i + j "
                                    "< 9) { if (i + j < 12) { B[i] = 1.0 } }"
                                    " if (i + j < 12) { B[i] = 2.0 } } }",
                                    /*simplify=*/false);
  ASSERT_EQ(beside.stats.loops[0].guards.size(), 3);
  EXPECT_EQ(beside.stats.loops[0].guards[1].always, (arith::Intervals{{0, 7}}));
  EXPECT_EQ(beside.stats.loops[0].guards[2].always, (arith::Intervals{{0, 4}}));
  EXPECT_THAT(beside.text, HasSubstr("i + j < 12"));
  // The negation in the else branch.
  const Result negated = Partitioned(kParams,
                                     "for (i, 0, 8) { for (j, 0, 8) { if (i + j < 9) { "
                                     "B[i] = 1.0 } else { if (5 < i + j) { B[i] "
                                     "= 2.0 } else { B[i] = 3.0 } } } }");
  EXPECT_THAT(negated.text, Not(HasSubstr("3.0")));
  EXPECT_THAT(negated.text, Not(HasSubstr("5 <")));
  // Around the loop, of a parameter, through a let, and by one part of a condition that reads memory.
  for (const std::string around :
       {"if (n <= 3) { ", "if (3 < n) { B[0] = 4.0 } else { ", "let m = n + 0 if (m <= 3) { ",
        "if (A[0] < 100.0 && n <= 3) { "}) {
    EXPECT_THAT(
        Partitioned(kParams, around + "for (i, 0, 8) { if (i + n < 11) { B[i] = 1.0 } } }").text,
        Not(HasSubstr("< 11")))
        << around;
  }
  // The negation of an order of floats is not the opposite order: with x = 0, x / x is NaN, and neither
  // `x / x < 1.0` nor `1.0 <= x / x` holds.
  const Result floats = Partitioned(
      "B: f32[8] out, x: f32",
      "for (i, 0, 8) { if (x / x < 1.0) { B[i] = 1.0 } else { if (1.0 <= x / x && i < 3) { "
      "B[i] = 2.0 } else { B[i] = 3.0 } } }");
  EXPECT_THAT(floats.text, HasSubstr("1.0 <= x / x"));
  // A condition that a store may change is no fact.
  const Result memory = Partitioned(kParams,
                                    "for (i, 0, 8) { if (B[0] < 3.0) { B[0] = 5.0 if "
                                    "(B[0] < 3.0) { B[i] = 1.0 } } }");
  EXPECT_FALSE(memory.stats.loops.size());
}

// Values that the facts exclude make no pieces of their own.
TEST(LoopPartitionTest, ExcludedValuesMakeNoCuts) {
  const Result result = Partitioned(kParams,
                                    "for (i, 0, 8) { if (i < 4) { if (i < 6) { B[i] = "
                                    "1.0 } if (2 <= i) { B[i] = 2.0 } } }");
  EXPECT_EQ(result.stats.loops[0].pieces, (arith::Intervals{{0, 1}, {2, 3}, {4, 7}}));
  EXPECT_EQ(result.text, Printed(kParams,
                                 "for (i, 0, 2) { B[i] = 1.0 }"
                                 "for (i, 2, 2) { B[i] = 1.0 B[i] = 2.0 }"));
}

TEST(LoopPartitionTest, SymbolicExtents) {
  // Constant cuts in a loop of unknown length, which may have any of the pieces.
  const Result constant =
      Partitioned(kParams, "for (i, 0, n) { if (i < 5) { B[i] = 1.0 } else { B[i] = 2.0 } }");
  EXPECT_EQ(constant.text, Printed(kParams,
                                   "for (i, 0, min(n, 5)) { B[i] = 1.0 }"
                                   "for (i, 5, max(n, 5) - 5) { B[i] = 2.0 }"));
  EXPECT_EQ(constant.stats.ToString(),
            "i in [0, n): i < 5: T [.., 4], F [5, ..], B none; pieces [0, "
            "min(n, 5)) [5, n)\n");
  // Cuts that are known before the loop: padding of n values by one on both sides.
  const std::string params = "A: f32[n] in, B: f32[n] out, n: i32";
  const std::string not_negative = "@assert(0 <= n)\n";
  const std::string pad = "for (i, 0, n) { B[i] = select(2 <= i && i < n - 1, A[i - 2], 0.0) }";
  const Result padding = Partitioned(params, pad, true, {}, not_negative);
  EXPECT_THAT(padding.text, Not(HasSubstr("select")));
  EXPECT_THAT(padding.stats.ToString(),
              HasSubstr("i < n - 1: T [.., n - 1), F [n - 1, ..), B none; pieces ["));
  // n - 7 leaves i32 for the smallest n, for which the loop has no iteration.
  const Result far =
      Partitioned(kParams, "for (i, 0, n) { if (i < n - 7) { B[i] = 1.0 } else { B[i] = 2.0 } }");
  EXPECT_THAT(far.text, Not(HasSubstr("if")));
  // Tiles: whole ones, and the rest with its guard.
  const std::string tile =
      "for (i, 0, (n + 3) / 4) { for (j, 0, 4) { if (i * 4 + j < n) { B[i * 4 + j] = 1.0 } } }";
  const Result tiles = Partitioned(params, tile, true, {}, not_negative);
  EXPECT_THAT(tiles.text,
              HasSubstr("for (i, 0, min((n + 3) / 4, n / 4)) {\n  for (j, 0, 4) {\n    B["));
  // An extent n may be negative, and counts as 0 then: no piece has an iteration, and none of its bounds
  // stops the program.
  for (const std::string& body : {pad, tile}) {
    const ir::Function before = ParseProgram(StrCat("func f(", params, ") {\n", body, "}\n"));
    const Result any = Partitioned(params, body);
    for (int64_t n : {int64_t{-2147483648}, int64_t{-5}, int64_t{-1}, int64_t{0}, int64_t{3}}) {
      EXPECT_EQ(CompareMeaning(before, any.function, n), "") << n << any.text;
    }
  }
  // Of an outer variable.
  EXPECT_EQ(Partitioned(kParams,
                        "for (i, 0, 8) { for (j, 0, i) { if (j < 3) { "
                        "B[i * 8 + j] = 1.0 } } }")
                .text,
            Printed(kParams,
                    "for (i, 0, 4) { for (j, 0, i) { B[i * 8 + j] = 1.0 } }"
                    "for (i, 4, 4) { for (j, 0, 3) { B[i * 8 + j] = 1.0 } }"));
  // A pragma, and the kind of the loop, on every piece.
  const Result kept = Partitioned(kParams,
                                  "parallel (i, 0, n) { pragma \"x\" { if (i < 5) { "
                                  "B[i] = 1.0 } else { B[i] = 2.0 } } }");
  EXPECT_EQ(kept.text, Printed(kParams,
                               "parallel (i, 0, min(n, 5)) { pragma \"x\" { B[i] = 1.0 } }"
                               "parallel (i, 5, max(n, 5) - 5) { pragma \"x\" { B[i] = 2.0 } }"));
}

// Bounds of pieces stay in their type, whatever the parameter is.
TEST(LoopPartitionTest, SymbolicExtentsAtTheEndsOfTheType) {
  const ir::Function before = ParseProgram(
      "func f(B: f32[64] out, n: i32) { for (i, 0, n) { if (i < "
      "5) { B[i] = 1.0 } else { if (i < "
      "7) "
      "{ B[i] = 2.0 } } } }");
  ir::Function after = before;
  ASSERT_TRUE(*LoopPartition(after));
  for (int64_t n :
       {int64_t{-2147483648}, int64_t{-2147483647}, int64_t{-5}, int64_t{-1}, int64_t{0},
        int64_t{4}, int64_t{5}, int64_t{6}, int64_t{7}, int64_t{8}, int64_t{60}}) {
    EXPECT_EQ(CompareMeaning(before, after, n), "") << n << ir::Print(after);
  }
  const ir::Function far = ParseProgram(
      "func f(B: f32[64] out, n: i32) { for (i, 0, n) { if (i < n - 7) { B[i] = 1.0 } else { B[i] "
      "= 2.0 } } }");
  ir::Function split = far;
  ASSERT_TRUE(*LoopPartition(split));
  for (int64_t n : {int64_t{-2147483648}, int64_t{-2147483641}, int64_t{-1}, int64_t{0}, int64_t{1},
                    int64_t{6}, int64_t{7}, int64_t{8}, int64_t{60}}) {
    EXPECT_EQ(CompareMeaning(far, split, n), "") << n << ir::Print(split);
  }
  // n + 1, the first value for which the guard is false, may be beyond the type.
  const ir::Function last = ParseProgram(
      "func f(B: f32[64] out, n: i32) { for (i, 0, min(n / 2 + 3, 8)) { if (i * 2 <= n) { B[i] = "
      "1.0 } if "
      "(i "
      "<= n) { B[i + 8] = 2.0 } else { B[i] = 3.0 } } }");
  split = last;
  LoopPartitionStats stats;
  ASSERT_TRUE(*LoopPartition(split, {}, &stats));
  EXPECT_THAT(stats.ToString(), HasSubstr("i <= n: T [.., min("));
  for (int64_t n : {int64_t{-2147483648}, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{7},
                    int64_t{60}, int64_t{2147483646}, int64_t{2147483647}}) {
    EXPECT_EQ(CompareMeaning(last, split, n), "") << n << ir::Print(split);
  }
}

TEST(LoopPartitionTest, SymbolicExtentsKeepTheLimits) {
  const std::string body =
      "for (i, 0, n) { if (i < 3) { B[0] = 1.0 } if (i < "
      "6) { B[1] = 1.0 } if (i < 9) { B[2] = 1.0 "
      "} }";
  const Result two = Partitioned(kParams, body, true, {.max_pieces = 2});
  EXPECT_EQ(two.stats.loops[0].pieces.size(), 2);
  EXPECT_THAT(two.text, HasSubstr("if (i < 6)"));
  EXPECT_EQ(Partitioned(kParams, body, false, {.max_pieces = 1}).text, Printed(kParams, body));
  EXPECT_EQ(Partitioned(kParams, body, false, {.max_nest_pieces = 0}).text, Printed(kParams, body));
}

// A clamp is peeled where it changes something: the centre has none.
TEST(LoopPartitionTest, Clamps) {
  EXPECT_EQ(Partitioned(kParams, "for (i, 0, 64) { B[i] = A[min(max(i - 1, 0), 62)] }").text,
            Printed(kParams, "B[0] = A[0] for (i, 1, 63) { B[i] = A[i - 1] }"));
  EXPECT_EQ(Partitioned(kParams, "for (i, 0, 64) { B[i] = A[min(60, max(0, i - 1))] }").text,
            Printed(kParams,
                    "B[0] = A[0] for (i, 1, 61) { B[i] = A[i - 1] }"
                    "for (i, 62, 2) { B[i] = A[60] }"));
  // An image whose borders are repeated: three rows and columns of pieces, and windows at the borders.
  const Result image = Partitioned(
      kParams,
      "for (y, 0, 8) { for (x, 0, 8) { for (r, 0, 3) { for (s, 0, 3) {"
      " B[y * 8 + x] = B[y * 8 + x] + A[min(max(y + r - 1, 0), 7) * 8 + min(max(x + s - 1, 0), 7)]"
      " } } } }");
  EXPECT_THAT(image.text, Not(HasSubstr("min(")));
  EXPECT_THAT(image.text, Not(HasSubstr("max(")));
  EXPECT_THAT(image.text,
              HasSubstr("  for (x, 1, 6) {\n    for (r, 0, 3) {\n      for (s, 0, 3) {"));
  // Through a let, in a stored value, and at a border that is known before the loop only.
  EXPECT_EQ(Partitioned(kParams, "for (i, 0, 64) { let y = max(i - 2, 0) B[i] = A[y] }",
                        /*simplify=*/false)
                .stats.loops[0]
                .pieces,
            (arith::Intervals{{0, 1}, {2, 63}}));
  const std::string params = "O: i32[64] out, n: i32";
  EXPECT_EQ(Partitioned(params, "for (i, 0, 64) { O[i] = max(i, 5) }").text,
            Printed(params, "for (i, 0, 5) { O[i] = 5 } for (i, 5, 59) { O[i] = i }"));
  const Result symbolic =
      Partitioned("A: f32[n] in, B: f32[n] out, n: i32, m: i32",
                  "for (i, 0, n) { B[i] = A[min(max(i - 1, 0), n - 1)] + f32(min(i, m)) }");
  EXPECT_THAT(symbolic.text, Not(HasSubstr("min(i")));
}

// What is compared is no clamp, a stored value may wrap on its way to the comparison, and a clamp of
// what is loaded is none of an affine expression.
TEST(LoopPartitionTest, OtherMinsAndMaxesStay) {
  const std::string params = "O: i32[64] out, n: i32";
  for (const std::string body :
       {"for (i, 0, 64) { O[i] = min(i * 100000000, 7) }", "for (i, 0, 64) { O[i] = max(O[i], 0) }",
        "for (i, 0, 64) { O[min(i, n)] = 1 }"}) {
    EXPECT_EQ(Partitioned(params, body, /*simplify=*/false).text, Printed(params, body));
  }
  EXPECT_EQ(Partitioned(params, "for (i, 0, 9) { if (min(i * 2, 10) < 7) { O[i] = 1 } }",
                        /*simplify=*/false)
                .stats.loops[0]
                .pieces,
            (arith::Intervals{{0, 3}, {4, 8}}));
  // The same node in an index, where nothing wraps, and in a value at the same place.
  const std::string both =
      "for (i, 0, 64) { if (i < 3) { O[min(i * 100000000, 7)] = min(i * 100000000, 7) } }";
  EXPECT_THAT(Partitioned(params, both).text, HasSubstr("= min("));
}

// cse and licm bind conditions; the guards are their values.
TEST(LoopPartitionTest, LetsOfConditions) {
  const Result twice =
      Partitioned(kParams,
                  "for (i, 0, 4) { for (j, 0, 4) { let c: i1 = i * 4 + j < 14"
                  " if (c) { B[i * 4 + j] = 1.0 } B[63] = 2.0 if (c) { B[i] = 2.0 } } }");
  EXPECT_THAT(twice.text, Not(HasSubstr("if")));
  EXPECT_THAT(twice.text,
              HasSubstr("for (i, 0, 3) {\n  for (j, 0, 4) {\n    B[i * 4 + j] = 1.0\n"));
  // By parts, also of a let that another one uses.
  const Result parts = Partitioned(
      kParams,
      "for (i, 0, 6) { for (k, 0, 3) { let c: i1 = 1 <= i + k let d: i1 = c && i + k < 7"
      " B[i] = B[i] + select(d, A[i + k - 1], 0.0) } }");
  EXPECT_THAT(parts.text, Not(HasSubstr("select")));
  // What stays of a condition takes the place of its variable.
  EXPECT_THAT(Partitioned(kParams,
                          "for (i, 0, 8) { let c: i1 = i < 5 && n % 2 == 0 if (c) { B[i] = 1.0 } }",
                          /*simplify=*/false)
                  .text,
              HasSubstr("if (n % 2 == 0)"));
  // A condition that a store may change is evaluated once.
  const std::string loaded =
      "for (i, 0, 8) { let c: i1 = i < 5 && B[0] < 1.0 B[0] = 2.0 if (c) { B[i] = 1.0 } }";
  EXPECT_THAT(Partitioned(kParams, loaded, /*simplify=*/false).text, HasSubstr("if (c)"));
}

// Five thresholds of unknown order: a piece is cut only by what still decides something in it.
TEST(LoopPartitionTest, UnknownThresholds) {
  const std::string params = "B: f32[64] out, n: i32, a: i32, b: i32, c: i32, d: i32, e: i32";
  const std::string chain =
      "for (i, 0, n) { B[0] = B[0] * 3.0 + select(a <= i && i < b, 1.0,"
      " select(c <= i && i < d, 2.0, select(i < e, 3.0, 4.0))) }";
  const Result result = Partitioned(params, chain);
  EXPECT_THAT(result.text, Not(HasSubstr("select")));
  ASSERT_EQ(result.stats.loops.size(), 1);
  EXPECT_EQ(result.stats.loops[0].piece_bounds.size(), 11);
  const ir::Function before = ParseProgram(StrCat("func f(", params, ") {\n", chain, "}\n"));
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, result.function, seed), "") << seed;
  }
  // A conjunction makes one piece for each operand that is false, and one where all hold.
  EXPECT_EQ(Partitioned(params,
                        "for (i, 0, n) { if (a <= i && i < b && c <= i && i < d && i < e) {"
                        " B[i] = 1.0 } else { B[0] = 2.0 } }")
                .stats.loops[0]
                .piece_bounds.size(),
            6);
}

// Limits hold for the function: the pieces are not split again.
TEST(LoopPartitionTest, ASecondRunChangesNothing) {
  const std::string text =
      "func f(B: f32[64] out, n: i32) { for (i, 0, n) { if (i < 3) { B[0] = 1.0 }"
      " if (i < 6) { B[1] = 1.0 } if (i < 9) { B[2] = 1.0 } } }";
  ir::Function function = ParseProgram(text);
  ASSERT_TRUE(*LoopPartition(function, {.max_pieces = 2}));
  ASSERT_NE(function.FindAttribute(kPartitionedAttribute), nullptr);
  ir::Function parsed = ParseProgram(ir::Print(function));
  const ir::Stmt once = parsed.body;
  EXPECT_FALSE(*LoopPartition(parsed));
  EXPECT_EQ(parsed.body, once);
  // After a run for pragmas only the rest may follow, once.
  ir::Function pragmas = ParseProgram(
      "func f(B: f32[64] out) { pragma \"x\" { for (i, 0, 8) { if (i < 3) { B[i] = 1.0 } } }"
      " for (i, 0, 8) { if (i < 3) { B[i] = 2.0 } } }");
  const LoopPartitionOptions only = {.only_in_pragmas = true};
  EXPECT_TRUE(*LoopPartition(pragmas, only));
  EXPECT_FALSE(*LoopPartition(pragmas, only));
  EXPECT_TRUE(*LoopPartition(pragmas));
  EXPECT_FALSE(*LoopPartition(pragmas));
  EXPECT_FALSE(*LoopPartition(pragmas, only));
  // Unchanged, unmarked.
  ir::Function plain = ParseProgram("func f(B: f32[64] out) { for (i, 0, 8) { B[i] = 1.0 } }");
  EXPECT_FALSE(*LoopPartition(plain));
  EXPECT_EQ(plain.FindAttribute(kPartitionedAttribute), nullptr);
}

// Clamps of random sums, in indices and values, over nests of random extents.
TEST(LoopPartitionTest, RandomClamps) {
  uint64_t state = 1;
  const auto draw = [&](int64_t least, int64_t most) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(most - least + 1));
  };
  int changed = 0;
  for (int test = 1; test <= 60; ++test) {
    const auto clamp = [&] {
      const std::string sum = StrCat("i * ", draw(-3, 3), " + j * ", draw(-3, 3),
                                     draw(0, 3) == 0 ? " + n" : "", " + ", draw(-9, 9));
      const std::string low = StrCat("max(", sum, ", ", draw(0, 4), ")");
      return draw(0, 1) == 0 ? StrCat("min(", low, ", ", draw(4, 63), ")")
                             : StrCat("min(", draw(4, 63), ", ", low, ")");
    };
    const std::string end = draw(0, 2) == 0 ? "n" : StrCat(draw(0, 9));
    const ir::Function before = ParseProgram(StrCat(
        "func f(A: i32[64] in, B: i32[64] out, n: i32) { for (i, 0, ", end, ") { for (j, 0, ",
        draw(0, 5), ") { B[", clamp(), "] = A[", clamp(), "] + ", clamp(), " } } }"));
    ir::Function after = before;
    const auto result = LoopPartition(after);
    ASSERT_TRUE(result.ok());
    changed += *result;
    for (int64_t n : {-2, 0, 3, 9}) {
      ASSERT_EQ(CompareMeaning(before, after, n), "") << "test " << test << " n " << n << "\n"
                                                      << ir::Print(before) << ir::Print(after);
    }
  }
  EXPECT_GT(changed, 30);
}

// A guard that does not fit is skipped; one behind it may still fit.
TEST(LoopPartitionTest, LaterGuardsMayFit) {
  const Result result = Partitioned(kParams,
                                    "for (i, 0, 12) { if (i == 5) { B[0] = 1.0 } if (i < 9) { "
                                    "B[1] = 1.0 } else { B[2] = 1.0 } }",
                                    true, {.max_pieces = 2});
  EXPECT_FALSE(result.stats.loops[0].guards[0].taken);
  EXPECT_TRUE(result.stats.loops[0].guards[1].taken);
  EXPECT_EQ(result.stats.loops[0].pieces, (arith::Intervals{{0, 8}, {9, 11}}));
}

// Extents around multiples, and primes; every alignment of the tile.
TEST(LoopPartitionTest, EdgeExtents) {
  for (int size : {0, 1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17}) {
    for (int tile : {1, 3, 4, 5, 16}) {
      const int tiles = (size + tile - 1) / tile;
      for (const char* outer : {"for (i, 0, ", "thread (tid, "}) {
        const std::string var = outer[0] == 'f' ? "i" : "tid";
        const Result result =
            Partitioned(kParams, StrCat(outer, tiles, ") { for (j, 0, ", tile, ") { if (", var,
                                        " * ", tile, " + j < ", size, ") { B[", var, " * ", tile,
                                        " + j] = A[", var, " * ", tile, " + j] } } }"));
        if (outer[0] == 'f') {
          EXPECT_THAT(result.text, Not(HasSubstr("if"))) << size << " by " << tile;
        }
      }
    }
  }
}

// What stands under "no_partition" stays, and splits no loop around; what stands beside it does.
TEST(LoopPartitionTest, NoPartition) {
  const std::string bounded =
      "for (j, 0, min(4, 14 - i * 4)) { if (i < 3) { "
      "B[i * 4 + j] = A[i * 4 + j] } } ";
  for (const std::string loop : {"for (i, 0, 4) { ", "thread (i = \"tid\", 4) { "}) {
    EXPECT_EQ(
        Partitioned(kParams, loop + "pragma \"no_partition\" { " + bounded + "} }", false).text,
        Printed(kParams, loop + bounded + "}"));
    EXPECT_NE(Partitioned(kParams, loop + bounded + "}", false).text,
              Printed(kParams, loop + bounded + "}"));
  }
  EXPECT_THAT(Partitioned(kParams, "for (i, 0, 4) { pragma \"no_partition\" { " + bounded +
                                       "} if (i < 2) { B[60] = A[i] } }")
                  .text,
              HasSubstr("for (i, 2, 2)"));
}

// Where a piece's bounds are differences, those of unsigned and of narrow variables must not wrap either: with n < 3
// the second loop of the first program had 2^32 - 3 + n iterations.
TEST(LoopPartitionTest, VariablesOfEveryTypeWithSymbolicBounds) {
  for (const char* type : {"u8", "i8", "u16", "i16", "u32", "i32", "i64"}) {
    const std::vector<std::string> loops = {
        StrCat("for (i: ", type, ", 0, n) { if (i < 3) { A[i] = 2 } else { A[i] = 7 } }"),
        StrCat("for (i: ", type, ", min(n, 9), 7) { if (i < 12) { A[i & 63] = 2 } else ",
               "{ A[i & 63] = 7 } }"),
        StrCat("for (i: ", type, ", 0, min(n, 9)) { if (i < m) { A[i] = 2 } else { A[i] = 7 } }"),
        StrCat("for (i: ", type,
               ", 2, min(n, 9)) { if (i * 2 < m) { A[i] = 2 } else { A[i] = 7 } }"),
    };
    const ir::Type of = *ir::ParseType(type);
    for (const std::string& loop : loops) {
      const ir::Function before =
          ParseProgram(StrCat("func f(A: i32[64], n: ", type, ", m: ", type, ") { ", loop, " }"));
      ir::Function after = before;
      ASSERT_TRUE(LoopPartition(after).ok());
      ir::Function simple = after;
      ASSERT_TRUE(Simplify(simple).ok());
      for (const int64_t n : {ir::LeastInt(of), ir::LeastInt(of) + 1, int64_t{-1}, int64_t{0},
                              int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}}) {
        if (!ir::FitsInt(of, n)) continue;
        for (const ir::Function& f : {after, simple}) {
          ASSERT_EQ(CompareMeaning(before, f, n), "") << ir::Print(before) << ir::Print(f);
        }
      }
      // Of i64 no ranges tell that `max(n, 3) - 3` fits: its loops are left.
      if (loop == loops[0] && of != ir::Type::kI64) {
        EXPECT_THAT(ir::Print(simple), Not(HasSubstr("if ("))) << type;
      }
    }
  }
}

TEST(LoopPartitionTest, GuardsAtTheEndsOfI64) {
  const Result low = Partitioned("A: i32[8]",
                                 "for (i: i64, -9223372036854775808, 8) {"
                                 " if (i < -9223372036854775803) {"
                                 " A[i - -9223372036854775808] = 1 } else {"
                                 " A[i - -9223372036854775808] = 2 } }");
  EXPECT_THAT(low.text, HasSubstr("-9223372036854775803, 3)"));
  const Result high = Partitioned("A: i32[8]",
                                  "for (i: i64, 9223372036854775800, 8) {"
                                  " if (i < 9223372036854775803) {"
                                  " A[i - 9223372036854775800] = 1 } else {"
                                  " A[i - 9223372036854775800] = 2 } }");
  EXPECT_THAT(high.text, HasSubstr("9223372036854775803, 5)"));
}

// What stands in an arm of a select has not been evaluated, so nothing follows from its sums.
TEST(LoopPartitionTest, ArmsOfSelectsInBoundsAreNoFacts) {
  const ir::Function before = ParseProgram(
      "func f(A: i32[64], n: i32) { for (i, 0, select(n < 5, n + 2147483642, 7) % 9) {"
      " if (i + n < 9) { A[i] = 1 } else { A[i] = 2 } } }");
  ir::Function after = before;
  ASSERT_TRUE(LoopPartition(after).ok());
  ASSERT_TRUE(Simplify(after).ok());
  for (const int64_t n : {0, 3, 5, 6, 8, 9, 100}) {
    EXPECT_EQ(CompareMeaning(before, after, n), "") << ir::Print(after);
  }
}

TEST(LoopPartitionTest, RandomAffinePrograms) {
  int changed_programs = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    // Every second one with parameters, bounds by min and max, and more ifs.
    const bool symbolic = seed % 2 == 0;
    const ir::Function before = RandomAffineProgram(
        seed, {.max_depth = 5, .symbolic = symbolic, .symbolic_bounds = symbolic && seed % 4 == 0});
    ir::Function after = before;
    LoopPartitionOptions options;
    if (seed % 3 == 0) options = {.max_pieces = 3, .max_nest_pieces = 5};
    const absl::StatusOr<bool> changed = LoopPartition(after, options);
    ASSERT_TRUE(changed.ok());
    ASSERT_EQ(*changed, before.body != after.body);
    changed_programs += *changed;
    ir::Function simple = after;
    ASSERT_TRUE(Simplify(simple).ok());
    for (int64_t n : {-2, 0, 3, 6}) {
      ASSERT_EQ(CompareMeaning(before, after, n), "") << "seed " << seed << "\n"
                                                      << ir::Print(before) << ir::Print(after);
      ASSERT_EQ(CompareMeaning(before, simple, n), "") << "seed " << seed << "\n"
                                                       << ir::Print(before) << ir::Print(simple);
    }
  }
  EXPECT_GT(changed_programs, 250);
}

TEST(LoopPartitionTest, RandomPrograms) {
  int stopped = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const ir::Function before = ir::RandomProgram(
        seed, {.may_stop = seed % 2 == 0, .extern_calls = seed % 4 > 1, .edges = seed % 4 == 1});
    ir::Function after = before;
    ASSERT_TRUE(LoopPartition(after).ok());
    bool stops = false;
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, after, seed, &stops), "")
        << "seed " << seed << "\n"
        << ir::Print(before) << ir::Print(after);
    stopped += stops;
  }
  // Every second program may stop; most run to their end.
  EXPECT_LT(stopped, 200 / 3);
}

// All threads must reach a wait together, so that its nest is not split by thread. The instruction's row
// in the table says that it waits, not its name.
TEST(LoopPartitionTest, NestsWithWaitsStayWholeForAllThreads) {
  const auto partitioned = [](std::string_view call) {
    ir::Function f = ParseProgram(
        StrCat("func f(A: f16[512] in, B: f16[512] out) { thread (tid, 4) {"
               " allocate X: f16[64] @nmem for (i, 0, 2) { if (tid * 2 + i < 7) {"
               " memcpy.f16.nmem.gmem.async(&X[0], &A[tid * 128 + i * 64], 64, 1, 0, 0) } ",
               call, " } } }"));
    LoopPartitionOptions options;
    options.target = &TestTarget("unit");
    EXPECT_TRUE(LoopPartition(f, options).ok());
    return ir::Print(f);
  };
  EXPECT_THAT(partitioned(""), HasSubstr("if (tid < 3)"));
  for (const char* wait : {"sync.io()", "sync()", "barrier.cluster()"}) {
    EXPECT_THAT(partitioned(wait), Not(HasSubstr("if (tid < 3)"))) << wait;
  }
}

// Random program 916747: what a float decides has no range of integers.
TEST(LoopPartitionTest, FloatsInConditionsOfBorders) {
  const ir::Function before = ParseProgram(
      "func f(n: i32, x: f32, C: i32[13]) { for (i, 0, n) { let t: i32 = 0 - i"
      " if (0 <= select(x <= 65504.0, n, 9) + t) { C[0] = C[0] + 1 } } }");
  ir::Function after = before;
  ASSERT_TRUE(LoopPartition(after).ok());
  for (int64_t n : {0, 1, 9, 12})
    EXPECT_EQ(CompareMeaning(before, after, n), "") << ir::Print(after);
}

}  // namespace
}  // namespace polynao
