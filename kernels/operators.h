// All operators, by name.
#ifndef KERNELS_OPERATORS_H_
#define KERNELS_OPERATORS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

absl::Span<const Operator> Operators();

// The operator and a check of the case: the name exists, the operator takes the type, the shape is
// one (extents of 0 and more, fewer than 2^40 elements), there are as many shapes as the operator
// takes, a scalar is one of the type and the operator takes it, attributes exist and are numbers or
// words as they must be, and what the operator itself checks. NotFound: there is no such operator;
// the message lists them.
absl::StatusOr<const Operator*> FindOperator(const OperatorCase& c);

}  // namespace polynao::kernels

#endif  // KERNELS_OPERATORS_H_
