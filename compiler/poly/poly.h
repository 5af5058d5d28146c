// The scheduler of loop nests: analyses a function, gives its static control parts a new order with
// tiles, parallel and vector loops, and writes it back as loop IR.
//
//   for (i, 0, n) for (j, 0, m) for (k, 0, l)        parallel (it, ..) for (jt, ..) for (kt, ..)
//     C[i, j] = C[i, j] + A[i, k] * B[k, j]    -->     for (i, ..) for (k, ..) vectorize (j, ..)
//                                                        C[i, j] = C[i, j] + A[i, k] * B[k, j]
#ifndef COMPILER_POLY_POLY_H_
#define COMPILER_POLY_POLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/machine.h"

namespace polynao {

struct PassInfo;

namespace poly {

struct ScheduleOptions {
  // "none", "original", "min", "smart", "max" (schedule.h), "text": the order in `text`; or "auto": what the cost
  // model finds fastest on `machine`, tiles included (auto.h).
  std::string strategy = "auto";
  // isl's text of a schedule (ParseSchedule), for functions with one part.
  std::string text = {};
  // Other strategies' sizes of tiles, one vector per level, outermost first; the last size of a level counts for all
  // further loops. Empty: no tiles.
  std::vector<std::vector<int64_t>> tile = {{32}};
  bool parallel = true;
  bool vectorize = true;
  // Sums of floats may change their order.
  bool reassociate = false;
  Machine machine = {};
  // isl's count of its own steps for one part. A part that needs more stays as it is. 0: no limit.
  int64_t max_operations = 10'000'000;
};

struct PartReport {
  std::string name = {};
  bool changed = false;
  std::string why_not = {};  // if it is not
  int statements = 0, bands = 0, tiled_bands = 0;
  int parallel_loops = 0, vector_loops = 0, wavefronts = 0;
  bool has_register_tiles = false;
  // CPU time of the steps, in milliseconds.
  double dependences_ms = 0, schedule_ms = 0, tile_ms = 0, generate_ms = 0;
  std::vector<std::string> lines =
      {};                 // one per band: sizes, parallel and vector loops, or why none
  std::string tree = {};  // the new schedule tree, isl's text
};

struct ScheduleReport {
  bool changed = false;
  std::vector<PartReport> parts;
  std::vector<std::string> remarks;  // what is not affine, where, and what that costs
  // Mistakes of the scheduler's own, in which the code stays as it is. Tests fail on them.
  std::vector<std::string> internal_errors;
  // "part 'f, for (i, 0, n) {': 2 statements, smart; 3 loops, tiles of 32 x 32 x 32, ..."
  std::string ToString() const;
};

// Schedules the parts of `function`. What stays as it is is said in the report, not an error: parts for
// which isl needs more than its operations, functions without a part. Errors: an unknown strategy, a bad
// tile size; for "text" also what ParseSchedule refuses. If nothing changed, the body is the same node.
//
// Results are the same bits, unless `reassociate` lets sums of floats change their order.
absl::StatusOr<ScheduleReport> Schedule(ir::Function& function,
                                        const ScheduleOptions& options = {});

}  // namespace poly

// The pass by name (registry.h).
PassInfo SchedulePass();

}  // namespace polynao

#endif  // COMPILER_POLY_POLY_H_
