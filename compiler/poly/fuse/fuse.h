// Post-tiling fusion: the last stage of a group is tiled first, and each tile computes what it needs of the stages before.
#ifndef COMPILER_POLY_FUSE_FUSE_H_
#define COMPILER_POLY_FUSE_FUSE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/options.h"
#include "compiler/poly/scop.h"

namespace polynao::poly {

// "fuse": groups and tile sizes by the cost model (group_cost.h). "overlap": as PolyMage (Mullapudi, Vasista, Bondhugula, ASPLOS 2015)
// does it: tiles of fixed sizes, and a stage joins a group while little is computed twice. A part without stages that share
// tiles is scheduled as by "auto".
bool IsFusion(std::string_view strategy);

// The new code of a part for such a strategy, and its report. Stages that stay alone are scheduled as by "auto". Errors as
// of SchedulePart. Throws isl::exception.
absl::StatusOr<ir::Stmt> FusePart(const Scop& scop, const ScheduleOptions& options,
                                  PartReport* report);

// The statement without allocations of constant size that nothing below them uses.
ir::Stmt WithoutUnusedBuffers(ir::Stmt s);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_FUSE_H_
