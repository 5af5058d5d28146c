#include "compiler/poly/calculator/calculator.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

std::string Eval(const std::string& text) {
  const absl::StatusOr<std::string> result = Evaluate(text);
  return result.ok() ? *result : StrCat("error: ", std::string(result.status().message()));
}

// Both expressions, or sets of statements that end with one, mean the same set or map.
void ExpectEqual(const std::string& a, const std::string& b) {
  EXPECT_EQ(Eval(StrCat("(", a, ") = (", b, ")")), "true\n") << a << "   " << b;
}

TEST(CalculatorTest, BothNotationsMeanTheSame) {
  ExpectEqual("{ S1(i,j):3≤ i< 10 ∧i ≤ j<N∧ ( i +1)%2=0}",
              "[N] -> { S1[i, j] : 3 <= i <= 9 and i <= j < N and (i + 1) mod 2 = 0 }");
  ExpectEqual("{ S(i,j) → (i,j) }", "{ S[i, j] -> [i, j] }");
  ExpectEqual("{ (j, i) -> (⌊j/32⌋, ⌊i/32⌋, j, i) }",
              "{ [j, i] -> [floor(j/32), floord(i, 32), j, i] }");
  ExpectEqual("{ S(i) : i > 0; S(i) : i < -5 }", "{ S[i] : i > 0 or i < -5 }");
  ExpectEqual("{ (i) : ∃ k : i = 2k }", "{ [i] : i mod 2 = 0 }");
  ExpectEqual("{ (i) : ∀ k : k < i ∨ k > 3 }", "{ [i] : i > 3 }");
  ExpectEqual("{ (i) : ¬ (i ≥ 3 ⇒ i ≥ 7) }", "{ [i] : 3 <= i < 7 }");
  ExpectEqual("{ (i, j) -> (k, l) : (i, j) ≺ (k, l) }",
              "{ [i, j] -> [k, l] : i < k or (i = k and j < l) }");
  ExpectEqual("{ (i, j) -> (k, l) : i, j >>= k, l }",
              "{ [i, j] -> [k, l] : i > k or (i = k and j >= l) }");
  ExpectEqual("{ (i, j) : floor(i / 2 + j / 3) = 1 }", "{ [i, j] : 6 <= 3i + 2j <= 11 }");
  ExpectEqual("{ S₁(i); S 12(j) }", "{ S1[i]; S12[j] }");
  ExpectEqual("[S(i) → (i); T(j) → (j) : j > 0]", "{ S[i] -> [i]; T[j] -> [j] : j > 0 }");
  ExpectEqual("[n] -> [{ S(i) -> (i) : i < n }, { S(i) -> (2i); T(i) -> (0) }]",
              "{ S[i] -> [i, 2i] : i < n }");
  ExpectEqual("{ (i) : i = n() + 3() }", "{ [i] : i = n + 3 }");
  ExpectEqual("{ (i, j) : (∀ k (i <= k ∨ k < j)) ⇔ i <= j }", "{ [i, j] }");
  ExpectEqual("{ P((j + 1) -> A(j, k = j + n)); (i', i) }",
              "{ P[[i] -> A[i - 1, n + i - 1]]; [a, b] }");
  ExpectEqual("{ (i) : ∃ i : i = n ∧ i > 3 } + { (j, i) : ∃ i = 3 : i < n }",
              "{ [i] : n > 3; [j, i] : n > 3 }");
  ExpectEqual("{ Max(rat, Nan) → Sym(rat) : rat < n }", "{ Max[i, j] -> Sym[i] : i < n }");
  ExpectEqual("{ (i, i') : i' < n and n' > n }", "[n, n'] -> { [i, j] : j < n < n' }");
  ExpectEqual("{ (i, j) : i, j < n, m }", "{ [i, j] : i < n and i < m and j < n and j < m }");
}

// What the text defines by other operations.
TEST(CalculatorTest, OperationsFollowTheirDefinitions) {
  const std::string variables =
      "A := { S(i, j) : 0 <= i < n and 0 <= j <= i }; B := { S(i, j) : 2i <= n and j >= 1 };"
      "M := { S(i, j) -> T(i + j, 2i) : j > 0; S(i, j) -> T(0, 0) : j <= 0 };"
      "N := { T(a, b) -> (a - b) };";
  for (const char* law : {
           "A - B = A * complement B",
           "(A <= B) = is_empty (A - B)",
           "(A * B <= A) = true",
           "A + B = B + (A - B)",
           "(M . N)(A) = N(M(A))",
           "(M . N)^-1 = N^-1 . M^-1",
           "M(A) = range (M * A)",
           "domain M = range M^-1",
           "(N after M) = (M before N)",
           "A <= B <=> is_empty (A - B)",
           "(A = B => A <= B) and not (A < B and B < A) or false",
           "(M, M . N) = [{ S(i, j) -> (i + j, 2i, j - i) : j > 0; S(i, j) -> (0, 0, 0) : j <= 0 "
           "}]",
           "wrap (M * A) <= (A cross M(A))",
           "unwrap (wrap M) = M",
           "coalesce (A + B) = A + B",
           "(A % B) * B = A * B",
           "lexmin (A * B) <= (A * B)",
           "is_empty (sample A) = is_empty A",
           "simple_hull A >= A",
           "map (function M) = M",
           "map (function M . function N) = M . N",
           "domain (A << B) <= A",
           "(A << B) + (A >>= B) = (A -> B)",
           "injective (A -> A) = false",
           "parameters A = { : n > 0 }",
           "value(card A, n = 7) = value(card (A * B), n = 7) + value(card (A - B), n = 7)",
       }) {
    EXPECT_EQ(Eval(variables + law), "true\n") << law;
  }
}

TEST(CalculatorTest, CountsAreFunctions) {
  const std::string c = "c := card { S(i) -> A(a) : 0 <= a < n - i; T() -> A(a) : 0 <= a < 5 };";
  EXPECT_EQ(Eval(c + "c({ S(4) })"), "[n] -> { (-4 + n) : n >= 5 }\n");
  EXPECT_EQ(Eval(c + "value(c({ S(4) }), n = 10)"), "6\n");
  EXPECT_EQ(Eval(c + "c({ T() })"), "5\n");
  EXPECT_EQ(Eval(c + "value(c({ T() : n > 3 }), n = 3)"), "0\n");
  EXPECT_EQ(
      Eval(c + "c({ S(4); T() })"),
      "error: expression:1:72: expected a set of one element, as { S[3] }, found more than one");
  EXPECT_EQ(Eval("{ S(i) -> # (a) : 0 <= a < i and i < 3 }"),
            Eval("card { S(i) -> A(a) : 0 <= a < i and i < 3 }"));
  EXPECT_EQ(Eval("{# i : 0 <= i < n; # i, j : 0 <= i, j < n}"), "[n] -> { (n + n^2) : n > 0 }\n");
}

// '#' counts in a literal, before what can be counted; elsewhere a comment begins.
TEST(CalculatorTest, CommentsBeginWithTheSameSign) {
  EXPECT_EQ(Eval("{ # all of them\n (i) : i = 3;  # one: three\n (4) }  # end : }"),
            "{ [i = 4]; [i = 3] }\n");
  EXPECT_EQ(Eval("{ (i) -> # the image\n (3) }"), "{ [i] -> [3] }\n");
}

// The quotient of a literal rounds down, and what comes of it says so.
TEST(CalculatorTest, QuotientsRoundDown) {
  EXPECT_EQ(Eval("{ (i, j) : i/2 = j } = { [i, j] : 0 <= i - 2j <= 1 }"),
            "true  # '/' rounds down\n");
  EXPECT_EQ(Eval("{ (-7/2) }"), "{ [-4] }  # '/' rounds down\n");
  EXPECT_EQ(Eval("D := { S(i) : 0 <= i/4 < n }; (card D)"),
            "[n] -> { 4 * n : n > 0 }  # '/' rounds down\n");
  EXPECT_EQ(Eval("{ (i) -> (i/2 + 1) : i = 0 }^+ "),
            "{ [i = 0] -> [1] }  # exact; '/' rounds down\n");
  EXPECT_EQ(Eval("{ (i) -> (floor(i/2)) : i = 0 }"), "{ [i = 0] -> [0] }\n");
}

// Each limit on isl's operations gives the value or one error, the same for all.
TEST(CalculatorTest, EveryLimitGivesAnErrorOrTheValue) {
  testing::internal::CaptureStderr();
  for (const char* text : {
           "card { S(i, j, k) : 0 <= i, j, k < n }",
           "card { S1(i, j) : 0 <= i < N - M + 4 and i >= N - M and 0 <= j <= N - 2i }",
           "(card { S(i) -> A(a) : i <= 2a <= i + n })({ S(4) })",
           "value(card { S(i) : 0 <= 3i < n }, n = 10)",
           "{ (i, j) -> (i + 1, j) : 0 <= i < n }^+",
           "function { S(i) -> (i/32) } + 3 * function { S(i) -> (i % 4) }",
           "[{ S(i) -> (i/32) }, { S(i) -> (i) }]",
           "points { (i) : 0 <= i < 3 }",
           "project(at({ S(i, j) : 0 <= i <= j < n }, n = 5), j)",
           "{ (i) : forall k : k > i => k > 3 } <= { (i) : i > 2 }",
           "space { S(i) -> A(i) }; isomorphic({ S(i) }, { T(i) })",
           "convex_hull { (i, j) : i = j = 0 or (i = 4 and j = 4) }",
       }) {
    const std::string whole = Eval(text);
    for (unsigned long limit = 1;; limit += 1 + limit / 200) {
      const absl::StatusOr<std::string> result = Evaluate(text, {.max_operations = limit});
      if (result.ok()) {
        EXPECT_EQ(*result, whole) << text << ", " << limit << " operations";
        break;
      }
      const std::string message(result.status().message());
      ASSERT_THAT(message,
                  testing::MatchesRegex("expression:1:[0-9]+: expected an operation within the "
                                        "limit on isl's operations, found one that needs more"))
          << text << ", " << limit << " operations";
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(CalculatorTest, ClosuresSayWhetherTheyAreExact) {
  EXPECT_EQ(Eval("{ (i) -> (i + 1) : 0 <= i < 3 }^+"),
            "{ [i] -> [o0] : 0 <= i <= 2 and o0 > i and 0 < o0 <= 3 }  # exact\n");
  // No exact closure is known for this one; what contains it says so, and so does what is made of it.
  const std::string inexact = "R := closure { (i, j) -> (j, i + j) : 0 <= i, j < 100 };";
  EXPECT_EQ(Eval(inexact + "exact R"), "false\n");
  EXPECT_THAT(Eval(inexact + "R"), HasSubstr("  # over-approximation\n"));
  EXPECT_THAT(Eval(inexact + "is_empty (domain R)"), "false  # over-approximation\n");
}

TEST(CalculatorTest, PrintedValuesReadBack) {
  for (const char* text : {
           "{ S(i, j) : 0 <= i < n and i <= j < 10 and j % 3 = i % 2 }",
           "{ S(i) -> (floor(i/32), i % 32) : 0 <= i < n }",
           "lexmin { S(i, j) : 0 <= i < n and i <= j < 10 }",
           "{ ((i) -> A(i)) -> B(i + 1) : exists k : i = 5k or k = 7i }",
           "{ S(i) : i > 0 } << { S(i) : i < n }",
           "{ : n > 3 and m < n }",
           "{ (i) : n = 3i } cross { T(); T(j) }",
       }) {
    std::string printed = Eval(text);
    ASSERT_THAT(printed, testing::Not(HasSubstr("error"))) << text;
    printed.pop_back();
    ExpectEqual(text, printed);
  }
}

TEST(CalculatorTest, ErrorsHavePlaceExpectationAndFinding) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{ S[i : i > 0 }", "1:7: expected '[' or '(' after the name of a tuple, found ':'"},
      {"{ S[i] : i > 0 and }", "1:20: expected an integer expression, found '}'"},
      {"A := { (i) };\nA +", "2:4: expected a set, a map or a function, found the end of the text"},
      {"[n] -> { S[i] : i < m }",
       "1:21: expected a variable of the tuple or a declared parameter, found 'm'"},
      {"[n, n] -> { [i] }", "1:5: expected another parameter, found 'n' a second time"},
      {"{ S(i) : ≤ 3 }", "1:10: expected an integer expression, found '≤'"},
      {"{ (i) : i % 0 = 1 }", "1:13: expected a positive constant as the divisor, found 0"},
      {"{ (i) : i*i > 3 }",
       "1:10: expected an affine expression, found a product of two variable expressions"},
      {"{ (i); (i) -> (i) }", "1:8: expected a set, as the first part is, found a map"},
      {"{ (i, j) : i, j << 1 }",
       "1:20: expected a list of 2, as on the other side, found one of 1"},
      {"{ S(i) } * { T(i) }",
       "1:10: expected operands of '*' in isomorphic spaces, found { S[i] } and { T[i] }"},
      {"{ S(i) } <= { S(i, j) }",
       "1:10: expected operands of '<=' in isomorphic spaces, found { S[i] } and { S[i, j] }"},
      {"{ S(i) -> A(i) }({ T(i) })",
       "1:17: expected a map and a set in isomorphic spaces to apply, found the domain { S[i] } "
       "and "
       "{ T[i] }"},
      {"function { (i) -> (j) }",
       "1:1: expected a map with one image for each element of its domain, found one with more for "
       "some element"},
      {"card 3", "1:1: expected a set or a map as operand 1 of 'card', found a number"},
      {"card({ (i) }, 3)", "1:1: expected 'card' with 1 operands, found 2"},
      {"card { (i) : i > 0 }",
       "1:1: expected a set with finitely many elements, found one whose elements have no upper "
       "bound"},
      {"card { (i, j, k) : 0 <= i, j, k and 31i + 37j + 41k <= n }",
       "1:1: expected a set that can be counted, found one for which counting makes a polynomial "
       "with too many terms"},
      {"value(card { (i) : 0 < i < n }, m = 3)",
       "1:1: expected a value for the parameter 'n', found none"},
      {"value(card { S(i) -> A(a) : 0 <= a < 4 })",
       "1:1: expected a function of parameters, found one of the elements of { S[i] }"},
      {"(card { S(i) -> A(a) : 0 <= a < 4 })({ T(1) })",
       "1:37: expected a quasi-polynomial and a set in isomorphic spaces to apply, found one of { "
       "S[i] } and { T[i0] }"},
      {"[{ S(i) -> (i) }, { T(i) -> (i) }]",
       "1:1: expected pieces whose domains are in isomorphic spaces, found { S[i] } and { T[i] }"},
      {"{# i : 0 <= i < n; (j) }",
       "1:20: expected a part with '#', as the first one is, found one without"},
      {"{ S(i, i()) }", "1:8: expected a symbolic constant before '()', found the variable 'i'"},
      {"true and 3", "1:6: expected two truth values, found a truth value and a number"},
      {"{ (i) } + 3",
       "1:9: expected two sets, maps, functions, quasi-polynomials or numbers, found a set + a "
       "number"},
      {"lexmin { (i) : i < 3 }",
       "1:1: expected a set with a first and a last element in lexicographic order, found one that "
       "is unbounded"},
      {"X", "1:1: expected a variable that has a value, or a function, found 'X'"},
      {"card := 3",
       "1:1: expected the name of a variable, found 'card', which is a word of the language"},
      {"project({ S(i) }, j)", "1:19: expected a dimension of { S[i] }, found 'j'"},
      {"{ (i) -> (i) }^0", "1:15: expected a power other than 0, found ^0"},
      {"a\x01", "1:2: expected a name, a number or an operator, found byte 0x01"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Eval(text), "error: expression:" + message) << text;
  }
}

TEST(CalculatorTest, NestingAndOperationsHaveLimits) {
  const std::string deep = StrCat("{ [i] : ", std::string(5000, '('), "i", std::string(5000, ')'));
  EXPECT_THAT(Eval(deep), HasSubstr("expected at most 150 levels of nesting, found more"));
  EXPECT_THAT(Eval(std::string(5000, '[')), HasSubstr("error: expression:1:"));
  std::string longer = "1";
  for (int i = 0; i < 5000; ++i) longer += " + 1";
  EXPECT_THAT(Eval(longer), HasSubstr("expected at most 1000 operands in a row, found more"));

  CalculatorOptions options;
  options.max_operations = 300;
  const absl::Status status =
      Evaluate("closure { (i, j) -> (i + 1, j); (i, j) -> (i, j + i) : i > 3 }", options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit"));
}

TEST(CalculatorTest, NothingGoesToStderr) {
  testing::internal::CaptureStderr();
  Eval("{ S[i : i > 0 }");
  Eval("{ S[i] } * { T[i] }");
  Eval("card { [i] : i > 0 }");
  CalculatorOptions options;
  options.max_operations = 100;
  (void)Evaluate("card { [i, j] : 0 <= i < n and 0 <= 3j <= i }", options);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace polynao::poly
