// Finds the scalar parameters of an instruction from the strides and counts of a loop nest.
#ifndef COMPILER_PASSES_TENSOR_PARAMETERS_H_
#define COMPILER_PASSES_TENSOR_PARAMETERS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"

namespace polynao {

// An i64 expression over the parameters, and the i64 expression of the program that it must equal.
struct ParameterEquation {
  ir::Expr pattern;
  ir::Expr value;
};

struct ParameterProblem {
  std::vector<ir::Var> parameters;  // i64, unknown
  std::vector<ParameterEquation> equations;
  // i1, over parameters and expressions of the program; @require in the table.
  std::vector<ir::Expr> conditions;
  // How many strides of the pattern contain the parameter, whether or not the nest has their loops.
  absl::flat_hash_map<ir::Var, int> uses;
};

// `e` with its conversions to i64 moved from sums to their terms, where proofs can look inside.
// `e` is an index, a bound or a condition of the program, where i32 arithmetic does not wrap.
ir::Expr Widened(ir::Expr e);

// `e` with the parameters' values put in, widened and simplified; null if a parameter without a
// value is left.
ir::Expr BindParameters(ir::Expr e, const ir::VarMap& values, absl::Span<const ir::Var> parameters,
                        arith::Analyzer& analyzer);

// Calls `accept` with values of the parameters that satisfy the equations until it returns true
// (then this function does too) or there are no further ones. `accept` checks the conditions; here
// they only help to choose parameters that the equations leave open. If no values satisfy the
// equations, `why` names one that fails.
//
//   stride_w * ci = 32, ci = 16   -->  stride_w = 2: one unknown is left
//   co / 64 = 2                   -->  co = 128: the smallest solution
//   stride_h * wi = 60, dilation_h * wi = 30
//                                 -->  wi is in both: the divisors of gcd(60, 30), smallest first
//   no equation has pitch         -->  the smallest value that the conditions allow, else 0:
//                                      pitch >= kh * kw * ci and pitch % 64 == 0 give 192 for
//                                      3 * 3 * 16
bool SolveParameters(const ParameterProblem& problem, arith::Analyzer& analyzer,
                     const std::function<bool(const ir::VarMap&)>& accept, std::string* why);

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSOR_PARAMETERS_H_
