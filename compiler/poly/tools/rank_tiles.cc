#include "compiler/poly/tools/rank_tiles.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/poly/fuse/grouping.h"
#include "compiler/poly/fuse/groups.h"
#include "compiler/poly/fuse/inline.h"
#include "compiler/poly/model/expand.h"
#include "compiler/poly/model/extract.h"

namespace polynao::poly {

namespace {

constexpr int64_t kLeast = 8, kMost = 512;

// Adds what the groups of a part cost with each tile. Whether a stage shares tiles with another one in any of them.
bool AddPart(const Scop& scop, ScheduleOptions options, std::vector<RankedTile>& tiles) {
  const std::unique_ptr<Grouping> grouping =
      GroupStages(scop, options, [&](const Scop& part, const std::vector<Stage>& stages) {
        return std::make_unique<GroupModel>(part, stages, options.machine);
      });
  bool fuses = false;
  for (RankedTile& tile : tiles) {
    options.group_tile = tile.sizes;
    for (const PlannedGroup& planned : FindGroups(grouping->stages, *grouping->model, options)) {
      tile.cycles += planned.cost.cycles;
      fuses |= !planned.group.producers.empty();
    }
  }
  return fuses;
}

}  // namespace

absl::StatusOr<std::vector<RankedTile>> RankTiles(const ir::Function& function,
                                                  const ScheduleOptions& options) {
  ir::Function prepared = function;
  if (options.inline_stages) InlineStages(prepared, options.machine.assumed_extent);
  ExpandScalars(prepared);
  ASSIGN_OR_RETURN(
      const Extraction extraction,
      Extract(prepared, {.max_operations = static_cast<unsigned long>(options.max_operations)}));
  std::vector<RankedTile> tiles;
  for (int64_t rows = kLeast; rows <= kMost; rows *= 2) {
    for (int64_t columns = kLeast; columns <= kMost; columns *= 2)
      tiles.push_back({.sizes = {0, rows, columns}});
  }
  ScheduleOptions fused = options;
  fused.strategy = "fuse";
  bool fuses = false;
  for (const Scop& scop : extraction.scops) {
    ASSIGN_OR_RETURN(const bool here, Guarded(*scop.isl, [&]() -> absl::StatusOr<bool> {
                       scop.isl->Allow(static_cast<unsigned long>(options.max_operations));
                       return AddPart(scop, fused, tiles);
                     }));
    fuses |= here;
  }
  if (!fuses) {
    return absl::FailedPreconditionError(
        StrCat("function '", function.name, "' has no stages that share tiles"));
  }
  std::sort(tiles.begin(), tiles.end(), [](const RankedTile& a, const RankedTile& b) {
    return std::tie(a.cycles, a.sizes) < std::tie(b.cycles, b.sizes);
  });
  return tiles;
}

}  // namespace polynao::poly
