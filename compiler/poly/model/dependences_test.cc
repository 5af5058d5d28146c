#include "compiler/poly/model/dependences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "compiler/ir/text.h"
#include "compiler/poly/model/extract.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

struct Found {
  ir::Function function;
  Extraction extraction;
  Dependences dependences;
  const Scop& scop() const { return extraction.scops.at(0); }
};

Found Find(std::string_view text, const DependenceOptions& options = {}) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  absl::StatusOr<Extraction> extraction = Extract(*function);
  EXPECT_TRUE(extraction.ok()) << extraction.status();
  Dependences dependences = ComputeDependences(extraction->scops.at(0), options);
  return Found{*function, *std::move(extraction), std::move(dependences)};
}

std::string Differs(const Scop& scop, const isl::union_map& map, const std::string& expected) {
  const isl::union_map wanted(scop.isl->ctx(), expected);
  return map.is_equal(wanted.intersect_params(scop.context))
             ? ""
             : StrCat("expected ", expected, ", found ", Text(map));
}

// The flow goes from the last store, not from all before it.
TEST(DependencesTest, FlowIsValueBased) {
  const Found f = Find(
      "func f(A: f32[20], B: f32[20] out) {\n"
      "  for (i, 0, 10) { A[i] = 1.0 }\n"
      "  for (i, 0, 10) { A[i] = 2.0 }\n"
      "  for (i, 0, 12) { B[i] = A[i] }\n"
      "}\n");
  EXPECT_EQ(Differs(f.scop(), f.dependences.flow, "{ S1[i] -> S2[i] : 0 <= i < 10 }"), "");
  EXPECT_EQ(Differs(f.scop(), f.dependences.output, "{ S0[i] -> S1[i] : 0 <= i < 10 }"), "");
  EXPECT_EQ(Differs(f.scop(), f.dependences.anti, "{ }"), "");
  EXPECT_EQ(Differs(f.scop(), f.dependences.live_in, "{ S2[i] -> A[i] : 10 <= i < 12 }"), "");
  EXPECT_EQ(Differs(f.scop(), f.dependences.live_out,
                    "{ S1[i] -> A[i] : 0 <= i < 10; S2[i] -> B[i] : 0 <= i < 12 }"),
            "");
}

// The next store of each element alone, where isl 0.25 crashes on kills (random_run, seed 22492).
TEST(DependencesTest, AntiOfPeriodicStores) {
  const Found f = Find(
      "func f(A: u8[2], n: i32) {\n"
      "  A[0] = 0\n"
      "  for (i, n, 4) { A[i % 2] = A[0] }\n"
      "}\n");
  EXPECT_EQ(
      Differs(f.scop(), f.dependences.anti,
              "[n] -> { S1[i] -> S1[j] : j mod 2 = 0 and n <= i < j <= i + 2 and j < n + 4 }"),
      "");
}

// A store that may not happen kills nothing.
TEST(DependencesTest, MayWrites) {
  const Found f = Find(
      "func f(A: f32[10], B: f32[10], C: f32[10] in) {\n"
      "  for (i, 0, 10) { A[i] = 1.0 }\n"
      "  for (i, 0, 10) { if (C[i] < 0.0) { A[i] = 2.0 } }\n"
      "  for (i, 0, 10) { B[i] = A[i] }\n"
      "}\n");
  EXPECT_EQ(Differs(f.scop(), f.dependences.flow,
                    "{ S0[i] -> S2[i] : 0 <= i < 10; S1[i] -> S2[i] : 0 <= i < 10 }"),
            "");
}

TEST(DependencesTest, AntiAndOutput) {
  const Found f = Find(
      "func f(A: f32[n], s: f32[1], n: i32) {\n"
      "  for (i, 0, n - 1) { A[i] = A[i + 1] s[0] = A[i] }\n"
      "}\n");
  EXPECT_EQ(Differs(f.scop(), f.dependences.flow, "[n] -> { S0[i] -> S1[i] : 0 <= i < n - 1 }"),
            "");
  EXPECT_EQ(Differs(f.scop(), f.dependences.anti, "[n] -> { S0[i] -> S0[i + 1] : 0 <= i < n - 2 }"),
            "");
  EXPECT_EQ(
      Differs(f.scop(), f.dependences.output, "[n] -> { S1[i] -> S1[i + 1] : 0 <= i < n - 2 }"),
      "");
}

// Updates of integers commute; those of floats do if the caller says so. What reads the sum waits for
// all updates, and all of them for the first value.
TEST(DependencesTest, Reductions) {
  const std::string text =
      "func f(s: T[1], x: T[9] in, y: T[1] out) {\n"
      "  s[0] = zero\n"
      "  for (i, 0, 9) { s[0] = s[0] + x[i] }\n"
      "  y[0] = s[0]\n"
      "}\n";
  const auto with = [&](std::string type, std::string zero) {
    std::string t = text;
    for (size_t at; (at = t.find("T[")) != std::string::npos;) t.replace(at, 1, type);
    t.replace(t.find("zero"), 4, zero);
    return t;
  };
  const std::string ordered = "{ S1[i] -> S1[i + 1] : 0 <= i < 8 }";
  const std::string free_flow =
      "{ S0[] -> S1[i] : 0 <= i < 9; S0[] -> S2[]; S1[i] -> S2[] : 0 <= i < 9 }";
  {
    const Found f = Find(with("i32", "0"));
    EXPECT_EQ(Differs(f.scop(), f.dependences.flow, free_flow), "");
    EXPECT_FALSE(f.dependences.reduction.is_empty());
    EXPECT_TRUE(isl::union_map(f.scop().isl->ctx(), ordered).is_subset(f.dependences.reduction));
  }
  {
    const Found f = Find(with("f32", "0.0"));
    EXPECT_TRUE(f.dependences.reduction.is_empty());
    EXPECT_EQ(Differs(f.scop(), f.dependences.flow,
                      "{ S0[] -> S1[0]; S1[i] -> S1[i + 1] : 0 <= i < 8; S1[8] -> S2[] }"),
              "");
  }
  {
    const Found f = Find(with("f32", "0.0"), {.reassociate_floats = true});
    EXPECT_EQ(Differs(f.scop(), f.dependences.flow, free_flow), "");
  }
}

TEST(DependencesTest, PrivateBuffers) {
  const Found f = Find(
      "func f(A: f32[n], n: i32) {\n"
      "  for (i, 0, n) { allocate t: f32[] t[] = A[i] A[i] = t[] * 2.0 }\n"
      "}\n");
  EXPECT_EQ(Differs(f.scop(), f.dependences.flow, "[n] -> { S0[i] -> S1[i] : 0 <= i < n }"), "");
  EXPECT_EQ(Differs(f.scop(), f.dependences.output, "{ }"), "");
  ASSERT_EQ(f.dependences.private_order.size(), 1u);
  EXPECT_EQ(Differs(f.scop(), f.dependences.private_order[0].order,
                    "[n] -> { S0[i] -> S0[i + 1] : 0 <= i < n - 1; S1[i] -> S0[i + 1] : 0 <= i < n "
                    "- 1 }"),
            "");
}

TEST(DependencesTest, FindsAnInstanceOfAViolation) {
  const Found f =
      Find("func f(A: f32[n], n: i32) { for (i, 1, n - 1) { A[i] = A[i - 1] + 1.0 } }\n");
  const isl::schedule same = f.scop().schedule;
  EXPECT_EQ(FindViolation(f.scop(), f.dependences, same), "");
  const isl::schedule reversed(
      f.scop().isl->ctx(),
      "{ domain: \"[n] -> { S0[i] : 0 < i < n }\", child: { schedule: \"[{ S0[i] -> [-i] }]\" } }");
  EXPECT_THAT(
      FindViolation(f.scop(), f.dependences, reversed),
      testing::MatchesRegex("a flow dependence from S0\\[[0-9]+\\] at time \\[-[0-9]+\\] to "
                            "S0\\[[0-9]+\\] at time \\[-[0-9]+\\] on A\\[[0-9]+\\] where n = "
                            "[0-9]+"));
}

// An update may read other elements of what it updates: those are dependences, and the updates still may swap.
TEST(DependencesTest, AnUpdateThatReadsOtherElements) {
  const Found f = Find(
      "func f(x: i32[n], L: i32[n, n] in, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, i) { x[i] = x[i] - L[i, j] * x[j] } }\n"
      "}\n");
  ASSERT_TRUE(f.scop().statements[0].reduction.has_value());
  EXPECT_EQ(Differs(f.scop(), f.dependences.flow,
                    "[n] -> { S0[i, j] -> S0[i1, j1 = i] : 0 <= j < i < i1 < n }"),
            "");
  EXPECT_FALSE(f.dependences.reduction.is_empty());
  // Here the other element may be the same one.
  const Found g = Find(
      "func f(x: i32[n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, i + 1) { x[i] = x[i] + x[j] } }\n"
      "}\n");
  EXPECT_FALSE(g.scop().statements[0].reduction.has_value());
}

}  // namespace
}  // namespace polynao::poly
