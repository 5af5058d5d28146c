// Packs the contractions of a static control part, and schedules what is around them.
//
//   for (i) { for (j) { C[i, j] = 0; for (k) { C[i, j] += A[i, k] * B[k, j] } } }     S0, S1
//   for (i) { for (j) { D[i, j] = max(C[i, j], 0) } }                                 S2
//     -->   S1 in packed tiles, begun as S0 has it; then S2, as SchedulePart arranges it
#ifndef COMPILER_POLY_PACK_PACK_PART_H_
#define COMPILER_POLY_PACK_PACK_PART_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// What SchedulePart returns, but with `auto` contractions are packed where the cost models find that faster. Such a
// contraction is a statement that depends on no other one in a circle, so that all of its instances can run after those
// that come before and before those that come after. Errors: as of SchedulePart. Throws isl::exception.
absl::StatusOr<ir::Stmt> SchedulePacked(const Scop& scop, const ScheduleOptions& options,
                                        PartReport* report);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_PACK_PART_H_
