// The formulas of the text on the polyhedral model as it prints them, by their numbers and figures: definitions 2.1 to
// 2.10, equations (2-9) to (2-31), figures 2.1 to 2.3. docs/calculator.md lists what is not read, and why.
#include <string>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/calculator/calculator.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/order/schedule.h"
#include "compiler/poly/poly.h"
#include "compiler/poly/tools/count_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

std::string Eval(const std::string& text) {
  const absl::StatusOr<std::string> result = Evaluate(text);
  return result.ok() ? *result : StrCat("error: ", std::string(result.status().message()));
}

// The printed formula has the same meaning as the one in plain notation.
void ExpectMeans(const std::string& printed, const std::string& plain) {
  EXPECT_THAT(Eval(StrCat("(", printed, ") = (", plain, ")")), testing::StartsWith("true"))
      << printed << "   " << plain;
}

ir::Function Parse(const std::string& text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *std::move(function);
}

std::string Domain(const ir::Function& function) {
  const absl::StatusOr<Extraction> extraction = Extract(function);
  if (!extraction.ok()) return std::string(extraction.status().message());
  return Text(extraction->scops.at(0).Domain());
}

// The schedule tree that a printed schedule gives the function. Its loops compute what the interpreter does.
std::string TreeOf(const std::string& text, const std::string& printed) {
  const ir::Function before = Parse(text);
  ir::Function after = before;
  const absl::StatusOr<ScheduleReport> report =
      Schedule(after, {.strategy = "text", .text = printed, .tile = {}});
  if (!report.ok()) return std::string(report.status().message());
  EXPECT_TRUE(report->changed);
  for (const int64_t n : {-3, 0, 1, 9, 33, 70}) {
    ir::MeaningOptions meaning;
    meaning.arguments.scalars = {{std::string(before.params.back().name()), ir::Argument::Int(n)}};
    meaning.may_stop = true;  // some sizes leave a buffer's extents
    EXPECT_EQ(ir::CompareMeaning(before, after, 1, meaning), "") << printed << ", " << n;
  }
  const absl::StatusOr<Extraction> extraction = Extract(before);
  EXPECT_TRUE(extraction.ok()) << extraction.status();
  const Scop& scop = extraction->scops.at(0);
  const absl::StatusOr<isl::schedule> schedule =
      ParseSchedule(scop, ComputeDependences(scop), printed);
  return schedule.ok() ? TreeText(*schedule) : std::string(schedule.status().message());
}

// The domain of S1 in figure 2.1. The loops' statements have numbers from 0.
constexpr char kEquation2_9[] = "{ S 1 ( i,j ):3≤ i< 10 ∧i ≤ j<N∧ ( i +1)%2=0}";
constexpr char kEquation2_16[] = "{ S 1 ( i,j ):0≤ i ≤ M∧ 0≤ j ≤ N }";
constexpr char kEquation2_17[] = "{ S 2 ( i,j,k ):0≤ i ≤ M∧ 0≤ j ≤ N∧ 0≤ k ≤ K }";
constexpr char kEquation2_18[] =
    "{ S 1 ( i,j ):0≤ i ≤ M∧ 0≤ j ≤ N ; S 2 ( i,j,k ):0≤ i ≤ M∧ 0≤ j ≤ N∧ 0≤ k ≤ K }";
constexpr char kEquation2_19[] = "{ S 1 ( i,j ): M ≤ i ≤2 M∧N ≤ j ≤2 N }";
constexpr char kEquation2_20[] =
    "{ S 1 ( i,j ):0≤ i ≤ M∧ 0≤ j ≤ N ; S 1 ( i,j ): M ≤ i ≤2 M∧N ≤ j ≤2 N }";
constexpr char kEquation2_21[] = "{ S 1 ( i,j ):0≤ i ≤2 M∧ 0≤ j ≤2 N }";
constexpr char kExample2_1[] = "{ S 1 ( i,j ):0≤ i<N−M +4 ∧i ≥ N−M∧ 0≤ j ≤ N− 2 i }";

// for (i = 3; i < 10; i += 2) for (j = i; j < N; j++) S1(i, j): a loop's step is a condition.
constexpr char kFigure2_1[] =
    "func f(A: f32[10, N], N: i32) {\n"
    "  for (i, 3, 7) {\n"
    "    if ((i + 1) % 2 == 0) { for (j, i, N - i) { A[i, j] = A[i, j] + 1.0 } }\n"
    "  }\n"
    "}\n";

// Two loops of which (2-12) to (2-15) are tiles.
constexpr char kFigure2_2[] =
    "func f(A: i32[n, n], n: i32) {\n"
    "  for (j, 0, n) { for (i, 0, n) { A[i, j] = A[i, j] + 1 } }\n"
    "}\n";

TEST(PolyhedralModelTest, Definition2_1_SymbolsOfTheLanguage) {
  ExpectMeans("{ (a, b) : a + b - 5 ≤ c }", "{ [a, b] : a + b <= c + 5 }");
  ExpectMeans("{ (a) : ⌊a /7⌋ ≤ 3 }", "{ [a] : a < 28 }");
}

TEST(PolyhedralModelTest, Definition2_3_FunctionsWithoutArguments) {
  ExpectMeans("{ S(i) : f() ≤ i ≤ f() + 2() }", "{ S[i] : f <= i <= f + 2 }");
}

TEST(PolyhedralModelTest, Definition2_4_Formulas) {
  ExpectMeans("{ (a) : true }", "{ [a] }");
  ExpectMeans("{ (a) : 2 = a ∧ a ≤ n ∨ ¬ ( a ≤ m ) }", "{ [a] : (a = 2 and a <= n) or a > m }");
  ExpectMeans("{ (a) : ∃v : 3 v = a }", "{ [a] : a mod 3 = 0 }");
  ExpectMeans("{ (a) : ∀v : v ≤ a ⇒ v ≤ 5 }", "{ [a] : a <= 5 }");
  ExpectMeans("{ (a) : ∀v ( v ≤ a ⇒ v ≤ 5 ) }", "{ [a] : a <= 5 }");
}

TEST(PolyhedralModelTest, Definition2_5_SyntacticSugar) {
  EXPECT_EQ(Eval("false⇔¬true"), "true\n");
  ExpectMeans("{ (a, b) : (a ≥ 0 ⇒ b ≥ 0) ⇔ ¬ (a ≥ 0) ∨ b ≥ 0 }", "{ [a, b] }");
  // The text prints a<b⇔a ≤ b: the "- 1" is missing.
  ExpectMeans("{ (a, b) : a<b⇔a ≤ b - 1 }", "{ [a, b] }");
  ExpectMeans("{ (a, b) : a ≥ b⇔b ≤ a }", "{ [a, b] }");
  ExpectMeans("{ (a, b) : a>b⇔a ≥ b +1 }", "{ [a, b] }");
  ExpectMeans("{ (a, b, c) : a,b≤c⇔a≤c∧b≤c }", "{ [a, b, c] }");
  ExpectMeans("{ (a, b, c) : a<b≤c⇔a<b∧b≤c }", "{ [a, b, c] }");
  ExpectMeans("{ (e) : −e = 0 −e ∧ 3×e = e + e + e ∧ 3e = 3*e }", "{ [e] }");
  ExpectMeans("{ (a) : a % 4 = a−4⌊a/4⌋ }", "{ [a] }");
  ExpectMeans("{ (a) : n = n () ∧ 7 = 7 () }", "{ [a] }");
}

TEST(PolyhedralModelTest, Definition2_7_LexicographicOrder) {
  ExpectMeans("{ (i, j) → (k, l) : i, j ≺ k, l }",
              "{ [i, j] -> [k, l] : i < k or (i = k and j < l) }");
  ExpectMeans("{ (i, j) → (k, l) : (i, j) ≼ (k, l) }",
              "{ [i, j] -> [k, l] : i < k or (i = k and j <= l) }");
}

TEST(PolyhedralModelTest, Equation2_9AndFigure2_1) {
  ExpectMeans(kEquation2_9, "[N] -> { S1[i, j] : 3 <= i <= 9 and i <= j < N and i mod 2 = 1 }");
  ExpectMeans(Domain(Parse(kFigure2_1)), "{ S 0 ( i,j ):3≤ i< 10 ∧i ≤ j<N∧ ( i +1)%2=0}");
}

TEST(PolyhedralModelTest, Equation2_10) {
  ExpectMeans("[ S 1 ( i,j ) → ( i,j )]", "{ S1[i, j] -> [i, j] }");
  EXPECT_EQ(Eval("bijective [ S 1 ( i,j ) → ( i,j )]"), "true\n");
  // It is an order for the loops.
  EXPECT_THAT(
      TreeOf(kFigure2_1, "[ S 1 ( i,j ) → ( i,j )]"),
      testing::AllOf(HasSubstr("[{ S0[i, j] -> [(i)] : "), HasSubstr(", { S0[i, j] -> [(j)] : ")));
}

// f(i) = M i + c, with a matrix of numbers.
TEST(PolyhedralModelTest, Definition2_6_Equation2_11) {
  ExpectMeans("{ (i, j) → ( 1 i + 2 j + 5, -i ) }", "{ [i, j] -> [i + 2j + 5, -i] }");
  EXPECT_EQ(
      Eval("{ S(i, j) → A [ i×j ] }"),
      "error: expression:1:18: expected an affine expression, found a product of two variable "
      "expressions");
}

// Tiles of the loops (j, i) of figure 2.2, and the quotients as products.
TEST(PolyhedralModelTest, Equation2_12AndEquation2_13) {
  ExpectMeans("{ ( j,i ) → ( j/ 32 ,i/ 32) }",
              "{ ( j,i ) → ( a,b ): 32 a ≤ j < 32 a + 32 ∧ 32 b ≤ i < 32 b + 32 }");
  EXPECT_THAT(Eval("{ ( j,i ) → ( j/ 32 ,i/ 32) }"), HasSubstr("  # '/' rounds down\n"));
}

TEST(PolyhedralModelTest, Equation2_14AndEquation2_15) {
  const std::string equation_14 = "{ ( j,i ) → ( j/ 32 ,i/ 32 ,j,i ) }";
  const std::string pieces =
      "[{ ( j,i ) → ( j/ 32) }, { ( j,i ) → ( i/ 32) }, { ( j,i ) → ( j ) }, { ( j,i ) → ( i ) }]";
  ExpectMeans(pieces, equation_14);
  ExpectMeans("[{ ( j,i ) → ( j/ 32 ,i/ 32) }, { ( j,i ) → ( j,i ) }]", equation_14);
  // As orders of the loops of figure 2.2, j outside.
  for (const std::string& printed :
       {equation_14, pieces, std::string("[{ ( j,i ) → ( j/ 32 ,i/ 32) }, { ( j,i ) → ( j,i ) }]"),
        std::string("[{ S 1 ( j,i ) → ( j/ 32 ,i/ 32) }, { S 1 ( j,i ) → ( j,i ) }]")}) {
    EXPECT_THAT(TreeOf(kFigure2_2, printed),
                testing::AllOf(HasSubstr("[{ S0[j, i] -> [(floor((j)/32))] : "),
                               HasSubstr(", { S0[j, i] -> [(floor((i)/32))] : "),
                               HasSubstr(", { S0[j, i] -> [(j)] : "),
                               HasSubstr(", { S0[j, i] -> [(i)] : ")))
        << printed;
  }
}

// Schedules as the texts on the subject print them: constants between the loops of several statements, a loop that runs
// along the other one, backwards, two pieces of one loop.
TEST(PolyhedralModelTest, SchedulesOfSeveralStatementsAndSkewedOnes) {
  const std::string product =
      "func f(C: i32[n, n], A: i32[n, n] in, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) {\n"
      "    C[i, j] = 0\n"
      "    for (k, 0, n) { C[i, j] = C[i, j] + A[i, k] * A[k, j] }\n"
      "  } }\n"
      "}\n";
  EXPECT_THAT(TreeOf(product, "[ S 1 ( i,j ) → ( 0,i,j,0 ); S 2 ( i,j,k ) → ( 1,k,i,j )]"),
              HasSubstr("S1[i, j, k] -> [(k)]"));
  EXPECT_THAT(TreeOf(product,
                     "{ S 1 ( i,j ) → ( i/ 4 ,j/ 4 ,i,j,−1 ); S 2 ( i,j,k ) → ( "
                     "i/ 4 ,j/ 4 ,i,j,k ) }"),
              HasSubstr("S1[i, j, k] -> [(floor((i)/4))]"));
  const std::string smooth =
      "func f(A: i32[n], n: i32) {\n"
      "  for (t, 0, 5) { for (i, 1, n - 2) { A[i] = A[i - 1] + 3 * A[i] + A[i + 1] } }\n"
      "}\n";
  EXPECT_THAT(TreeOf(smooth, "[ S 1 ( t,i ) → ( t, t + i ) ]"), HasSubstr("[(t + i)]"));
  EXPECT_THAT(TreeOf(smooth, "[{ S(t, i) → ( t ) }]"), HasSubstr("no time for the instances"));
  EXPECT_THAT(
      TreeOf(smooth,
             "[{ ( t,i ) → ( t/ 2 + ( t + i )/ 2 ) }, { ( t,i ) → (( t + i )/ 2 ,t,t + i ) }]"),
      HasSubstr("floor((t + i)/2)"));
  EXPECT_THAT(TreeOf(smooth, "{ S 1 ( t,i ) → ( i,t ) }"), HasSubstr("violates a flow dependence"));
  EXPECT_THAT(TreeOf(kFigure2_2, "{ ( j,i ) → ( −i,j ) : i < 7 ; ( j,i ) → ( i,j ) : i ≥ 7 }"),
              HasSubstr("7 <= i < n"));
}

TEST(PolyhedralModelTest, Equation2_16ToEquation2_21) {
  EXPECT_EQ(Eval(StrCat("isomorphic(", kEquation2_16, ", ", kEquation2_17, ")")), "false\n");
  ExpectMeans(StrCat(kEquation2_16, " ∪ ", kEquation2_17), kEquation2_18);
  ExpectMeans(StrCat(kEquation2_16, " ∪ ", kEquation2_19), kEquation2_20);
  // (2-21) is the hull of (2-20): elements with i > M and j < N are in neither part. The text calls it equal.
  EXPECT_EQ(Eval(StrCat(kEquation2_20, " ⊂ ", kEquation2_21)), "true\n");
  ExpectMeans(StrCat("simple_hull (", kEquation2_20, " * { : M, N > 0 })"),
              StrCat(kEquation2_21, " * { : M, N > 0 }"));
}

TEST(PolyhedralModelTest, Definition2_8_IsomorphicSpaces) {
  EXPECT_EQ(Eval("isomorphic({ S 1 ( i ) }, { T 2 ( j ) })"), "false\n");
  EXPECT_EQ(Eval("isomorphic({ S 1 ( i ) }, { S 1 ( j ) })"), "true\n");
  EXPECT_EQ(Eval("isomorphic({ S 1 ( i ) }, { S 1 ( i, j ) })"), "false\n");
}

// Unary and binary operations on unions go part by part.
TEST(PolyhedralModelTest, Definition2_9_Operations) {
  ExpectMeans("sample { A(1); B(2) }", "{ A[1]; B[2] }");
  ExpectMeans("{ A(i) → B(i + 1); C(i) → D(2 i) }^-1",
              "{ B[i] -> A[i - 1]; D[j] -> C[i] : j = 2i }");
  ExpectMeans("{ A(i) : i ≥ 0; B(i) } ∩ { A(i) : i ≤ 5; C(i) }", "{ A[i] : 0 <= i <= 5 }");
  ExpectMeans("{ A(i) } ∪ { B(j) }", "{ A(i); B(j) }");
  ExpectMeans("{ A(i) → B(j) : i ≤ j } ∩ { A(i) → B(j) : j ≤ i }", "{ A[i] -> B[i] }");
  ExpectMeans("{ A(i) : i ≥ 0 } \\ { A(i) : i ≥ 5 }", "{ A[i] : 0 <= i < 5 }");
  ExpectMeans("{ A(i) → B(2 i) } ∘ { C(i) → A(i + 1) }", "{ C[i] -> B[2i + 2] }");
}

TEST(PolyhedralModelTest, Definition2_9_Inclusion) {
  for (const char* sets : {"A := { S(i) : 0 ≤ i < n }; B := { S(i) : i < n };",
                           "A := { S(i) : 0 ≤ i < n }; B := { S(i) : i < n ∧ i ≥ 0 };",
                           "A := { S(i) → (i) }; B := { S(i) → (j) : j ≤ i };"}) {
    for (const char* law : {"A⊆B⇔A\\B =∅", "A⊇B⇔B⊆A", "A = B⇔A⊆B∧B⊆A", "A⊂B⇔A⊆B∧¬ ( A = B )",
                            // The text prints A⊃B⇔A⊂B.
                            "A⊃B⇔B⊂A"}) {
      EXPECT_EQ(Eval(StrCat(sets, law)), "true\n") << sets << law;
    }
  }
}

TEST(PolyhedralModelTest, Equation2_30AndEquation2_31) {
  EXPECT_EQ(Eval("{# i : 0 ≤ i < n }"), Eval("card { S(i) : 0 ≤ i < n }"));
  EXPECT_EQ(Eval("{# i, j : 0 ≤ i ≤ j < n }"), "[n] -> { (1/2 * n + 1/2 * n^2) : n > 0 }\n");
  EXPECT_EQ(Eval("{ S(i) → # j : 0 ≤ j < i }"), Eval("card { S(i) → T(j) : 0 ≤ j < i }"));
  EXPECT_EQ(Eval("{ S ( i ) → # j : 0 ≤ j < i }"), "{ S[i] -> i : i > 0 }\n");
}

// for (i = max(0, N - M); i < N - M + 4; i++) for (j = 0; j <= N - 2i; j++) S1
TEST(PolyhedralModelTest, Example2_1AndFigure2_3) {
  const ir::Function function = Parse(
      "func f(A: f32[64, 64], N: i32, M: i32) {\n"
      "  for (i, max(0, N - M), N - M + 4 - max(0, N - M)) {\n"
      "    for (j, 0, N - 2 * i + 1) { A[i, j] = A[i, j] + 1.0 }\n"
      "  }\n"
      "}\n");
  const std::string name = StrCat("S := ", kExample2_1, "; ");
  for (const auto& [n, m] : {std::pair{0, 0}, {7, 3}, {10, 10}, {10, 12}, {3, 9}, {20, 17}}) {
    int instances = 0;
    for (int i = std::max(0, n - m); i < n - m + 4; ++i) {
      for (int j = 0; j <= n - 2 * i; ++j) ++instances;
    }
    EXPECT_EQ(Eval(StrCat(name, "value(card S, N = ", n, ", M = ", m, ")")),
              StrCat(instances, "\n"));
    const auto parts = CountProgram(function, {.arguments = {{"N", n}, {"M", m}}});
    ASSERT_TRUE(parts.ok()) << parts.status();
    EXPECT_EQ(parts->at(0).statements.at(0).instances.value, instances) << n << ", " << m;
  }
  EXPECT_EQ(Eval(StrCat("card", kExample2_1)), Eval(StrCat(name, "card S")));
}

}  // namespace
}  // namespace polynao::poly
