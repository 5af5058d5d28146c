// Which loops an innermost band should have, by the cost model.
#ifndef COMPILER_POLY_ARRANGE_PLAN_H_
#define COMPILER_POLY_ARRANGE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/cost_model.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

using Names = std::vector<std::string>;  // of statements, in the order of the program

// How the loops of an innermost band run. Members are numbered as in the band.
struct BandPlan {
  enum class Kind : uint8_t {
    kTile,      // loops over tiles around children[0]
    kSequence,  // groups of statements, each with a child of its own, one after the other
    kSerial,    // a loop over one member around children[0]
    kPoints,    // the other members' loops over iterations
  };
  Kind kind = Kind::kPoints;
  double cycles = 0;  // of all executions of these loops
  std::vector<BandPlan> children;
  // kTile
  TilePlan tiles;
  int parallel = -1;
  bool is_wave = false;
  std::vector<ir::Buffer> copies;  // of the parallel loop; in kPoints, of the vector loop
  // kSequence
  std::vector<Names> groups;
  // kSerial
  int serial = -1;
  // kPoints
  PointPlan points;
  bool is_vector = false;
  bool accumulates = false;  // one element over the innermost loop
  // Of the plan of a whole band: the buffers of which one run leaves in the cache what it has touched.
  Buffers warm;
};

// The cheapest plan for a permutable band at `place`. Inside of a parallel loop all cores are busy already. `warm`: the
// buffers of which the loops before have left in the cache what this band touches. `assumed`: the part's parameters.
// Throws isl::exception.
BandPlan MakePlan(const Scop& scop, const Dependences& dependences, const CpuMachine& machine,
                  const AssumedParameters& assumed, const Place& place,
                  const isl::multi_union_pw_aff& band, bool is_inside_parallel,
                  const Buffers& warm);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_PLAN_H_
