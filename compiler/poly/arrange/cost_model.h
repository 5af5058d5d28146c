// Estimates what loops cost on a CPU: the estimates by which `auto` chooses.
//
// All times are cycles of one core. The model has one bound each for arithmetic, loads and stores, and bytes that do
// not stay in the cache; it knows steps of accesses (loop_model.h), not values. How fast a core is, machine.h says
// (CoreRates).
#ifndef COMPILER_POLY_ARRANGE_COST_MODEL_H_
#define COMPILER_POLY_ARRANGE_COST_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/loop_model.h"
#include "compiler/poly/arrange/machine.h"

namespace polynao::poly {

// Says what one iteration of an innermost loop waits for in the iteration before.
enum class Carried : uint8_t {
  kNothing,    // they are independent
  kReduction,  // sums that may change their order
  kOrder,      // they must stay in order
};

// How the iterations of one statement run where its caches are warm: the order of its loops, the innermost a vector,
// and a tile of elements that stays in registers.
//
//   for (i, 4) for (j, 2 vectors) for (k) { unroll (i, 4) { vectorize (j, 2 vectors) { C[i, j] += A[i, k] * B[k, j] } } }
struct PointPlan {
  std::vector<int> order;  // members, outermost first
  // Iterations of each member (not by order) in the register tile. Empty: no such tile. Otherwise order.back() is
  // a vector, and the loop before the tile is `serial`.
  std::vector<int64_t> jam;
  int serial = -1;
  Carried carried = Carried::kOrder;  // of order.back()
  double cycles = 0;                  // of an instance
  double row_cycles = 0;              // of starting the innermost loop
  double far_cycles = 0;     // more, if what a register tile loads is not in the nearest cache
  double serial_cycles = 0;  // of filling and emptying the registers, for an instance of a tile
};

// Elements of a vector, of the widest type that the statement stores or loads.
double Lanes(const StatementModel& statement, const CpuMachine& machine);

// Returns true if the instances of a loop over the member store the same elements.
bool WritesStay(const StatementModel& statement, int member);

// `members`: those that run here, the others are around. `carried`: by member.
PointPlan PlanPoints(const StatementModel& statement, const std::vector<int>& members,
                     const std::vector<Carried>& carried, const CpuMachine& machine);

// The same for statements whose instances run one after the other in each iteration: no register tile; loads that they
// share count once.
PointPlan PlanTogether(const std::vector<const StatementModel*>& statements,
                       const std::vector<int>& members, const std::vector<Carried>& carried,
                       const CpuMachine& machine);

// Sizes of tiles along the members of a band, and what they cost.
struct TilePlan {
  std::vector<int64_t> sizes;  // by member; kWhole: no loop over tiles
  int last = -1;               // the member whose loop over tiles is innermost; -1: none
  double bytes = 0;            // that tiles bring into the cache, all in all
  double tiles = 1;            // how many there are
  double other_cycles = 0;     // for starting tiles and their rows
  double speed_up = 1;         // by several cores
  double starts = 0;           // of parallel loops
};
inline constexpr int64_t kWhole = int64_t{1} << 40;

struct TileQuery {
  std::vector<int> members;
  // Sizes along a member are multiples of its jam (PointPlan).
  std::vector<int64_t> multiples;
  // Members that are innermost nowhere may have tiles of one iteration: a plain loop around the others.
  std::vector<bool> may_be_one;
  // One loop runs all statements, or each has its own.
  bool together = false;
  // Innermost loops: short tiles along their member cost the start of a row more often.
  struct Rows {
    int member = -1;
    double cycles = 0;     // of starting one
    double instances = 0;  // of the statements inside, in one run
  };
  std::vector<Rows> rows;
  int innermost = -1;  // the member of those that take longest
  // The loop around a register tile, which is filled and emptied once for each of its tiles.
  int serial = -1;
  double serial_cycles = 0;
  // The sizes of the register tile. What it loads is there again for the next one if the loads of a whole loop over
  // `serial` fit into the nearest cache; otherwise an instance costs `far_cycles` more.
  std::vector<int64_t> jam;
  double far_cycles = 0;
  // The member whose tiles run in parallel, and so must be several; -1: none. `is_wave`: diagonals of the first
  // two members do.
  int parallel = -1;
  bool is_wave = false;
  // Of a parallel loop around: all cores are busy.
  bool is_inside_parallel = false;
  double point_cycles = 0;  // of one run inside of the tiles
};

// The sizes with the least time for bytes and short rows. All kWhole where tiles gain nothing.
TilePlan PlanTiles(const LoopModel& model, const TileQuery& query, const CpuMachine& machine);

using Buffers = absl::flat_hash_set<ir::Buffer>;

// Bytes that one run of a band brings into the cache, if what it touches fits there and stays from one run to the next;
// nothing if it does not fit. `around`: the loops around it, outermost first. `warm`: what the loops before it have
// left in the cache, at the same iteration of those.
std::optional<double> BytesIfItFits(const LoopModel& model, const std::vector<int>& around,
                                    const Buffers& warm, const CpuMachine& machine);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_COST_MODEL_H_
