// Integers that keep affine conditions, by isl.
#ifndef COMPILER_IR_ASSERTED_VALUES_H_
#define COMPILER_IR_ASSERTED_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// Values of integer variables for which all `conditions` hold. Each is as near to the one that is `wanted` as the
// values before it let it be; those of u64 are given by their bits.
//
//   n == 2 * m, n % 3 == 0     wanted n = 5, m = 0: n = 6, m = 3
//
// Here + - and * by constants, / and % by positive constants, min, max and casts are mathematical, so that the caller
// checks what depends on wrapping. A condition that has anything else (a product of variables, a float) is left out.
// None: no values of the variables' types keep the others, or isl gave up.
std::optional<std::vector<int64_t>> NearestValues(absl::Span<const Expr> conditions,
                                                  absl::Span<const Var> vars,
                                                  absl::Span<const int64_t> wanted);

}  // namespace polynao::ir

#endif  // COMPILER_IR_ASSERTED_VALUES_H_
