// Post-tiling fusion: the last stage of a group is tiled first, and each tile computes what it needs of the stages
// before.
#ifndef COMPILER_POLY_FUSE_FUSE_H_
#define COMPILER_POLY_FUSE_FUSE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/fuse/grouping.h"
#include "compiler/poly/fuse/groups.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// "fuse": groups and tile sizes by the cost model (group_cost.h). "overlap": as PolyMage (Mullapudi, Vasista,
// Bondhugula, ASPLOS 2015) does it: tiles of fixed sizes, and a stage joins a group while little is computed twice. A
// part without stages that share tiles is scheduled as by "auto". Both are fusions (order/strategies.h).

// The code that a machine runs stages with.
class StageCode {
 public:
  virtual ~StageCode() = default;
  // Returns true if Group also makes the code of stages that have tiles to themselves.
  virtual bool TilesSingles() const { return false; }
  // Of a group with producers; `part` has its stages alone. After a FailedPrecondition, Alone makes the code of these
  // stages.
  virtual absl::StatusOr<ir::Stmt> Group(const Scop& part, const std::vector<Stage>& stages,
                                         const PlannedGroup& planned, PartReport* report) = 0;
  // Of stages that share no tiles; adds to the report. `is_all`: they are all that there are.
  virtual absl::StatusOr<ir::Stmt> Alone(const Scop& part, bool is_all, PartReport* report) = 0;
};

// The code of a part, one group after the other.
absl::StatusOr<ir::Stmt> FuseStages(const Grouping& grouping, StageCode& code, PartReport* report);

// "a, b", and "c+d" for a stage with two buffers.
std::string NamesOf(const Stage& stage);
// ", with a, b": what the tiles of the group also compute.
std::string ProducersText(const std::vector<Stage>& stages, const Group& group);
// "1.07 times the instances", of the model.
std::string RedundancyText(double redundancy);
// "32 x all"
std::string SizesText(const Group& group);
std::string Fixed(double value, int digits);

// "y, 3 stages in tiles", "y, 1 stage, scheduled as by auto".
std::string TitleOf(const GroupReport& group);

// The new code of a part for such a strategy, and its report. Stages that stay alone are scheduled as by "auto". Errors
// as of SchedulePart. Throws isl::exception.
absl::StatusOr<ir::Stmt> FusePart(const Scop& scop, const ScheduleOptions& options,
                                  PartReport* report);

// Adds to the report how many stages the function has, and the bytes that they move to and from memory if each runs
// alone, by the model for that machine.
void ReportStagesAlone(const ir::Function& function, const ScheduleOptions& options,
                       ScheduleReport* report);

// The statement without allocations that nothing below them uses.
ir::Stmt WithoutUnusedBuffers(ir::Stmt s);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_FUSE_H_
