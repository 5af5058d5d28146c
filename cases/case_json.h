// Operator cases as JSON: what a bundle for a GPU, a line of its results and the description of a program have in
// common.
#ifndef CASES_CASE_JSON_H_
#define CASES_CASE_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/te/operator.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::cases {

// {"op": "conv2d", "shape": [56, 56, 64], "operand_shapes": [[64, 3, 3, 64]], "dtype": "i8", "attributes": {"stride":
// "2"}}; "scalar", "schedule" and "untuned" only where the case has them.
nlohmann::ordered_json CaseJson(const kernels::OperatorCase& c);

// The case of that JSON, not yet checked by FindOperator. Further members mean nothing. Errors begin with `place` and
// name the member, what is expected and what came.
absl::StatusOr<kernels::OperatorCase> ParseCaseJson(const nlohmann::ordered_json& json,
                                                    std::string_view place);

// Both are one computation: the same operator, shapes, type, attributes and scalar, whatever the schedules are.
bool SameComputation(const kernels::OperatorCase& a, const kernels::OperatorCase& b);

}  // namespace polynao::cases

#endif  // CASES_CASE_JSON_H_
