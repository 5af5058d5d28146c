// Shapes of buffers: those that parameters have in one call, and what rows of memory are.
#ifndef COMPILER_IR_SHAPES_H_
#define COMPILER_IR_SHAPES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

using IntValues = absl::flat_hash_map<Var, int64_t>;

// The value of integer arithmetic over variables of known values, as an extent is. Errors: another
// variable, a load or a call, a division by zero, a result that its type does not hold.
absl::StatusOr<int64_t> EvaluateInt(Expr e, const IntValues& values);

// The shapes of the buffer parameters, in order, where the scalar parameters have `values` (those
// that no extent uses may be missing). A negative extent counts as 0. Errors name the parameter.
absl::StatusOr<std::vector<std::vector<int64_t>>> ParameterShapes(const Function& function,
                                                                  const IntValues& values);

// The dimension along which elements are neighbours in memory: the last one that has more than one. Nothing if all have
// one.
std::optional<size_t> RowDimension(Buffer buffer);

}  // namespace polynao::ir

#endif  // COMPILER_IR_SHAPES_H_
