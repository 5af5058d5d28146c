// From a schedule to a function of loop IR.
//
// Parameters: the graph's placeholders in the order of their making, the outputs in the schedule's
// order, the scalars. Every loop has constant bounds; what a split or an inferred region has too
// much is cut off by `if (xo*4 + xi < 14)` around the innermost statement. A reduction is an
// initialisation (loops x.init) right outside its outermost reduce loop, then the update.
//
// A stage computed at a loop is allocated at the start of that loop's body. Its size is that of an
// interval, per dimension, around all that the rest of the body reads (IntervalOf); where no
// constant size is known (A[B[i]]) the dimension is kept whole. Element x of dimension d of the
// storage is element x + (start of the interval) of the tensor.
#ifndef COMPILER_TE_LOWER_H_
#define COMPILER_TE_LOWER_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/te/schedule.h"

namespace polynao::te {

// The function, or the first mistake made in the graph or the schedule. Errors found here: a stage
// computed where some reader does not see it, a thread axis bound in a loop over the same axis, a
// loop too long for its index type, an alignment that no padding reaches.
absl::StatusOr<ir::Function> Lower(const Schedule& schedule);

}  // namespace polynao::te

#endif  // COMPILER_TE_LOWER_H_
