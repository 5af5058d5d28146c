// Tiles, parallel loops, vectors and register tiles chosen by what loops cost.
#ifndef COMPILER_POLY_ARRANGE_AUTO_H_
#define COMPILER_POLY_ARRANGE_AUTO_H_

#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/arrange/tile.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

struct AutoSchedule {
  MarkedSchedule marked;
  TileReport report;
  double cycles = 0;  // of all leaf bands, by the cost model
  bool has_register_tiles = false;
};

// The order of `schedule`, which is legal, with the loops of each innermost permutable band arranged anew, in whichever
// of these ways the cost model (cost_model.h) finds fastest:
//
//   tiles      of sizes whose footprint fits into the cache; one loop over tiles parallel, or their diagonals
//   sequence   strongly connected groups of statements get loops of their own, one after the other
//   serial     the first loop runs as it is, and what is inside is arranged by itself
//
// Inside of a tile each statement has loops of its own as far as dependences allow, with the best loop for vectors
// innermost, and with elements that a loop updates kept in registers: r stands inside of loops over tiles of them.
//
// Throws isl::exception.
AutoSchedule Arrange(const Scop& scop, const Dependences& dependences,
                     const isl::schedule& schedule, const CpuMachine& machine);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_AUTO_H_
