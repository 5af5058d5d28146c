// Damaged scripts for the calculator, half of them with few operations for isl: each one runs or gets an error of one
// line, with its place and no text of isl's; what a script prints, if it is a set or a map, reads back as the same.
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "compiler/poly/calculator/calculator.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

// So that no input takes long.
constexpr unsigned long kMostOperations = 100'000;

CalculatorOptions Options(unsigned long max_operations = kMostOperations) {
  return {.name = "m.poly", .max_operations = max_operations};
}

// The same for the same input: all, or 1 to 8192, small numbers as often as large ones.
unsigned long Operations(const std::string& input) {
  const size_t hash = std::hash<std::string>()(input);
  return hash % 2 == 0 ? kMostOperations : 1 + (hash >> 16) % (1ul << ((hash >> 8) % 14));
}

absl::Status RunAndReadBack(const std::string& input) {
  const absl::StatusOr<std::string> printed = Evaluate(input, Options(Operations(input)));
  const std::string message(printed.status().message());
  if (absl::StrContains(message, "\n") || absl::StrContains(message, "error of isl")) {
    return absl::InternalError(StrCat("not a message of one line for its reader: ", message));
  }
  if (absl::IsResourceExhausted(printed.status()) && Operations(input) < kMostOperations) {
    // Another limit gives the value, or another error.
    return Evaluate(input, Options()).status();
  }
  if (!printed.ok()) return printed.status();
  for (absl::string_view line : absl::StrSplit(*printed, '\n')) {
    // Sets and maps; functions and quasi-polynomials have parentheses or no tuple as values.
    if (!absl::StrContains(line, "{") || absl::StrContains(line, "(") ||
        absl::StrContains(line, "-> {") || absl::StrContains(line, " and { ")) {
      continue;
    }
    const absl::StatusOr<std::string> same =
        Evaluate(StrCat(std::string(line), "\n = ", std::string(line)), Options());
    if (same.ok() && !absl::StartsWith(*same, "true")) {
      return absl::InternalError(StrCat("not equal to itself: ", std::string(line)));
    }
  }
  return absl::OkStatus();
}

TEST(CalculatorFuzzTest, MutatedScripts) {
  FuzzTarget target;
  target.corpus = {
      "A := { S1(i, j) : 0 ≤ i < n ∧ 0 ≤ j ≤ i };\nB := A * { S1(i, j) : j % 3 = 1 };\ncard B; B\n",
      "[n, m] -> { S[i, j] -> [floor(i/32), j] : 0 <= i, j < n or (i = m and not j > 3) };\n",
      "M := { S(i) -> (i + 1) : 0 <= i < n }; M^+; M^-1; M . { (a) -> (2a) }; M({ S(3) });\n",
      "{ (i) : exists k, l = floor(i/2) : i = 3k and l >= 0 } - { (i) : forall k : k > i => k > 3 "
      "};\n",
      "F := function { S(i) -> (i/2) : i % 2 = 0 }; F + 3 * F; domain F; # comment\n",
      "{ (i, j) -> (k, l) : (i, j) << (k, l) and min(i, k) >= 0 } * { (i, j) : i = j };\n",
      "project({ S(i, j) : 0 <= i <= j < n }, j, 0); at({ S(i) : i < n }, n = -5);\n",
      "value(card { S(i) : 0 <= i < n }, n = 10); lexmin { P((i) -> A(i)) : i > 3; T[] : n > 3 "
      "};\n",
      "surjective({ (i) -> (2i) }, { (i) : i % 2 = 0 }); not ({ } = ∅); points { (i) : 0 <= i < 3 "
      "}\n",
  };
  for (const char* text : {
           "[ S 1 ( i,j ) → ( i,j )]; [n] -> [{ S(i) -> (i/32) : i < n }, { S(i) → ( i ) }];\n",
           "{# i : 0 <= i < n; # T(i, j) : 0 <= i, j < n()}; { S(i) -> # j : j = 3() or 0 <= j < i "
           "};\n",
           "A := { S(i) : i < n }; B := { S₁(i) } + { S(1) }; A ⊆ B ⇔ A \\ B = ∅ ∧ ¬(A = B); "
           "(identity A, identity A)\n",
           "c := card { S(i, j) -> A(a) : i <= 2a <= j + n }; c({ S(4, 5) }); value(c({ S(1, 2) : "
           "n > 3 }), n = 5)\n",
           "{ (i) : (∀ k (i <= k or k < 3)) <=> i/2 <= 1 }; convex_hull { (i, j) : i = j = 0 or i "
           "+ j = 4 = j };\n",
           "(function { S(i) -> (i/4) } . function { (a) -> (a % 3) })({ S(70) }); sample { (i) : "
           "3 < i }; lexmax { "
           "(i) -> (j) : j <= i };\n",
           "coalesce (unwrap (wrap ({ S(i) -> A(i) } * { S(i) : i > 0 }))) % { S(i) : i > -4 }; "
           "range_product({ S(i) -> "
           "A(i) }, { S(i) -> B(j) : j = 1 });\n",
           "polyhedral_hull { (i) : 0 <= i <= 9 and i % 4 = 1 }; complement { (i) : i > n }; "
           "deltas ({ (i) } << { (i) : "
           "i < 7 }); bijective({ (i) -> (-i) }, { (i) });\n",
       }) {
    target.corpus.push_back(text);
  }
  target.parse = RunAndReadBack;
  target.place = R"(m\.poly:\d+:\d+: expected )";
  target.max_bytes = 2048;
  const FuzzResult result = Fuzz(target, FuzzCases(1500), FuzzSeed());
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.accepted, 50);
  EXPECT_GT(result.refused, 50);
}

}  // namespace
}  // namespace polynao::poly
