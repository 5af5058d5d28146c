// One static control part in a new order.
#ifndef COMPILER_POLY_ARRANGE_SCHEDULE_PART_H_
#define COMPILER_POLY_ARRANGE_SCHEDULE_PART_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The new code of a part, and its report. Errors: InvalidArgument for a wrong "text"; Unimplemented where tiles would
// be wrong. Throws isl::exception.
absl::StatusOr<ir::Stmt> SchedulePart(const Scop& scop, const ScheduleOptions& options,
                                      PartReport* report);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_SCHEDULE_PART_H_
