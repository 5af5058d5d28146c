// Which stages run in the tiles of which others.
#ifndef COMPILER_POLY_FUSE_GROUPS_H_
#define COMPILER_POLY_FUSE_GROUPS_H_

#include <string>
#include <vector>

#include "compiler/poly/arrange/options.h"
#include "compiler/poly/fuse/group_cost.h"

namespace polynao::poly {

struct PlannedGroup {
  Group group;
  GroupCost cost;
  // With `group_tile`: why stages that might have run in its tiles do not.
  std::vector<std::string> refusals = {};
};

// The stages of a group, its root last.
std::vector<int> MembersOf(const Group& group);

// Groups in an order that keeps all dependences; each stage is in one. From the last stage to the first: those that are
// in no group yet become roots, and take in the stages before, of which all readers are in the group, as long as that
// is cheaper than to run them alone. "overlap": as PolyMage does it (fuse.h). Tile sizes and `join_all` of the options
// come first; arrays with fewer dimensions than there are sizes take the last ones.
std::vector<PlannedGroup> FindGroups(const std::vector<Stage>& stages, const GroupModel& model,
                                     const ScheduleOptions& options);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_GROUPS_H_
