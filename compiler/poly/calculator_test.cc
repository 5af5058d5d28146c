#include "compiler/poly/calculator.h"

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
  ExpectEqual("{ (i, j) : i, j < n, m }", "{ [i, j] : i < n and i < m and j < n and j < m }");
}

// The text's (2-16) to (2-20): the domains of a matrix product's statements, and their union.
TEST(CalculatorTest, TheTextsUnions) {
  const std::string s1 = "{ S1(i,j):0≤ i ≤ M∧ 0≤ j ≤ N }";
  const std::string s2 = "{ S2(i,j,k):0≤ i ≤ M∧ 0≤ j ≤ N∧ 0≤ k ≤ K }";
  ExpectEqual(s1 + " ∪ " + s2,
              "{ S1(i,j):0≤ i ≤ M∧ 0≤ j ≤ N ; S2(i,j,k):0≤ i ≤ M∧ 0≤ j ≤ N∧ 0≤ k ≤ K }");
  // A second part of S1. The text simplifies the union to the box { 0 <= i <= 2M and 0 <= j <= 2N },
  // which is its hull: the elements with i > M and j < N are in neither part.
  const std::string both = s1 + " + { S1(i,j): M ≤ i ≤2 M∧N ≤ j ≤2 N }";
  EXPECT_EQ(Eval(StrCat("(", both, ") < { S1(i,j) : 0 <= i <= 2M and 0 <= j <= 2N }")), "true\n");
  EXPECT_EQ(Eval(StrCat("isomorphic(", s1, ", ", s2, ")")), "false\n");
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
      {"value(card { (i) : 0 < i < n }, m = 3)",
       "1:1: expected a value for the parameter 'n', found none"},
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
