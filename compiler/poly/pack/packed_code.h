// The loops of a contraction in packed tiles.
//
//   for (c, blocks of column panels)
//     parallel (s, blocks of sums; p) pack column panel p: B.panels[s, p, sum, lane] = column operand
//     parallel (b, blocks of rows) for (s, blocks of sums)
//       for (t) pack row panel t: A.panels[t, row, sum] = row operand
//       for (p) for (t)
//         sums[row, lane] = C, or what the sums begin with            one tile, which stays in registers
//         for (k) sums[row, lane] = sums[row, lane] + A.panels[t, row, k] * B.panels[s, p, k, lane]
//         C = sums
//
// Each sum adds its products in the order of the program, so that the results are the same bits; but for sums of floats
// by instructions that have an order of their own (ScheduleOptions::takes_dots). Where the plan says so, rows are
// packed first, and cores have blocks of columns. Column panels that need constants alone may be packed by code of its
// own, before the run.
#ifndef COMPILER_POLY_PACK_PACKED_CODE_H_
#define COMPILER_POLY_PACK_PACKED_CODE_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/pack/contraction.h"
#include "compiler/poly/pack/pack_plan.h"

namespace polynao::poly {

struct PackedCode {
  ir::Stmt code;
  PackPlan plan;
  std::optional<PackedBefore> before = {};
  std::string line;  // "S1 packed in tiles of 8 x 48, 192 sums at a time, .."
  int parallel_loops = 0;
};

// Without code if the contraction is lane by lane, and its sizes are not known or its sums too many to be written out.
// `otherwise`: the code of the contraction's
// initial and final statements for sums without a product, if it has any. Takes for granted what the part assumes.
// Of `options`, the constants and `takes_dots` count. Throws isl::exception.
PackedCode WritePackedCode(const Scop& scop, const Contraction& contraction,
                           const CpuMachine& machine, const AssumedParameters& assumed,
                           const ScheduleOptions& options, ir::Stmt otherwise);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_PACKED_CODE_H_
