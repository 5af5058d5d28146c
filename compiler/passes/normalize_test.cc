#include "compiler/passes/normalize.h"

#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

// Of which i and j, k inside of it, are loop variables.
constexpr char kParams[] =
    "A: f32[99] in, B: f32[99], C: i32[99], n: i32, m: i32, x: f32[n] in, y: f32[m] in";

std::string Text(const std::string& body) {
  return StrCat("func f(", kParams, ") {\n", body, "}\n");
}

std::string Printed(const std::string& body) { return ir::Print(ParseOrDie(Text(body))); }

// `runs`: false for functions that stop on all arguments.
std::string After(const std::string& body, const NormalizeOptions& options = {}, bool runs = true) {
  const auto pass = [&](ir::Function& f) { return Normalize(f, TestTarget(), options); };
  const std::string once = RunPass(Text(body), pass, TestTarget(), runs);
  EXPECT_EQ(RunPass(once, pass, TestTarget(), runs), once) << "a second run";
  return once;
}

// In a nest of three loops; `store` uses i, j and k.
std::string Nest(const std::string& store) {
  return StrCat("for (i, 0, 4) { for (j, 0, 5) { for (k, 0, 6) { ", store, " } } }");
}

void ExpectNest(const std::string& before, const std::string& after) {
  EXPECT_EQ(After(Nest(before)), Printed(Nest(after))) << before;
}

// The index of the paper's introduction.
TEST(NormalizeTest, SumsInOrderOfRank) {
  ExpectNest("B[k + i * 4 + j * 2] = 0.0", "B[i * 4 + j * 2 + k] = 0.0");
  ExpectNest("B[k - 1 + (j + (i + 2))] = 0.0", "B[i - 1 + 2 + j + k] = 0.0");
  ExpectNest("B[30 - k - i] = 0.0", "B[30 - i - k] = 0.0");
  ExpectNest("B[30 - (k - (j + i)) - j] = 0.0", "B[i + 30 + (j - j) - k] = 0.0");
  ExpectNest("C[k - j + 20 - (i + j * 2)] = 0", "C[20 - i - (j + j * 2) + k] = 0");
  ExpectNest("C[i] = k * j * n * 3", "C[i] = n * 3 * j * k");
  ExpectNest("C[i] = min(min(k, 7), min(j, i))", "C[i] = min(min(min(i, 7), j), k)");
  ExpectNest("C[i] = max(k, max(n, j))", "C[i] = max(max(n, j), k)");
}

TEST(NormalizeTest, RanksOfLetsAndLoads) {
  const std::string let = "let t = i * 2 C[k] = ";
  ExpectNest(let + "k + j + t", let + "t + j + k");
  // What is only read ranks by its index, what is written above all.
  ExpectNest("B[i] = select(A[k] < 1.0 && A[i] < 1.0, 1.0, 2.0)",
             "B[i] = select(A[i] < 1.0 && A[k] < 1.0, 1.0, 2.0)");
  ExpectNest("C[k] = C[i] + k + C[j] + j", "C[k] = j + k + (C[i] + C[j])");
}

// As values, not as indices: back ends look for sum + a * b.
TEST(NormalizeTest, TwoValuesStay) {
  const std::string body = Nest("C[k] = C[k] + C[j] * C[i]");
  EXPECT_EQ(After(body), Printed(body));
  ExpectNest("B[k + i] = 0.0", "B[i + k] = 0.0");
}

TEST(NormalizeTest, GroupsAreSubtrees) {
  ExpectNest("C[i + j * 2 + k * 3] = k + j + k * 2 + j * 2 + i",
             "C[i + j * 2 + k * 3] = (i + (j + j * 2)) + (k + k * 2)");
  ExpectNest("if (k < 3 || j < 2 || k < m || i < n) { B[k] = 0.0 }",
             "if (((i < n) || j < 2) || (k < 3 || k < m)) { B[k] = 0.0 }");
}

TEST(NormalizeTest, FloatsOnlyOnDemand) {
  const std::string before = Nest("B[k] = A[k] + A[i] + A[j] * 2.0 + A[0]");
  EXPECT_EQ(After(before), Printed(before));
  ir::Function function = ParseOrDie(Text(before));
  EXPECT_TRUE(*Normalize(function, TestTarget(), {.floats = true}));
  EXPECT_EQ(ir::Print(function), Printed(Nest("B[k] = A[0] + A[i] + A[j] * 2.0 + A[k]")));
  // min and max of floats depend on the order even so: of NaNs and of zeros.
  const std::string minimum = Nest("B[k] = min(A[k], min(A[i], A[j]))");
  EXPECT_EQ(After(minimum, {.floats = true}), Printed(minimum));
}

// Twins of the above that must stay: the other order could stop the program.
TEST(NormalizeTest, OrdersThatCouldOverflowStay) {
  // n * 2000000000 - m * 2000000000 may leave i32 where the whole does not.
  const std::string index = Nest("C[k * 2000000000 - n * 2000000000 + m * 2000000000] = 0");
  EXPECT_EQ(After(index, {}, /*runs=*/false), Printed(index));
  // As data it wraps, and may.
  ExpectNest("C[k] = k * 2000000000 - n * 2000000000 + m * 2000000000",
             "C[k] = m * 2000000000 - n * 2000000000 + k * 2000000000");
  // Nothing is subtracted, and n and m are positive inside of the loops: no sum on the way exceeds the
  // whole.
  const auto loops = [](const std::string& store) {
    return StrCat("for (u, 0, n) { for (v, 0, m) { ", Nest(store), " } }");
  };
  EXPECT_EQ(After(loops("if (k + j * n + m < 9) { B[k] = 0.0 }")),
            Printed(loops("if (m + j * n + k < 9) { B[k] = 0.0 }")));
  const std::string extents = Nest("if (k + j * n + m < 9) { B[k] = 0.0 }");
  EXPECT_EQ(After(extents), Printed(extents));
  const std::string condition = Nest("if (k - j * n + m < 9) { B[k] = 0.0 }");
  EXPECT_EQ(After(condition), Printed(condition));
}

TEST(NormalizeTest, GuardsStayInFrontOfWhatTheyGuard) {
  const std::vector<std::string> stay = {
      "if (k < n && x[k] < 1.0) { B[k] = 0.0 }",
      // A load of lower rank than its guard.
      "if (j + k < 1 && x[j] < 1.0) { B[k] = 0.0 }",
      "if (k == n || 7 / (n - k) < 3) { B[k] = 0.0 }",
      "if (k < 0 && 7 / n < 3) { B[k] = 0.0 }",
  };
  for (const std::string& store : stay) ExpectNest(store, store);
  // What is in bounds moves, and so does what needs no guard, to in front of a guard.
  ExpectNest("if (k < n && A[i] < 1.0) { B[k] = 0.0 }", "if (A[i] < 1.0 && k < n) { B[k] = 0.0 }");
  ExpectNest("if (k < n && x[k] < 1.0 && i < 2) { B[k] = 0.0 }",
             "if (i < 2 && (k < n && x[k] < 1.0)) { B[k] = 0.0 }");
}

TEST(NormalizeTest, NestedSelectsCollapse) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"i < n ? (j < m ? 5 : k) : k", "i < n && j < m ? 5 : k"},
      {"i < n ? (j < m ? k : 5) : k", "i < n && m <= j ? 5 : k"},
      {"i < n ? k : (j < m ? k : 5)", "i < n || j < m ? k : 5"},
      {"i < n ? k : (j < m ? 5 : k)", "i < n || m <= j ? k : 5"},
      {"i < n ? (j < m ? (k < 2 ? 5 : 4) : 4) : 4", "i < n && j < m && k < 2 ? 5 : 4"},
      {"A[k] < 1.0 ? k : (A[j] < 2.0 ? 5 : k)", "!(A[j] < 2.0) || A[k] < 1.0 ? k : 5"},
      {"i < n ? k + j + n : j + n + k", "n + j + k"},
  };
  for (const auto& [before, after] : cases) {
    ExpectNest(StrCat("C[k] = ", before), StrCat("C[k] = ", after));
  }
  for (const std::string stays :
       {"i < n ? (j < m ? 5 : k) : j", "i < n ? (j < m ? 5 : 4) : (j < m ? 3 : 2)"}) {
    ExpectNest(StrCat("C[k] = ", stays), StrCat("C[k] = ", stays));
  }
}

TEST(NormalizeTest, NestedIfs) {
  ExpectNest("if (k < n) { if (i < m) { B[k] = 0.0 } }", "if (i < m && k < n) { B[k] = 0.0 }");
  ExpectNest("if (k < n) { if (x[k] < 1.0) { if (i < m) { B[k] = 0.0 } } }",
             "if (i < m && (k < n && x[k] < 1.0)) { B[k] = 0.0 }");
  for (const std::string stays : {"if (k < n) { if (i < m) { B[k] = 0.0 } else { B[k] = 1.0 } }",
                                  "if (k < n) { if (i < m) { B[k] = 0.0 } } else { B[k] = 1.0 }",
                                  "if (k < n) { if (i < m) { B[k] = 0.0 } C[k] = 1 }"}) {
    ExpectNest(stays, stays);
  }
}

TEST(NormalizeTest, NeighbouringIfsAreJoined) {
  ExpectNest(
      "if (k < n) { B[k] = 0.0 } if (k < n) { C[k] = 1 } else { C[k] = 2 } if (k < n) { B[j] = 1.0 "
      "}",
      "if (k < n) { B[k] = 0.0 C[k] = 1 B[j] = 1.0 } else { C[k] = 2 }");
  // Conditions that are the same once they are in order, and ifs that become neighbours inside.
  ExpectNest(
      "if (k + j < n) { if (i < 2) { B[k] = 0.0 } C[k] = 1 }"
      "if (j + k < n) { C[j] = 1 if (i < 2) { C[i] = 1 } }"
      "if (j + k < n) { if (i < 2) { C[0] = 1 } }",
      "if (j + k < n) { if (i < 2) { B[k] = 0.0 } C[k] = 1 C[j] = 1 if (i < 2) { C[i] = 1 } }"
      "if (i < 2 && j + k < n) { C[0] = 1 }");
  ExpectNest(
      "if (j < n) { C[0] = 3 if (i < 2) { B[k] = 0.0 } }"
      "if (j < n) { if (i < 2) { C[0] = 1 } C[1] = 4 }",
      "if (j < n) { C[0] = 3 if (i < 2) { B[k] = 0.0 C[0] = 1 } C[1] = 4 }");
  for (const std::string stays :
       {// The first changes what the condition loads.
        "if (C[k] < 3) { C[k] = 4 } if (C[k] < 3) { B[k] = 0.0 }",
        "if (C[k] < 3) { B[k] = 4.0 } else { C[j] = 4 } if (C[k] < 3) { B[k] = 0.0 }",
        // Something stands between, or the conditions differ.
        "if (k < n) { B[k] = 0.0 } C[0] = 1 if (k < n) { B[k] = 1.0 }",
        "if (k < n) { B[k] = 0.0 } if (k <= n) { B[k] = 1.0 }"}) {
    ExpectNest(stays, stays);
  }
  // Aliases count as the same memory.
  const std::string text =
      "@may_alias(\"A\", \"B\")\n"
      "func f(A: f32[9], B: f32[9]) {\n"
      "  if (A[0] < 1.0) {\n    B[1] = 1.0\n  }\n"
      "  if (A[0] < 1.0) {\n    B[2] = 1.0\n  }\n"
      "}\n";
  EXPECT_EQ(RunPass(
                text, [](ir::Function& f) { return Normalize(f, TestTarget()); }, TestTarget()),
            text);
}

TEST(NormalizeTest, Stats) {
  ir::Function function =
      ParseOrDie(Text(Nest("if (k < n) { if (i < m) { C[k + i] = i < n ? (j < m ? 5 : 4) : 4 } }"
                           "if (j < n) { B[0] = 1.0 } if (j < n) { B[1] = 1.0 }")));
  NormalizeStats stats;
  EXPECT_TRUE(*Normalize(function, TestTarget(), {}, &stats));
  EXPECT_EQ(stats.regrouped, 2);
  EXPECT_EQ(stats.collapsed, 1);
  EXPECT_EQ(stats.nested_ifs, 1);
  EXPECT_EQ(stats.joined_ifs, 1);
}

// Programs of every kind of statement and expression keep their meaning, and a second run changes
// nothing.
TEST(NormalizeTest, RandomPrograms) {
  int changed_programs = 0;
  const int cases = 1000;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    const ir::Function before = ir::RandomProgram(seed, {.max_iterations = 200});
    ir::Function after = before;
    const absl::StatusOr<bool> changed = Normalize(after, TestTarget());
    ASSERT_TRUE(changed.ok());
    changed_programs += *changed;
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, after, seed), "")
        << "seed " << seed << "\n"
        << ir::Print(before) << ir::Print(after);
    ir::Function again = after;
    EXPECT_FALSE(*Normalize(again, TestTarget())) << "seed " << seed << "\n"
                                                  << ir::Print(after) << ir::Print(again);
  }
  EXPECT_GT(changed_programs, cases / 4);
}

}  // namespace
}  // namespace polynao
