#include "compiler/poly/model/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "compiler/ir/text.h"
#include "compiler/poly/tools/describe.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

ir::Function Parse(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// Keeps the function alive, whose context the extraction uses.
struct Found {
  ir::Function function;
  Extraction extraction;
  const Scop& scop(size_t i = 0) const { return extraction.scops.at(i); }
};

Found Find(std::string_view text) {
  Found found{Parse(text), {}};
  absl::StatusOr<Extraction> extraction = Extract(found.function);
  EXPECT_TRUE(extraction.ok()) << extraction.status();
  found.extraction = *std::move(extraction);
  return found;
}

// What is wrong if the set is not `expected` for all parameters that the context allows.
std::string Differs(const Scop& scop, const isl::set& set, const std::string& expected) {
  const isl::set wanted(scop.isl->ctx(), expected);
  const isl::set a = set.intersect_params(scop.context);
  return a.is_equal(wanted.intersect_params(scop.context))
             ? ""
             : StrCat("expected ", expected, ", found ", Text(set));
}

std::string Differs(const Scop& scop, const isl::union_map& map, const std::string& expected) {
  const isl::union_map wanted(scop.isl->ctx(), expected);
  const isl::union_map a = map.intersect_params(scop.context);
  return a.is_equal(wanted.intersect_params(scop.context))
             ? ""
             : StrCat("expected ", expected, ", found ", Text(map));
}

// What is not affine in an index still has affine bounds: the elements between them may be accessed, no others.
TEST(ExtractTest, BoundsOfIndicesFromMemory) {
  const auto found = [](const std::string& index, const std::string& bounds) {
    const Found f = Find(StrCat("func f(A: f64[n], x: i32[n] in, n: i32) {\n  for (i, 0, n) { A[",
                                index, "] = 0.0 }\n}\n"));
    return Differs(f.scop(), f.scop().MayWrites(),
                   StrCat("[n] -> { S0[i] -> A[a] : 0 <= i < n and 0 <= a < n and ", bounds, " }"));
  };
  EXPECT_EQ(found("x[i]", "true"), "");
  EXPECT_EQ(found("max(x[i], i + 1)", "a > i"), "");
  EXPECT_EQ(found("min(x[i], i)", "a <= i"), "");
  EXPECT_EQ(found("max(min(x[i], i + 2), i - 2)", "i - 2 <= a <= i + 2"), "");
  EXPECT_EQ(found("min(max(x[i], i), 5)", "(a >= i or a >= 5) and a <= 5"), "");
  EXPECT_EQ(found("max(x[i], max(x[n - 1 - i], i))", "a >= i"), "");
  EXPECT_EQ(found("i + x[i] % 4", "i <= a <= i + 3"), "");
  EXPECT_EQ(found("i - x[i] % 4", "i - 3 <= a <= i"), "");
  EXPECT_EQ(found("i - max(x[i], 2)", "a <= i - 2"), "");
  EXPECT_EQ(found("max(x[i], i) * 2", "true"), "");
  EXPECT_EQ(found("x[i] % -4", "true"), "");
}

// Also by way of a let inside of an opaque loop, if no arithmetic in its value wraps.
TEST(ExtractTest, BoundsOfLetsInOpaqueLoops) {
  const auto reads = [](const std::string& value) {
    const Found f =
        Find(StrCat("func f(A: f64[n], s: i32[n] in, x: i32[n] in, n: i32, m: i32) {\n"
                    "  for (i, 0, n) { for (k, s[i], 3) { let j: i32 = ",
                    value, " A[j] = 1.0 } }\n}\n"));
    return Text(f.scop().MayWrites());
  };
  const Found f = Find(
      "func f(A: f64[n], s: i32[n] in, x: i32[n] in, n: i32) {\n"
      "  for (i, 0, n) { for (k, s[i], 3) { let j = max(x[k], i + 1) A[j] = 1.0 } }\n}\n");
  ASSERT_EQ(f.scop().statements.size(), 1u);
  EXPECT_TRUE(f.scop().statements[0].is_opaque);
  EXPECT_EQ(Differs(f.scop(), f.scop().MayWrites(), "[n] -> { S0[i] -> A[a] : 0 <= i < a < n }"),
            "");
  // i + 1 never wraps, since n is an i32; i + m may.
  EXPECT_EQ(reads("max(x[k], i + m)"), reads("x[k]"));
  EXPECT_NE(reads("max(x[k], i + 1)"), reads("x[k]"));
}

TEST(ExtractTest, TriangularNestOfTwoStatements) {
  const Found f = Find(
      "func f(A: f64[n, n] in, x: f64[n] out, y: f64[n] in, n: i32) {\n"
      "  for (i, 0, n) {\n"
      "    x[i] = 0.0\n"
      "    for (j, 0, i) { x[i] = x[i] + A[i, j] * y[j] }\n"
      "  }\n"
      "}\n");
  ASSERT_EQ(f.extraction.scops.size(), 1u);
  const Scop& scop = f.scop();
  ASSERT_EQ(scop.statements.size(), 2u);
  EXPECT_EQ(Differs(scop, scop.statements[0].domain, "[n] -> { S0[i] : 0 <= i < n }"), "");
  EXPECT_EQ(Differs(scop, scop.statements[1].domain, "[n] -> { S1[i, j] : 0 <= j < i < n }"), "");
  EXPECT_EQ(Differs(scop, scop.MustWrites(),
                    "[n] -> { S0[i] -> x[i] : 0 <= i < n; S1[i, j] -> x[i] : 0 <= j < i < n }"),
            "");
  EXPECT_EQ(
      Differs(scop, scop.Reads(),
              "[n] -> { S1[i, j] -> x[i] : 0 <= j < i < n; S1[i, j] -> A[i, j] : 0 <= j < i < "
              "n; S1[i, j] -> y[j] : 0 <= j < i < n }"),
      "");
  EXPECT_EQ(Differs(scop, scop.schedule.map().intersect_domain(scop.Domain()),
                    "[n] -> { S0[i] -> [i, 0, 0] : 0 <= i < n;"
                    " S1[i, j] -> [i, 1, j] : 0 <= j < i < n }"),
            "");
  EXPECT_FALSE(scop.statements[0].reduction);
  ASSERT_TRUE(scop.statements[1].reduction);
  EXPECT_FALSE(scop.statements[1].reduction->is_exact);
}

TEST(ExtractTest, AffineTerms) {
  const Found f = Find(
      "@assert(n % 4 == 0)\n"
      "func f(A: i32[100], n: i32, m: i64) {\n"
      "  for (i, 1 - n, n / 4 + 40) {\n"
      "    let twice: i32 = i + i\n"
      "    if (i % 3 == 1 && 0 < i + n || twice < 5) {\n"
      "      A[min(max(twice + 7, 0), 99)] = select(0 < i, i, n)\n"
      "    } else { A[(i % 100 + 50) / 2] = 1 }\n"
      "  }\n"
      "  for (k: i64, m, 7) { A[cast(i64, n) + k] = A[select(k < 3, k, 3)] }\n"
      "}\n");
  ASSERT_EQ(f.extraction.scops.size(), 1u);
  const Scop& scop = f.scop();
  ASSERT_EQ(scop.statements.size(), 3u);
  EXPECT_EQ(Differs(scop, scop.context, "[n] -> { : n mod 4 = 0 }"), "");
  EXPECT_EQ(Differs(scop, scop.statements[0].domain,
                    "[n] -> { S0[i] : 1 - n <= i < 41 - n + floor(n / 4) and"
                    " ((i mod 3 = 1 and i + n > 0) or 2i < 5) }"),
            "");
  EXPECT_EQ(Differs(scop, scop.statements[1].domain.intersect_params(scop.context),
                    "[n] -> { S1[i] : 1 - n <= i < 41 - n + floor(n / 4) and"
                    " not ((i mod 3 = 1 and i + n > 0) or 2i < 5) }"),
            "");
  for (const Statement& s : scop.statements) EXPECT_FALSE(s.is_opaque);
  // The i64 parameter is bounded by a test at run time, and so is the let's sum.
  EXPECT_FALSE(scop.assumed.is_equal(isl::set::universe(scop.assumed.space())));
}

// Data-dependent terms: opaque statements and may-accesses to whole dimensions.
TEST(ExtractTest, WhatIsNotAffine) {
  const Found f = Find(
      "func f(A: f32[n, 8], B: f32[n], at: i32[n] in, n: i32) {\n"
      "  for (i, 0, n) {\n"
      "    A[at[i], 3] = B[i]\n"
      "    for (j, 0, at[i]) { B[i] = B[i] + 1.0 }\n"
      "    if (B[i] < 2.0) { B[i] = 0.0 }\n"
      "    if (at[i] < 2) { for (j, 0, 8) { A[i, j] = 0.0 } }\n"
      "    B[i] = select(i < 3, A[i, 0], B[i])\n"
      "  }\n"
      "}\n");
  ASSERT_EQ(f.extraction.scops.size(), 1u);
  const Scop& scop = f.scop();
  ASSERT_EQ(scop.statements.size(), 5u);
  EXPECT_EQ(Differs(scop, scop.MustWrites(), "[n] -> { S4[i] -> B[i] : 0 <= i < n }"), "");
  EXPECT_EQ(Differs(scop, scop.MayWrites(),
                    "[n] -> { S0[i] -> A[a, 3] : 0 <= i < n and 0 <= a < n;"
                    " S1[i] -> B[b] : 0 <= i < n and b = i; S2[i] -> B[i] : 0 <= i < n;"
                    " S3[i, j] -> A[i, j] : 0 <= i < n and 0 <= j < 8; S4[i] -> B[i] : 0 <= i < n "
                    "}"),
            "");
  EXPECT_TRUE(scop.statements[1].is_opaque);
  EXPECT_TRUE(scop.statements[2].is_opaque);
  EXPECT_EQ(scop.statements[3].iterators.size(), 2u);  // the condition went inside
  ASSERT_EQ(f.extraction.remarks.size(), 3u);
  EXPECT_EQ(f.extraction.remarks[0].ToString(),
            "'for (j, 0, at[i]) {': 'at[i]' is not affine: the loop is one opaque statement");
  EXPECT_THAT(f.extraction.remarks[1].ToString(), HasSubstr("'B[i] < 2.0'"));
}

// i8 arithmetic wraps, so it is not affine; a let of i32 that may wrap is only affine where it does not.
TEST(ExtractTest, WrapAround) {
  const Found f = Find(
      "func f(A: i32[n], n: i32, k: i8) {\n"
      "  for (i, 0, n) {\n"
      "    let t: i32 = i * 1000\n"
      "    A[t / 1000] = t\n"
      "    A[cast(i32, k + i8(1))] = 1\n"
      "  }\n"
      "}\n");
  const Scop& scop = f.scop();
  EXPECT_EQ(Differs(scop, scop.assumed, "[n] -> { : n <= 2147484 }"), "");
  EXPECT_EQ(Differs(scop, scop.statements[0].domain, "[n] -> { S0[i] : 0 <= i < n }"), "");
}

TEST(ExtractTest, LetsAndAllocations) {
  const Found f = Find(
      "func f(A: f32[n], B: f32[n] in, n: i32) {\n"
      "  for (i, 0, n) {\n"
      "    allocate t: f32[4]\n"
      "    let b: f32 = B[i]\n"  // takes the place of the variable
      "    let a: f32 = A[i]\n"  // a cell: A changes while a lives, around a loop
      "    for (j, 0, 4) { t[j] = a * b A[i] = a + 1.0 }\n"
      "    let u: f32 = A[i]\n"  // opaque: u and its body
      "    A[i] = t[0]\n"
      "    A[i] = u + t[1]\n"
      "  }\n"
      "}\n");
  ASSERT_EQ(f.extraction.scops.size(), 1u);
  const Scop& scop = f.scop();
  ASSERT_EQ(scop.statements.size(), 4u);
  EXPECT_EQ(scop.locals.size(), 2u);
  EXPECT_EQ(scop.private_buffers.size(), 2u);
  EXPECT_TRUE(scop.statements[3].is_opaque);
  EXPECT_EQ(ir::Print(scop.statements[1].code), "t[j] = a.cell[] * B[i]\n");
}

// One array for all iterations, as large as the largest of theirs.
TEST(ExtractTest, AllocationsOfASizeThatLoopsDecide) {
  const auto local = [](const std::string& loops, const std::string& extents,
                        const std::string& element = "0") {
    const Found f = Find(StrCat(
        "func f(A: i32[n], n: i32, m: i32) { ", loops, " allocate L: i32[", extents,
        "] for (k, 0, 2) { L[", element, "] = k A[i] = L[", element, "] } ",
        std::string(static_cast<size_t>(std::count(loops.begin(), loops.end(), '{')), '}'), " }"));
    const Scop& scop = f.scop();
    return scop.locals.empty() ? StrCat("opaque, ", scop.statements.size())
                               : ir::Print(scop.locals[0]->extents[0]);
  };
  EXPECT_EQ(local("for (i, 0, n) {", "i + 1"), "max(0, cast(i64, n))");
  EXPECT_EQ(local("for (i, 0, 7) {", "10 - i"), "i64(10)");
  EXPECT_EQ(local("for (i, 0, n) {", "m + 1"), "m + 1");
  EXPECT_EQ(local("for (i, 3, 4) { if (i < 5) {", "i * 2"), "i64(8)");
  // Two that vary have no iteration of which both are the largest; what memory decides is known when it runs.
  EXPECT_EQ(local("for (i, 0, n) {", "i + 1, n - i", "0, 0"), "opaque, 1");
  EXPECT_EQ(local("for (i, 0, n) {", "A[i] + 1"), "opaque, 1");
  EXPECT_EQ(local("for (i, 0, n) { if (A[i] < 3) {", "i + 1"), "opaque, 1");
}

TEST(ExtractTest, WhatIsInNoPart) {
  const std::string text =
      "func f(A: f32[n], B: i32[1] in, n: i32) {\n"
      "  let m: i32 = B[0]\n"
      "  for (i, 0, m) {\n"
      "    A[i] = 1.0\n"
      "  }\n"
      "  thread (tid, 4) {\n"
      "    for (j, 0, 4) {\n"
      "      A[j] = 2.0\n"
      "    }\n"
      "  }\n"
      "  let k: i32 = B[0]\n"
      "  for (i, 0, k) {\n"
      "    A[i] = 3.0\n"
      "  }\n"
      "}\n";
  const Found f = Find(text);
  ASSERT_EQ(f.extraction.scops.size(), 2u);
  EXPECT_EQ(Differs(f.scop(1), f.scop(1).statements[0].domain, "[k] -> { S0[i] : 0 <= i < k }"),
            "");
  // Nothing is lost on the way.
  ir::Function again = f.function;
  again.body = Replace(f.extraction, {});
  EXPECT_EQ(ir::Print(again), text);
}

TEST(ExtractTest, EmptyDomainsHaveNoStatement) {
  EXPECT_EQ(Find("func f(A: f32[4]) { for (i, 0, 0) { A[i] = 1.0 } }").extraction.scops.size(), 0u);
  const Found f = Find(
      "@assert(n < 0)\n"
      "func f(A: f32[4], n: i32) { for (i, 0, 2) { A[i] = 1.0 } for (i, 0, n) { A[i] = 1.0 } }");
  EXPECT_TRUE(f.scop().statements.back().domain.intersect_params(f.scop().context).is_empty() ||
              f.scop().statements.size() == 1);
}

TEST(ExtractTest, TooLittleTime) {
  const ir::Function f =
      Parse("func f(A: f32[n, n], n: i32) { for (i, 0, n) { for (j, 0, i) { A[i, j] = 1.0 } } }");
  EXPECT_EQ(Extract(f, {.max_operations = 10}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(DescribeTest, EveryText) {
  const ir::Function f = Parse(
      "func f(A: f32[n, n], n: i32) { for (i, 0, n) { for (j, 0, i) { A[i, j] = A[j, i] } } }");
  for (const std::string_view what : Descriptions()) {
    const absl::StatusOr<std::string> text = Describe(f, what);
    ASSERT_TRUE(text.ok()) << text.status();
    if (what == "remarks" || what == "report") {
      EXPECT_EQ(*text, "") << what;
    } else {
      EXPECT_THAT(*text, HasSubstr(what == "loops" ? "func f(" : "part 'f, for (i, 0, n) {':"))
          << what;
    }
  }
  EXPECT_THAT(*Describe(f, "domain"), HasSubstr("S0[i, j]"));
  EXPECT_THAT(*Describe(f, "ast"), HasSubstr("for (int c0 = "));
  EXPECT_THAT(*Describe(f, "tree"), HasSubstr("schedule: "));
  // In the order of a strategy, with tiles and without.
  ScheduleOptions options{.strategy = "smart", .tile = {{8, 4}}};
  EXPECT_THAT(*Describe(f, "tree", options), HasSubstr("floor("));
  EXPECT_THAT(*Describe(f, "schedule", options), HasSubstr("S0[i, j] -> ["));
  EXPECT_THAT(*Describe(f, "ast", options), HasSubstr("// parallel"));
  EXPECT_THAT(*Describe(f, "loops", options), HasSubstr("(c0: i64"));
  EXPECT_THAT(*Describe(f, "report", options), HasSubstr("tiles of 8 x 4"));
  options.tile = {};
  EXPECT_THAT(*Describe(f, "tree", options), testing::Not(HasSubstr("floor(")));
  EXPECT_EQ(std::string(Describe(f, "tree", {.strategy = "fast"}).status().message()),
            "expected a strategy of none, original, min, smart, max, auto, fuse, overlap, text, "
            "found 'fast'");
  EXPECT_THAT(std::string(Describe(f, "tree",
                                   {.strategy = "text", .text = "{ S0[i, j] -> [i, j] : i > 3 }"})
                              .status()
                              .message()),
              HasSubstr("the schedule has no time for the instances "));
  EXPECT_THAT(std::string(Describe(f, "picture").status().message()),
              HasSubstr("expected one of context, domain, accesses, deps"));
}

}  // namespace
}  // namespace polynao::poly
