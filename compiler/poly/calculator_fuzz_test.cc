// Damaged scripts for the calculator: each one runs or gets an error with its place; what a script
// prints, if it is a set or a map, reads back as the same.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "compiler/poly/calculator.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

CalculatorOptions Options() {
  CalculatorOptions options;
  options.name = "m.poly";
  // Small, so that no input takes long.
  options.max_operations = 100'000;
  return options;
}

absl::Status RunAndReadBack(const std::string& input) {
  const absl::StatusOr<std::string> printed = Evaluate(input, Options());
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
