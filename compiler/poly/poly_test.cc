#include "compiler/poly/poly.h"
#include "compiler/poly/arrange/machine_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/split.h"
#include "compiler/poly/model/extract.h"

namespace polynao::poly {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ir::Function Parse(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// Schedules the text, checks the result against the interpreter for sizes around those of tiles, and
// returns it with the report in front.
std::string Scheduled(std::string_view text, const ScheduleOptions& options = {}) {
  const ir::Function before = Parse(text);
  ir::Function after = before;
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return "";
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  for (const int64_t n : {-3, 0, 1, 2, 4, 5, 13}) {
    ir::MeaningOptions meaning;
    for (const ir::Param& param : before.params) {
      if (param.var && ir::IsInt(param.var.type())) {
        meaning.arguments.scalars[std::string(param.name())] = ir::Argument::Int(n);
      }
    }
    meaning.may_stop = true;  // some sizes leave a buffer's extents
    EXPECT_EQ(ir::CompareMeaning(before, after, 1, meaning), "") << "n = " << n;
  }
  EXPECT_EQ(ir::CompareMeaning(before, after, 2, {.may_stop = true}), "");
  return report->ToString() + ir::Print(after);
}

const std::map<std::string, std::string>& Nests() {
  static const auto* nests = new std::map<std::string, std::string>{
      {"matmul",
       "func f(C: f64[n, n] out, A: f64[n, n] in, B: f64[n, n] in, n: i32) {\n"
       "  for (i, 0, n) { for (j, 0, n) {\n"
       "    C[i, j] = 0.0\n"
       "    for (k, 0, n) { C[i, j] = C[i, j] + A[i, k] * B[k, j] }\n"
       "  } }\n"
       "}\n"},
      // For these two, isl finds no order that keeps dependent instances close.
      {"two_trip_counts",
       "func f(A: i32[48], n: i32) { for (i, 0, max(n, 2)) { A[n + 5] = A[n + 5] + 1 } }\n"},
      {"remainder",
       "func f(A: i32[48, 48], n: i32) {\n"
       "  for (i, 0, n) { for (j, 0, 3) { A[i, (j + i) % 48] = A[j + 6, n] } }\n"
       "}\n"},
      {"triangular",
       "func f(A: i32[n, n], x: i32[n] out, n: i32) {\n"
       "  for (i, 0, n) {\n"
       "    x[i] = i * 1000000\n"
       "    for (j, 0, i) { x[i] = x[i] + A[i, j] * A[j, i] }\n"
       "  }\n"
       "}\n"},
      {"stencil",
       "func f(A: f32[n], B: f32[n], n: i32) {\n"
       "  for (t, 0, 7) {\n"
       "    for (i, 1, n - 2) { B[i] = A[i - 1] + A[i] + A[i + 1] }\n"
       "    for (i, 1, n - 2) { A[i] = B[i - 1] + B[i] + B[i + 1] }\n"
       "  }\n"
       "}\n"},
      {"in_place_stencil",
       "func f(A: f32[n, n], n: i32) {\n"
       "  for (t, 0, 5) { for (i, 1, n - 2) { for (j, 1, n - 2) {\n"
       "    A[i, j] = A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j] } } }\n"
       "}\n"},
      {"guards_and_strides",
       "func f(A: i32[n], B: i32[n] out, n: i32, m: i32) {\n"
       "  for (i, 0, n) {\n"
       "    if (i % 3 == 1 || i == m) { B[i] = A[n - 1 - i] } else { B[i] = i / 2 }\n"
       "  }\n"
       "  for (i, 0, (n + 1) / 2) { A[2 * i] = B[2 * i] + A[i] }\n"
       "}\n"},
      {"private_scalar",
       "func f(A: f32[n, n], n: i32) {\n"
       "  for (i, 0, n) { for (j, 0, n) {\n"
       "    allocate t: f32[]\n"
       "    t[] = A[i, j]\n"
       "    A[i, j] = t[] * t[]\n"
       "  } }\n"
       "}\n"},
      {"private_row",
       "func f(A: f64[n, n, n], C: f64[n, n] in, n: i32) {\n"
       "  for (r, 0, n) { for (q, 0, n) {\n"
       "    allocate sum: f64[n]\n"
       "    for (p, 0, n) { sum[p] = 0.0 for (s, 0, n) { sum[p] = sum[p] + A[r, q, s] * C[s, p] } "
       "}\n"
       "    for (p, 0, n) { A[r, q, p] = sum[p] }\n"
       "  } }\n"
       "}\n"},
      {"used_behind_the_loop",
       "func f(P: i32[48]) {\n"
       "  allocate t: i32[]\n"
       "  for (j, 0, 3) { t[] = j }\n"
       "  P[0] = t[]\n"
       "}\n"},
      {"carried_along_the_inner_loop",
       "func f(A: f32[n, m] in, Y: f32[n, m], n: i32, m: i32) {\n"
       "  for (j, 0, m) {\n"
       "    allocate b: f32[] b[] = 0.0\n"
       "    for (i, 0, n) { Y[i, j] = A[i, j] + 0.5 * b[] b[] = Y[i, j] }\n"
       "  }\n"
       "}\n"},
      {"let_around_a_loop",
       "func f(A: f32[n], n: i32) {\n"
       "  for (i, 0, n) { let a: f32 = A[i] for (j, 0, 3) { A[i] = a * A[i] } }\n"
       "}\n"},
      {"data_dependent",
       "func f(A: f32[n], at: i32[n] in, n: i32) {\n"
       "  for (i, 0, n) { A[(at[i] % n + n) % n] = A[i] + 1.0 }\n"
       "  for (i, 0, n) { if (A[i] < 0.0) { for (j, 0, n) { A[i] = 3.0 } } }\n"
       "}\n"},
      {"many_sizes",
       "func f(A: i8[n, m], B: i8[m, n], n: i64, m: i8, k: i32) {\n"
       "  for (i: i64, 0, n) { for (j: i8, 0, m) { A[i, j] = B[j, i] + j } }\n"
       "  for (i, 0, k) { B[i % 2, 0] = A[0, 0] }\n"
       "}\n"},
      {"backwards",
       "func f(A: i32[n, n], n: i32) {\n"
       "  for (r, 0, n) {\n"
       "    let i: i32 = n - 1 - r\n"
       "    for (j, i + 1, r) { A[i, j] = max(A[i, j], A[i, j - 1])\n"
       "      for (k, i + 1, j - i - 1) { A[i, j] = max(A[i, j], A[i, k] + A[k + 1, j]) } }\n"
       "  }\n"
       "}\n"},
      // No loop inside of the one over k is parallel, but each of nine parts of its iterations is.
      {"shortest_paths",
       "func f(P: i32[n, n], n: i32) {\n"
       "  for (k, 0, n) { for (i, 0, n) { for (j, 0, n) {\n"
       "    P[i, j] = min(P[i, j], P[i, k] + P[k, j])\n"
       "  } } }\n"
       "}\n"},
      // Arrays of an iteration's own, of a size that the iteration decides.
      {"growing_row",
       "func f(A: i32[n] out, B: i32[n, n], n: i32) {\n"
       "  for (i, 0, n) {\n"
       "    allocate L: i32[i + 1]\n"
       "    for (j, 0, i + 1) { L[j] = B[i, j] * 3 + j }\n"
       "    for (j, 0, i + 1) { B[i, j] = L[i - j] + L[j] }\n"
       "    A[i] = L[i]\n"
       "  }\n"
       "}\n"},
      {"growing_rectangle",
       "func f(A: i32[n, n], n: i32) {\n"
       "  for (i, 0, n) {\n"
       "    allocate L: i32[i + 1, n - i]\n"
       "    for (j, 0, i + 1) { for (k, 0, n - i) { L[j, k] = A[j, k] } }\n"
       "    for (j, 0, i + 1) { for (k, 0, n - i) { A[j, k] = L[i - j, k] + i } }\n"
       "  }\n"
       "}\n"},
      {"growing_by_the_data",
       "func f(A: i32[n], at: i32[n] in, n: i32) {\n"
       "  for (i, 0, n) {\n"
       "    let m: i32 = (at[i] % 5 + 5) % 5\n"
       "    allocate L: i32[m + 1]\n"
       "    for (j, 0, m + 1) { L[j] = A[i] + j }\n"
       "    A[i] = L[m]\n"
       "  }\n"
       "}\n"},
      {"growing_under_a_condition",
       "func f(A: i32[n], n: i32) {\n"
       "  for (i, 0, n) { if (A[i] < 3) {\n"
       "    allocate L: i32[2 * i + 1]\n"
       "    for (j, 0, 2 * i + 1) { L[j] = i * j }\n"
       "    for (j, 0, n) { A[j] = A[j] + L[2 * i] }\n"
       "  } }\n"
       "}\n"},
      {"size_of_a_let",
       "func f(A: i32[n], n: i32, m: i32) {\n"
       "  for (i, 0, n) {\n"
       "    let size: i32 = max(m - i, 0) + 1\n"
       "    allocate L: i32[size]\n"
       "    for (j, 0, size) { L[j] = A[i] - j }\n"
       "    A[i] = L[size - 1]\n"
       "  }\n"
       "}\n"},
      {"size_in_a_scalar",
       "func f(A: i32[n], n: i32) {\n"
       "  for (i, 0, n) {\n"
       "    allocate size: i32[]\n"
       "    size[] = i + 1\n"
       "    allocate L: i32[size[]]\n"
       "    for (j, 0, i + 1) { L[j] = A[j] * size[] }\n"
       "    A[i] = L[i]\n"
       "  }\n"
       "}\n"},
      {"size_that_nothing_else_uses",
       "func f(A: i32[n], n: i32, m: i32) {\n"
       "  for (i, 0, n) { allocate L: i32[max(m, 0) + 1] L[0] = A[i] A[i] = L[0] * 2 }\n"
       "}\n"},
      {"loops_of_narrow_types",
       "func f(A: i32[300], B: i32[300], n: i32) {\n"
       "  for (i: u8, 0, cast(u8, max(n, 0))) { A[i] = A[i] + cast(i32, i) }\n"
       "  for (i: i16, 3, 5) { for (j: u32, 0, cast(u32, max(n, 0))) { B[j] = B[j] + A[i] } }\n"
       "  for (i: i8, 0, 4) { let t: u8 = cast(u8, i) + cast(u8, n) A[t] = B[i] }\n"
       "}\n"},
      {"no_dimensions",
       "func f(s: i32[], A: i32[n] in, n: i32) { for (i, 0, n) { s[] = max(s[], A[i]) } }\n"},
      {"empty",
       "func f(A: i32[4], n: i32) { for (i, 3, 0) { A[i] = 1 } for (i, 0, n - n) { A[i] = 2 } }\n"},
      {"extremes",
       "func f(A: i32[4], n: i32, m: i64) {\n"
       "  for (j, 0, 3) { if (n < 0 - 5) { for (i: i64, m - 1, 1) { A[j] = A[j] + 1 } } }\n"
       "}\n"},
  };
  return *nests;
}

class NestTest : public testing::TestWithParam<std::string> {};

TEST_P(NestTest, EveryStrategyKeepsTheMeaning) {
  const std::string& text = Nests().at(GetParam());
  ir::Function unchanged = Parse(text);
  const ir::Stmt body = unchanged.body;
  const absl::StatusOr<ScheduleReport> none = Schedule(unchanged, {.strategy = "none"});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->changed);
  EXPECT_EQ(unchanged.body, body);
  for (const std::string strategy : {"original", "min", "smart", "max"}) {
    for (const std::vector<int64_t>& tile :
         {std::vector<int64_t>{}, std::vector<int64_t>{2, 1, 3}, std::vector<int64_t>{4}}) {
      SCOPED_TRACE(StrCat(strategy, ", tile ", tile.size()));
      ScheduleOptions options{.strategy = strategy};
      options.tile.clear();
      if (!tile.empty()) options.tile = {tile};
      const std::string result = Scheduled(text, options);
      if (testing::Test::HasFailure()) {
        std::cerr << result;
        return;
      }
    }
  }
}

TEST_P(NestTest, AutoKeepsTheMeaning) {
  for (const int registers : {4, 8, 16}) {
    SCOPED_TRACE(StrCat(registers, " registers"));
    const std::string result =
        Scheduled(Nests().at(GetParam()),
                  {.reassociate = registers == 8, .machine = SmallMachine(registers)});
    if (testing::Test::HasFailure()) {
      std::cerr << result;
      return;
    }
  }
}

// Wherever isl's operations end, a part is scheduled or stays as it is.
TEST_P(NestTest, OperationsMayEndAnywhere) {
  const ir::Function before = Parse(Nests().at(GetParam()));
  for (int64_t most = 10; most < 200'000; most += most / 8 + 1) {
    SCOPED_TRACE(StrCat(most, " operations"));
    ExtractOptions extract;
    extract.max_operations = static_cast<unsigned long>(most);
    const absl::Status status = Extract(before, extract).status();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kResourceExhausted) << status;
    for (const std::string strategy : {"max", "auto"}) {
      ir::Function after = before;
      const absl::StatusOr<ScheduleReport> report = Schedule(
          after, {.strategy = strategy, .machine = SmallMachine(8), .max_operations = most});
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_THAT(report->internal_errors, testing::IsEmpty());
      EXPECT_EQ(ir::CompareMeaning(before, after, 3, {.runs = 1, .may_stop = true}), "");
    }
  }
}

std::vector<std::string> NestNames() {
  std::vector<std::string> names;
  for (const auto& [name, text] : Nests()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Nests, NestTest, testing::ValuesIn(NestNames()),
                         [](const auto& info) { return info.param; });

// What is asked not to be there.
TEST(PolyTest, AutoWithoutParallelAndVectorLoops) {
  const std::string text = Scheduled(
      Nests().at("matmul"), {.parallel = false, .vectorize = false, .machine = SmallMachine(16)});
  EXPECT_THAT(text, Not(HasSubstr("parallel (")));
  EXPECT_THAT(text, Not(HasSubstr("vectorize (")));
}

// Tiles for the caches, and of those for the registers, which stay there over the loop over k.
TEST(PolyTest, AutoKeepsTilesOfMatmulInRegisters) {
  const std::string text =
      Scheduled(Nests().at("matmul"), {.packing = Packing::kNone, .machine = SmallMachine(16)});
  EXPECT_THAT(text, HasSubstr("parallel (c0"));
  EXPECT_THAT(text, HasSubstr("C.tile"));
  EXPECT_THAT(text, HasSubstr("unroll (c"));
  EXPECT_THAT(text, HasSubstr("in registers over loop"));
}

// What a loop adds up is in a local variable, although the loop reads other elements of the same array.
TEST(PolyTest, AutoAddsUpInALocalVariable) {
  const std::string text = Scheduled(
      "func f(x: f64[n], L: f64[n, n] in, n: i32) {\n"
      "  for (i, 0, n) {\n"
      "    for (j, 0, i) { x[i] = x[i] - L[i, j] * x[j] }\n"
      "    x[i] = x[i] / L[i, i]\n"
      "  }\n"
      "}\n",
      {});
  EXPECT_THAT(text, HasSubstr("x.sum[] = x.sum[] - L[c"));
}

// H - KH + 1 rows are more than one: what the sum stores is a vector, and no scalar that each term waits for.
TEST(PolyTest, AutoMakesVectorsOfWindowsOfUnknownSizes) {
  const std::string text = Scheduled(
      "func f(X: f32[H, W] in, B: f32[p, q] in, C: f32[H - p + 1, W - q + 1] out, H: i32, W: i32, "
      "p: i32, q: i32) {\n"
      "  for (i, 0, H - p + 1) { for (j, 0, W - q + 1) {\n"
      "    C[i, j] = 0.0\n"
      "    for (u, 0, p) { for (v, 0, q) { C[i, j] = C[i, j] + X[i + u, j + v] * B[u, v] } }\n"
      "  } }\n"
      "}\n",
      {});
  EXPECT_THAT(text, HasSubstr("S1, loop 0 a vector"));
  EXPECT_THAT(text, Not(HasSubstr("adds up")));
}

TEST(PolyTest, AutoSplitsWhereDependencesBegin) {
  const std::string result = Scheduled(Nests().at("shortest_paths"));
  EXPECT_THAT(result, HasSubstr(std::string(kSplitLine)));
  EXPECT_THAT(result, HasSubstr("parallel ("));
  EXPECT_THAT(result, HasSubstr("vectorize ("));
}

// Found by random_run --schedules, seed 6010: isl crashed on floors of constants in what the pairs of a dependence have
// in common.
TEST(PolyTest, DependencesWithFloorsAreNoPlacesToSplit) {
  Scheduled(
      "func f(P: i32[48, 48]) {\n"
      "  let t: i32 = 0\n"
      "  for (j, 0, 4) { for (k, 0, j) { P[0, k] = P[0, t * -1 % 48] } }\n"
      "}\n");
}

TEST(PolyTest, MatmulIsTiledParallelAndVectorized) {
  const std::string text = Scheduled(Nests().at("matmul"), {.strategy = "smart", .tile = {{4}}});
  EXPECT_THAT(text, HasSubstr("parallel (c0"));
  EXPECT_THAT(text, HasSubstr("vectorize (c"));
}

// Loops of whole tiles have constant bounds whatever the sizes are; those of tiles at the border stand apart.
TEST(PolyTest, WholeTilesHaveConstantBounds) {
  const std::string text = Scheduled(
      "func f(A: f32[n, m], n: i32, m: i32) {\n"
      "  for (i, 0, n) { for (j, 0, m) { A[i, j] = A[i, j] + 1.0 } }\n"
      "}\n",
      {.strategy = "smart", .tile = {{4, 8}}});
  EXPECT_THAT(text, HasSubstr("for (c2: i64, 0, 4) {\n"));
  EXPECT_THAT(text, HasSubstr("vectorize (c3: i64, 0, 8) {\n"));
  EXPECT_THAT(text, HasSubstr("min("));
}

// Loops at the ends of i64 are no sums that generated code could compute.
TEST(PolyTest, LoopsAtTheEndsOfI64Stay) {
  for (const char* strategy : {"min", "smart", "max", "auto", "fuse"}) {
    for (const char* first : {"9223372036854775805", "-9223372036854775808"}) {
      Scheduled(StrCat("func f(A: i32[4]) { for (i, 0, 4) { for (j: i64, ", first,
                       ", 3) { A[i] = A[i] + 1 } } }"),
                {.strategy = strategy, .tile = {{2}}});
    }
  }
}

TEST(PolyTest, Errors) {
  ir::Function f = Parse(Nests().at("matmul"));
  EXPECT_THAT(std::string(Schedule(f, {.strategy = "best"}).status().message()),
              HasSubstr("found 'best'"));
  EXPECT_THAT(std::string(Schedule(f, {.tile = {{-1}}}).status().message()),
              HasSubstr("expected tile sizes"));
  EXPECT_THAT(std::string(Schedule(f, {.strategy = "text", .text = "what"}).status().message()),
              HasSubstr("expected a schedule"));
  EXPECT_THAT(
      std::string(
          Schedule(f, {.strategy = "text", .text = "{ S0[i, j] -> [i, j] }"}).status().message()),
      HasSubstr("no time for the instances"));
  EXPECT_THAT(
      std::string(Schedule(f, {.strategy = "text",
                               .text = "{ S0[i, j] -> [1, i, j, 0]; S1[i, j, k] -> [0, i, j, k] }"})
                      .status()
                      .message()),
      HasSubstr("violates a flow dependence from S0[0, 0] at time [1, 0, 0, 0]"));
}

TEST(PolyTest, AScheduleAsText) {
  const std::string text = Scheduled(
      Nests().at("matmul"),
      {.strategy = "text", .text = "{ S0[i, j] -> [0, i, j, 0]; S1[i, j, k] -> [1, k, i, j] }"});
  EXPECT_THAT(text, HasSubstr("vectorize (c3"));
}

// The tree of a report, with its marks and options of bands, is a text too: tiles of tiles.
TEST(PolyTest, TheTreeOfAReportAsText) {
  const std::string& matmul = Nests().at("matmul");
  ir::Function f = Parse(matmul);
  const absl::StatusOr<ScheduleReport> report = Schedule(f, {.strategy = "smart", .tile = {{4}}});
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string& tree = report->parts.at(0).tree;
  ASSERT_THAT(tree, HasSubstr("mark: \"parallel"));
  ASSERT_THAT(tree, HasSubstr("mark: \"vector"));
  ASSERT_THAT(tree, HasSubstr("isolate"));
  const std::string text = Scheduled(matmul, {.strategy = "text", .text = tree, .tile = {{2}}});
  EXPECT_THAT(text, HasSubstr("tiles of 2 x 2 x 2"));
  std::string shown = "part 'f, for (i, 0, n) {':\n";
  for (absl::string_view line : absl::StrSplit(tree, '\n', absl::SkipEmpty())) {
    StrAppend(&shown, "  ", std::string(line), "\n");
  }
  EXPECT_EQ(Scheduled(matmul, {.strategy = "text", .text = shown, .tile = {{2}}}), text);
  EXPECT_THAT(Scheduled(matmul, {.strategy = "text", .text = tree, .tile = {}, .parallel = false}),
              Not(HasSubstr("parallel (")));
}

// The operations may end while isl reads the text: then the part stays as it is, and nothing is wrong with the text.
TEST(PolyTest, OperationsMayEndInAText) {
  const ir::Function before = Parse(Nests().at("many_sizes"));
  ir::Function scheduled = before;
  const absl::StatusOr<ScheduleReport> smart = Schedule(scheduled, {.strategy = "smart"});
  ASSERT_TRUE(smart.ok() && smart->parts.size() == 1) << smart.status();
  int stopped = 0;
  for (int64_t most = 1000; most < 100'000; most += most / 24) {
    ir::Function after = before;
    const absl::StatusOr<ScheduleReport> report =
        Schedule(after, {.strategy = "text", .text = smart->parts[0].tree, .max_operations = most});
    ASSERT_TRUE(report.ok()) << most << " " << report.status();
    stopped += report->changed ? 0 : 1;
  }
  EXPECT_GT(stopped, 10);
}

// Past its operations, a part stays as it is, and the report says so.
TEST(PolyTest, TooManyOperations) {
  ir::Function f = Parse(Nests().at("in_place_stencil"));
  const ir::Stmt body = f.body;
  const absl::StatusOr<ScheduleReport> report = Schedule(f, {.max_operations = 2000});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->changed);
  EXPECT_EQ(f.body, body);
  EXPECT_THAT(report->ToString(),
              AnyOf(HasSubstr("more operations than it is allowed"), HasSubstr("isl stopped")));
}

// Wherever the operations end, in an order, copies, costs or code, nothing is thrown and the part stays as it is.
TEST(PolyTest, OperationsMayEndAnywhere) {
  int stopped = 0;
  for (const auto& [name, text] : Nests()) {
    for (const char* strategy : {"min", "smart", "auto", "fuse"}) {
      for (int64_t most = 500; most < 2'000'000; most *= 3) {
        ir::Function f = Parse(text);
        const ir::Stmt body = f.body;
        const absl::StatusOr<ScheduleReport> report =
            Schedule(f, {.strategy = strategy, .max_operations = most});
        ASSERT_TRUE(report.ok()) << name << ", " << strategy << ", " << most << ": "
                                 << report.status();
        EXPECT_THAT(report->internal_errors, IsEmpty()) << name << ", " << strategy << ", " << most;
        if (!report->changed) EXPECT_EQ(f.body, body) << name << ", " << strategy << ", " << most;
        stopped += report->changed ? 0 : 1;
      }
    }
  }
  EXPECT_GT(stopped, 20);
}

// The integer programs of a common order of these nests have cuts without an end, and numbers that grow with each. A
// search ends after a tenth of the operations; what isl finds without the pairs that are to come close together is as
// right.
TEST(PolyTest, SearchesForAnOrderEnd) {
  const ir::Function before = Parse(R"(
func f(t1: f32[13, 9], t3: f32[25, 8], t4: f32[8, 25]) {
  allocate t2: f32[25, 9]
  for (i, 0, 13) {
    for (j, 0, 9) {
      t1[i, j] = t1[i, j] * 3.5 + t1[min(i, 12), min(j, 8)]
    }
  }
  for (j, 0, 9) {
    for (i, 0, 25) {
      t2[i, j] = t1[i / 2, j] + t1[(i + 1) / 2, j]
    }
  }
  for (i, 0, 25) {
    for (j, 0, 8) {
      t3[i, j] = 4.5 + 8.5 * t2[i, j + 1] + 3.5 * t2[i, j]
    }
  }
  for (i, 0, 13) {
    for (j, 0, 9) {
      t1[i, j] = t1[i, j] * 1.5 + t3[min(i, 24), min(j, 7)]
    }
  }
  for (i, 0, 8) {
    for (j, 0, 25) {
      t4[i, j] = t3[j, i] + 4.5
    }
  }
}
)");
  for (const char* strategy : {"smart", "auto"}) {
    ir::Function after = before;
    const absl::StatusOr<ScheduleReport> report =
        Schedule(after, {.strategy = strategy, .machine = SmallMachine(8)});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->changed) << report->ToString();
    EXPECT_EQ(ir::CompareMeaning(before, after, 1, {.runs = 1}), "");
  }
  // With fewer operations than a search needs for any order, the original one is tiled, and the report says so.
  ir::Function after = before;
  const absl::StatusOr<ScheduleReport> report =
      Schedule(after, {.strategy = "max", .machine = SmallMachine(8), .max_operations = 60'000});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->ToString(), HasSubstr("isl's scheduler found no order: the original one"));
  EXPECT_EQ(ir::CompareMeaning(before, after, 1, {.runs = 1}), "");
}

}  // namespace
}  // namespace polynao::poly
