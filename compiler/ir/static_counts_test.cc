#include "compiler/ir/static_counts.h"

#include <string>

#include "base/check.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
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

std::string TextOfCounts(std::string_view body) {
  const Function f = Parse("func f(B: i32[99] out, n: i32) {\n" + std::string(body) + "\n}\n");
  const absl::StatusOr<StaticCounts> counts = CountStatically(f, {{f.params[1].var, 2}});
  POLYNAO_CHECK(counts.ok()) << counts.status();
  return Text(counts->counts) + (counts->exact ? "" : "not exact");
}

// What stands around loops over threads, all threads of the block execute.
TEST(StaticCountsTest, ThreadsOfGpu) {
  EXPECT_EQ(TextOfCounts("thread (blockIdx.x, 5) { let a: i32 = blockIdx.x * 2 for (k, 0, 3) {"
                         " thread (threadIdx.x, 4) { B[a + threadIdx.x] = k } } }"),
            "stores 60 int_add 60 int_mul 20 branches 80 iterations 60 ");
  // One iteration more by each of the 20 threads: the same without the let.
  EXPECT_EQ(TextOfCounts("thread (blockIdx.x, 5) { thread (threadIdx.x, 4) { let a: i32 = "
                         "blockIdx.x * 2 for (k, 0, 3) { B[a + threadIdx.x] = k } } }"),
            "stores 60 int_add 60 int_mul 20 branches 80 iterations 60 ");
  // Beside them it is one thread of the axes that no loop around is over.
  EXPECT_EQ(TextOfCounts("thread (blockIdx.x, 5) { B[blockIdx.x] = n * 2"
                         " thread (threadIdx.x, 4) { B[50] = 1 } }"),
            "stores 25 int_mul 5 ");
  // Of two axes; the second region has fewer threads than the block.
  EXPECT_EQ(TextOfCounts("thread (blockIdx.x, 2) { if (blockIdx.x < n) { thread (threadIdx.y, 3) {"
                         " let a: i32 = threadIdx.y * 2 thread (threadIdx.x, 4) { B[a] = 1 } }"
                         " let c: i32 = n / 3 thread (threadIdx.x, 2) { B[c] = 2 } } }"),
            "stores 28 int_mul 24 int_div 24 int_compare 24 branches 24 ");
  // Two kernels, the second without blocks; fetching together inside of all threads.
  EXPECT_EQ(TextOfCounts("thread (blockIdx.x, 2) { let a: i32 = n * 2 thread (threadIdx.x, 4) {"
                         " B[a] = 1 } } for (k, 0, 3) { thread (threadIdx.x, 8) { B[k] = 1"
                         " thread (threadIdx.x, 8) { B[k] = n + n } } }"),
            "stores 224 int_add 192 int_mul 8 branches 32 iterations 24 ");
  // The accelerator's cores are processors of their own.
  EXPECT_EQ(TextOfCounts("thread (cid, 2) { let a: i32 = cid * 2 thread (tid, 4) { B[a] = 1 } }"),
            "stores 8 int_mul 2 branches 13 iterations 10 ");
}

TEST(StaticCountsTest, Errors) {
  const Function f = Parse(
      "func f(B: i32[9] out, n: i32) { for (i, 0, n) { if (i % 2 == 0) { B[i % 9] = 1 } } }\n");
  EXPECT_THAT(CountStatically(f).status().message(), testing::HasSubstr("a value of 'n'"));
  const IntValues many = {{f.params[1].var, 1000000}};
  EXPECT_THAT(CountStatically(f, many, 1000).status().message(),
              testing::HasSubstr("more than 1000 steps"));
}

// Where conditions do not depend on memory, and nothing is a GPU's, the counts are the interpreter's.
TEST(StaticCountsTest, RandomPrograms) {
  int exact = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Function f = RandomProgram(
        seed, {.stores = 3, .expression_depth = 2, .all_types = false, .max_iterations = 300});
    const bool is_for_gpu = AnyStmt(f.body, [](Stmt s) {
      return s.Is(StmtKind::kFor) &&
             (s.name().starts_with("threadIdx.") || s.name().starts_with("blockIdx."));
    });
    if (is_for_gpu) continue;
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
