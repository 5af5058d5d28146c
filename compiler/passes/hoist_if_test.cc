#include "compiler/passes/hoist_if.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

constexpr char kParams[] =
    "A: f32[99] in, B: f32[99], C: i32[99], D: i32[9], n: i32, m: i32, x: f32[n] in, y: f32[m] in";

std::string Text(const std::string& body) {
  return StrCat("func f(", kParams, ") {\n", body, "}\n");
}

std::string Printed(const std::string& body) { return ir::Print(ParseOrDie(Text(body))); }

void Expect(const std::string& before, const std::string& after,
            const HoistIfOptions& options = {}) {
  const auto pass = [&](ir::Function& f) { return HoistIf(f, TestTarget(), options); };
  const std::string once = RunPass(Text(before), pass, TestTarget());
  EXPECT_EQ(once, Printed(after)) << before;
  EXPECT_EQ(RunPass(once, pass, TestTarget()), once) << "a second run";
}

void ExpectStays(const std::string& body, const HoistIfOptions& options = {}) {
  Expect(body, body, options);
}

TEST(HoistIfTest, AllOfTheBody) {
  Expect("for (i, 0, 9) { for (j, 0, 9) { if (n < m) { C[i + j] = j } } }",
         "if (n < m) { for (i, 0, 9) { for (j, 0, 9) { C[i + j] = j } } }");
  Expect("for (i, 0, n) { if (n < m) { C[i] = i } }", "if (n < m) { for (i, 0, n) { C[i] = i } }");
  // Out of the inner loop only.
  Expect("for (i, 0, 9) { for (j, 0, 9) { if (i < m) { C[i + j] = j } } }",
         "for (i, 0, 9) { if (i < m) { for (j, 0, 9) { C[i + j] = j } } }");
  ExpectStays("for (i, 0, 9) { if (i < m) { C[i] = i } }");
  // Lets and allocations stand in no one's way.
  Expect(
      "for (i, 0, 9) { let t = i * 2 allocate L: i32[2] @local if (n < m) { L[0] = t C[t] = L[0] } "
      "}",
      "if (n < m) { for (i, 0, 9) { let t = i * 2 allocate L: i32[2] @local L[0] = t C[t] = L[0] } "
      "}");
  ExpectStays("for (i, 0, 9) { let t = i * 2 if (t < m) { C[t] = t } }");
}

TEST(HoistIfTest, PartOfTheCondition) {
  Expect("for (i, 0, 9) { for (j, 0, 9) { if (i < m && j < n && n < m) { C[i + j] = j } } }",
         "if (n < m) { for (i, 0, 9) { if (i < m) { for (j, 0, 9) { if (j < n) { C[i + j] = j } } "
         "} } }");
  ExpectStays("for (i, 0, 9) { if (i < m || n < m) { C[i] = i } }");
}

TEST(HoistIfTest, Else) {
  Expect("for (i, 0, 9) { if (n < m && i < n) { C[i] = 1 } else { C[i] = 2 } }",
         "if (n < m) { for (i, 0, 9) { if (i < n) { C[i] = 1 } else { C[i] = 2 } } }"
         " else { for (i, 0, 9) { C[i] = 2 } }");
  const HoistIfOptions no_copies = {.max_growth = 0};
  ExpectStays("for (i, 0, 9) { if (n < m) { C[i] = 1 } else { C[i] = 2 } }", no_copies);
  // Without a copy the limit does not matter.
  Expect("for (i, 0, 9) { if (n < m) { } else { C[i] = 2 } if (n < m) { C[i] = 1 } }",
         "if (n < m) { for (i, 0, 9) { C[i] = 1 } } else { for (i, 0, 9) { C[i] = 2 } }");
}

TEST(HoistIfTest, BesideOtherStatements) {
  Expect(
      "for (i, 0, 9) { C[i] = i if (n < m) { D[0] = i } if (n < m) { D[1] = i } if (n < 3) { D[2] "
      "= 1 } }",
      "if (n < m) {"
      "  if (n < 3) { for (i, 0, 9) { C[i] = i D[0] = i D[1] = i D[2] = 1 } }"
      "  else { for (i, 0, 9) { C[i] = i D[0] = i D[1] = i } } }"
      " else {"
      "  if (n < 3) { for (i, 0, 9) { C[i] = i D[2] = 1 } }"
      "  else { for (i, 0, 9) { C[i] = i } } }");
  // Copies bind their own names, which the verifier wants.
  Expect("for (i, 0, 9) { let t = i + n C[t % 9] = i if (n < m) { for (k, 0, 2) { D[k] = t } } }",
         "if (n < m) { for (i, 0, 9) { let t = i + n C[t % 9] = i for (k, 0, 2) { D[k] = t } } }"
         " else { for (i, 0, 9) { let t = i + n C[t % 9] = i } }");
  ExpectStays("for (i, 0, 9) { C[i] = i if (n < m) { D[0] = i } }", {.max_growth = 3});
}

TEST(HoistIfTest, ConditionsThatLoad) {
  Expect("for (i, 0, 9) { if (A[3] < 1.0) { C[i] = i } }",
         "if (A[3] < 1.0) { for (i, 0, 9) { C[i] = i } }");
  ExpectStays("for (i, 0, 9) { if (C[3] < 1) { C[i] = i } }");
  ExpectStays("for (i, 0, 9) { if (A[i] < 1.0) { C[i] = i } }");
  // Nothing changes it in the inner loop.
  Expect("for (i, 0, 9) { D[0] = i for (j, 0, 9) { if (D[0] < 3) { C[i] = j } } }",
         "for (i, 0, 9) { D[0] = i if (D[0] < 3) { for (j, 0, 9) { C[i] = j } } }");
}

TEST(HoistIfTest, NeverPastWhatGuardsTheCondition) {
  // The loop may be empty.
  ExpectStays("for (i, 0, n) { if (7 / m < 3) { C[i] = i } }");
  ExpectStays("for (i, 0, n) { if (x[0] < 1.0) { B[i] = 0.0 } }");
  ExpectStays("for (i, 0, m) { if (n * 1000000 < 7) { C[i] = i } }");
  // It is not.
  Expect("for (i, 0, 9) { if (7 / (n - 9) < 3) { C[i] = i } }",
         "if (7 / (n - 9) < 3) { for (i, 0, 9) { C[i] = i } }");
  Expect("if (m != 0) { for (i, 0, n) { if (7 / m < 3) { C[i] = i } } }",
         "if (m != 0) { if (7 / m < 3) { for (i, 0, n) { C[i] = i } } }");
  // Guarded by what varies, and by what moves too.
  ExpectStays("for (i, 0, 9) { if (i < n && x[0] < 1.0) { C[i] = i } }");
  ExpectStays("for (i, 0, 9) { if (i < n) { if (7 / n < 3) { C[i] = i } } }");
  Expect("for (i, 0, n) { if (m != 0 && 7 / m < 3) { C[i] = i } }",
         "if (m != 0 && 7 / m < 3) { for (i, 0, n) { C[i] = i } }");
  ExpectStays("for (i, 0, n) { if (i < 3 && 7 / m < 3) { C[i] = i } }");
}

TEST(HoistIfTest, ThreadsAndOtherLoops) {
  ExpectStays("thread (tid, 4) { if (n < m) { C[tid] = 1 } }");
  Expect("thread (tid, 4) { vectorize (i, 0, 8) { if (n < m) { C[tid * 8 + i] = 1 } } }",
         "thread (tid, 4) { if (n < m) { vectorize (i, 0, 8) { C[tid * 8 + i] = 1 } } }");
  Expect("parallel (i, 0, 9) { unroll (j, 0, 2) { if (n < m) { C[i] = j } } }",
         "if (n < m) { parallel (i, 0, 9) { unroll (j, 0, 2) { C[i] = j } } }");
}

// All threads have to meet at the same barrier, not some in each of two copies.
TEST(HoistIfTest, NoCopiesOfBarriers) {
  for (const std::string body : {"for (i, 0, 9) { barrier.cluster() if (n < m) { C[i] = 1 } }",
                                 "for (i, 0, 9) { C[i] = 1 if (n < m) { barrier.cluster() } }"}) {
    EXPECT_EQ(RunPass(
                  Text(body), [](ir::Function& f) { return HoistIf(f, TestTarget()); },
                  TestTarget(), /*same_meaning=*/false),
              Printed(body));
  }
}

// A condition that a let in the loop binds is as good as one in the if.
TEST(HoistIfTest, LetsOfConditions) {
  Expect(
      "for (i, 0, 9) { for (j, 0, 9) { let c = i < m && j < n if (c) { C[i + j] = j } } }",
      "for (i, 0, 9) { if (i < m) { for (j, 0, 9) { let c = j < n if (c) { C[i + j] = j } } } }");
  Expect("for (i, 0, 9) { for (j, 0, 9) { let c = i < m && j < n if (c && n < m) { C[i] = j } } }",
         "if (n < m) { for (i, 0, 9) { if (i < m) { for (j, 0, 9) { let c = j < n"
         " if (c) { C[i] = j } } } } }");
  // Used twice, as cse leaves it. Where it is false, nobody needs it.
  Expect(
      "for (j, 0, 9) { let c = n < m && j < n if (c) { C[j] = 1 } D[0] = j if (c) { B[j] = 1.0 } }",
      "if (n < m) { for (j, 0, 9) { let c = j < n if (c) { C[j] = 1 } D[0] = j"
      " if (c) { B[j] = 1.0 } } } else { for (j, 0, 9) { D[0] = j } }");
  // Used by more than ifs.
  Expect("for (j, 0, 9) { let c = n < m && j < n if (c) { C[j] = 1 } B[j] = select(c, 1.0, 2.0) }",
         "if (n < m) { for (j, 0, 9) { let c = j < n if (c) { C[j] = 1 } B[j] = select(c, 1.0, "
         "2.0) } }"
         " else { for (j, 0, 9) { let c = false B[j] = select(c, 1.0, 2.0) } }");
  // Lets of lets, and a part that two of them share.
  Expect("for (j, 0, 9) { let a = n < m && j < n let b = a && j < m if (b) { C[j] = 1 } }",
         "if (n < m) { for (j, 0, 9) { let a = j < n let b = a && j < m if (b) { C[j] = 1 } } }");
  Expect("for (j, 0, 9) { let a = n < m && j < n let b = n < m && j < m if (a && b) { C[j] = 1 } }",
         "if (n < m) { for (j, 0, 9) { let a = j < n let b = j < m if (a && b) { C[j] = 1 } } }");
  // All of it: what the let binds is known.
  Expect("for (j, 0, 9) { let c = n < m if (c) { C[j] = 1 } }",
         "if (n < m) { for (j, 0, 9) { C[j] = 1 } }");
  // In a let the product wraps; as a condition it would stop the program.
  ExpectStays("for (j, 0, 9) { let c = n * 1000000000 < 7 && j < m if (c) { C[j] = 1 } }");
  // Of what the loop changes.
  ExpectStays("for (j, 0, 9) { let c = C[3] < 7 && j < m if (c) { C[j] = 1 } }");
}

// What is true stays true in the other ifs of that version.
TEST(HoistIfTest, PartsOfOtherConditions) {
  Expect("for (i, 0, 9) { if (n < m && n < 3) { C[i] = i } if (n < m) { D[0] = i } }",
         "if (n < m && n < 3) { for (i, 0, 9) { C[i] = i D[0] = i } }"
         " else { if (n < m) { for (i, 0, 9) { D[0] = i } } }");
}

// One budget for all runs.
TEST(HoistIfTest, Budget) {
  std::string body = "for (i, 0, 9) {";
  for (int k = 1; k <= 12; ++k) StrAppend(&body, " if (n < ", k, ") { C[", k, "] = i }");
  body += " }";
  const auto loops = [](const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("for ("); at != std::string::npos; at = text.find("for (", at + 1)) {
      ++count;
    }
    return count;
  };
  for (const int max_growth : {0, 100, 256, 2000}) {
    const auto pass = [&](ir::Function& f) {
      return HoistIf(f, TestTarget(), {.max_growth = max_growth});
    };
    const std::string once = RunPass(Text(body), pass, TestTarget());
    EXPECT_EQ(RunPass(once, pass, TestTarget()), once) << max_growth;
    EXPECT_GE(loops(once), max_growth >= 256 ? 2u : 1u);
    EXPECT_LT(loops(once), max_growth / 10 + 2u);
  }
}

TEST(HoistIfTest, AfterLicm) {
  ir::Function function = ParseOrDie(
      Text("for (i, 0, 9) { for (j, 0, 9) { let t = i * 2 if (t < n && j < m) { C[t] = j } } }"));
  EXPECT_TRUE(*Licm(function, TestTarget(), {}));
  EXPECT_TRUE(*HoistIf(function, TestTarget()));
  EXPECT_EQ(ir::Print(function),
            Printed("for (i, 0, 9) { let t = i * 2"
                    " if (t < n) { for (j, 0, 9) { if (j < m) { C[t] = j } } } }"));
}

// licm binds conditions of parts that vary in different loops; hoist_if takes each part out of the
// loops it does not vary in all the same.
TEST(HoistIfTest, AsManyBranchesAfterLicm) {
  const std::string body =
      "for (i, 0, 9) { for (j, 0, 9) { for (k, 0, 9) {"
      " if (2 <= i && i < m && 3 <= i && 3 <= j && k < n) { C[i + j + k] = j } } } }";
  const auto branches = [&](bool with_licm) {
    ir::Function f = ParseOrDie(Text(body));
    if (with_licm) {
      const LicmOptions options = {{.threshold = 1, .unrolled_extent = 0}};
      EXPECT_TRUE(*Licm(f, TestTarget(), options));
    }
    EXPECT_TRUE(*HoistIf(f, TestTarget()));
    const ir::RandomArguments arguments(f, 1);
    ir::Counts counts;
    EXPECT_TRUE(ir::Interpret(f, arguments.arguments(), &counts).ok());
    return counts.branches;
  };
  EXPECT_LE(branches(true), branches(false));
}

TEST(HoistIfTest, Stats) {
  ir::Function function =
      ParseOrDie(Text("for (i, 0, 9) { for (j, 0, 8) { if (i < m && n < m) { C[i] = j } } }"));
  HoistIfStats stats;
  EXPECT_TRUE(*HoistIf(function, TestTarget(), {}, &stats));
  EXPECT_EQ(stats.nodes_copied, 0);
  EXPECT_EQ(stats.hoisted, (std::vector<std::string>{"i < m && n < m  out of  for (j, 0, 8) {",
                                                     "n < m  out of  for (i, 0, 9) {"}));
}

TEST(HoistIfTest, RandomPrograms) {
  int changed_programs = 0;
  const int cases = 1000;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    const ir::Function before = ir::RandomProgram(seed, {.max_iterations = 200});
    ir::Function after = before;
    if (seed % 2 == 0) {
      ASSERT_TRUE(Normalize(after, TestTarget()).ok());
      ASSERT_TRUE(Licm(after, TestTarget(), {{.threshold = 1}}).ok());
    }
    const absl::StatusOr<bool> changed = HoistIf(after, TestTarget());
    ASSERT_TRUE(changed.ok());
    changed_programs += *changed;
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, after, seed), "")
        << "seed " << seed << "\n"
        << ir::Print(before) << ir::Print(after);
    ir::Function again = after;
    EXPECT_FALSE(*HoistIf(again, TestTarget())) << "seed " << seed << "\n"
                                                << ir::Print(after) << ir::Print(again);
  }
  EXPECT_GT(changed_programs, cases / 10);
}

}  // namespace
}  // namespace polynao
