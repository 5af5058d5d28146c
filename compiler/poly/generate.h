// From a schedule back to loops.
#ifndef COMPILER_POLY_GENERATE_H_
#define COMPILER_POLY_GENERATE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/scop.h"

namespace polynao::poly {

// How the loop under a mark of a schedule tree runs.
struct LoopMark {
  ir::ForKind kind = ir::ForKind::kSerial;
  // How many schedule dimensions are around the loop's. isl leaves out a loop of one iteration, and then the
  // loop that follows the mark is another one.
  int depth = 0;
  // Private buffers that each iteration gets a copy of.
  std::vector<ir::Buffer> copies;
};

// A schedule tree in which a mark stands above the band of each loop that is not a plain one.
struct MarkedSchedule {
  isl::schedule schedule;
  std::map<std::string, LoopMark> marks;  // by the mark's name
};

// Loops that run the instances of `scop` in the order of `schedule`. Their variables, and all
// arithmetic on them, are i64: parameters are at most 2^40 (Scop::assumed), so that nothing overflows.
// `/` and `%` of loop IR round down, as isl's quotients and remainders do.
//
//   let n: i64 = cast(i64, n)
//   if (what the part assumes of its parameters) { new loops } else { the original code }
//
// The test is left out where it always holds. Throws isl::exception.
ir::Stmt Generate(const Scop& scop, const MarkedSchedule& schedule);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GENERATE_H_
