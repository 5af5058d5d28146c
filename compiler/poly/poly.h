// The scheduler of loop nests: analyses a function, gives its static control parts a new order with
// tiles, parallel and vector loops, and writes it back as loop IR.
//
//   for (i, 0, n) for (j, 0, m) for (k, 0, l)        parallel (it, ..) for (jt, ..) for (kt, ..)
//     C[i, j] = C[i, j] + A[i, k] * B[k, j]    -->     for (i, ..) for (k, ..) vectorize (j, ..)
//                                                        C[i, j] = C[i, j] + A[i, k] * B[k, j]
#ifndef COMPILER_POLY_POLY_H_
#define COMPILER_POLY_POLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/options.h"

namespace polynao {

struct PassInfo;

namespace poly {

// Schedules the parts of `function`. What stays as it is is said in the report, not an error: parts for
// which isl needs more than its operations, functions without a part. Errors: an unknown strategy, a bad
// tile size; for "text" also what ParseSchedule refuses. If nothing changed, the body is the same node.
//
// With `options.constants`, packed tiles of these may take `function` apart: it then has panels as parameters in their
// place, and the report's `before` fills them. A part that has the panels of several nests fills all of them.
//
// Results are the same bits, unless `reassociate` or `takes_dots` lets sums of floats change their order.
absl::StatusOr<ScheduleReport> Schedule(ir::Function& function,
                                        const ScheduleOptions& options = {});

}  // namespace poly

// The pass by name (registry.h).
PassInfo SchedulePass();

}  // namespace polynao

#endif  // COMPILER_POLY_POLY_H_
