// A calculator over unions of integer sets and affine maps.
//
//   A := { S1(i, j) : 0 <= i < n and 0 <= j <= i };       symbolic constants need no declaration
//   B := [n] -> { S1[i, j] -> [i, 32*floor(j/32)] };      isl's notation
//   B(A);  card A;  lexmin (A - { S1(i, i) });            prints three lines
//
// docs/calculator.md has the operators and functions with an example each. Syntax:
// calculator_parser.cc; of the literals: calculator_literal_parser.cc.
#ifndef COMPILER_POLY_CALCULATOR_CALCULATOR_H_
#define COMPILER_POLY_CALCULATOR_CALCULATOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao::poly {

struct CalculatorOptions {
  // Names the text in errors: "expression:1:7: expected ..., found ...".
  std::string name = "expression";
  // isl may do this many operations for one statement, by its own count; 0 means no limit.
  unsigned long max_operations = 20'000'000;
};

// Runs the statements of a script in order. Returns what it prints: the value of each statement that
// is no assignment, on a line of its own, in isl's notation (a set or map reads back). Transitive
// closures, and values computed from them, have "  # exact" or "  # over-approximation" behind them.
//
// Errors have the place, what was expected and what was found: of syntax, of operands whose kinds or
// spaces do not fit (both are named), of a parameter without value, of a set that is infinite where
// its elements are counted, and of a statement that needs more operations than the limit.
absl::StatusOr<std::string> Evaluate(std::string_view text, const CalculatorOptions& options = {});

// The names of the functions, sorted.
std::vector<std::string> CalculatorFunctions();

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CALCULATOR_CALCULATOR_H_
