// Tiles of fused stages to choose from, for a search by measurements.
#ifndef COMPILER_POLY_TOOLS_RANK_TILES_H_
#define COMPILER_POLY_TOOLS_RANK_TILES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/options.h"

namespace polynao::poly {

struct RankedTile {
  std::vector<int64_t>
      sizes;  // ScheduleOptions::group_tile: all of the first dimension, and sizes along the last two
  double cycles = 0;  // of all groups that such tiles make, by the model
};

// The tiles that PolyMage's tuner tries (Mullapudi, Vasista, Bondhugula, ASPLOS 2015): 8, 16, .. 512 elements along
// each of the last two dimensions of a group's last array; those that the model of `options.machine` finds fastest
// first. Errors: those of Extract; FailedPrecondition for a function without stages that may share tiles.
absl::StatusOr<std::vector<RankedTile>> RankTiles(const ir::Function& function,
                                                  const ScheduleOptions& options);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TOOLS_RANK_TILES_H_
