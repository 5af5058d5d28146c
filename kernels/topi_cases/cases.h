// The table of operator cases that loop optimizations are measured on: topi.jsonl, the numbers of
// Apache TVM 0.7's TOPI tests (Apache-2.0), 27 operators and 511 cases, one JSON object per line.
#ifndef KERNELS_TOPI_CASES_CASES_H_
#define KERNELS_TOPI_CASES_CASES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// A line of the table: nao run OP --case=ID.
struct TopiCase {
  std::string op;
  int id = 0;  // counts from 1 inside an operator
  // One for each tail that the tests fuse behind the operator; each is a function of its own.
  std::vector<OperatorCase> functions;
};

// The cases of a table in the form of topi.jsonl, whose name in messages is `name`. A line has
//   op, id   the operator, and the case's number
//   params   attributes of the operator by their names (others say what the shapes say too);
//            `dtype`; `a_max` for the number that clip takes; `epilogues` for the functions
//   shapes   of the inputs by their names in Operator::shapes, and `out`
// Errors (NAME:LINE: ...): no JSON, a key that is missing or of another type, an operator that does not
// exist, a case that it does not take, an output of another shape than the operator's.
absl::StatusOr<std::vector<TopiCase>> ParseTopiCases(std::string_view text, std::string_view name);

// The table itself, in its order.
absl::Span<const TopiCase> TopiCases();

// NotFound: the operator has no cases, or none of that number; the message lists the numbers.
absl::StatusOr<const TopiCase*> FindTopiCase(std::string_view op, int id);

// The text of topi.jsonl.
std::string_view TopiText();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_CASES_CASES_H_
