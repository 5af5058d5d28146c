// Neighbouring loops that all stages of a group walk as one, and loops that share an index.
#ifndef COMPILER_POLY_CARD_MERGED_AXES_H_
#define COMPILER_POLY_CARD_MERGED_AXES_H_

#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Makes neighbouring dimensions of buffers one where every stage reads and stores them by two neighbouring axes, or
// ranges, whole.
// Returns the new buffers, each with the one of which it is another shape.
//
//   Y[y, x] = X[y, x, 0] + X[y, x, 1]   -->   Y'[p] = X'[p, 0] + X'[p, 1]
std::vector<std::pair<ir::Buffer, ir::Buffer>> MergeAxes(ir::Context& c,
                                                         std::vector<NestStage>& stages);

// Indices of inputs that are numbers in mixed radix of several loops, and reach all of a dimension, as an index of each
// loop. Returns the new buffers, each with the one of which it is another shape.
//
//   S[g] += X[g * 4 + c]   g in [0, 8), c in [0, 4)   -->   S[g] += X'[g, c]
std::vector<std::pair<ir::Buffer, ir::Buffer>> SplitDigits(ir::Context& c,
                                                           std::vector<NestStage>& stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_MERGED_AXES_H_
