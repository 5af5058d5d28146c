// Tiles, parallel and vector loops in a schedule tree.
#ifndef COMPILER_POLY_ARRANGE_TILE_H_
#define COMPILER_POLY_ARRANGE_TILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/poly/generate/generate.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

struct TileOptions {
  // Iterations of a tile along each member of a band, one vector per level, outermost first. A band with
  // more members than sizes uses the last size for the rest; a size of 0 or 1 leaves a member whole (its
  // tile loop has all iterations). Bands of one member, and those that are not permutable, stay.
  std::vector<std::vector<int64_t>> sizes;
  bool parallel = true;
  bool vectorize = true;
  // Tiles that only wait for some of their neighbours run as diagonals, which are parallel.
  bool wavefront = true;
  // Point loops of whole tiles get constant bounds, apart from those of tiles at the border.
  bool full_tiles = true;
};

struct TileReport {
  // One line per band: its members, sizes, parallel and vector axes, or why there are none.
  std::vector<std::string> lines;
  int bands = 0, tiled = 0, parallel_loops = 0, vector_loops = 0, wavefronts = 0;
};

// The order of `schedule`, which is legal, with tiles and marks. In a permutable band members may swap, and do:
// parallel ones go outwards, the one with the most accesses of stride one goes innermost. Throws
// isl::exception.
MarkedSchedule Tile(const Scop& scop, const Dependences& dependences, const isl::schedule& schedule,
                    const TileOptions& options, TileReport* report);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_TILE_H_
