// Prints what --explain shows of cse: the tables of "TVM TIR Pass - CSE", of how often each scope computes what, from
// step to step.
#ifndef COMPILER_PASSES_CSE_TABLES_H_
#define COMPILER_PASSES_CSE_TABLES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::cse {

// The article's table of computations (ComputationsDoneBy): how often `s` evaluates each expression that
// `is_candidate`, in the order in which they first stand there. What stands inside of a candidate does
// not count.
//
//   B[i1] = (x + y) + z  B[i2] = (x + y) + z  B[i3] = x + y    -->    ((x + y) + z, 2), (x + y, 1)
using ComputationTable = std::vector<std::pair<ir::Expr, int64_t>>;
ComputationTable ComputationsDoneBy(ir::Stmt s, const std::function<bool(ir::Expr)>& is_candidate);

// As the article prints it, a line for each computation: "(((x + y) + z), 2)".
std::string TableText(const ComputationTable& table);

// A new variable and what it holds, as the program had it.
struct NewVariable {
  ir::Var var;
  ir::Expr value;
};

// The article's log for one scope, `s`, in front of which `variables` are created, longer ones first: the
// statement and its table before the first one, after each, and inside of the lets.
std::string ScopeLog(ir::Stmt s, absl::Span<const NewVariable> variables,
                     const std::function<bool(ir::Expr)>& is_candidate);

}  // namespace polynao::cse

#endif  // COMPILER_PASSES_CSE_TABLES_H_
