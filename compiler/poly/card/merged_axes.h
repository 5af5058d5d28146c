// Neighbouring loops that all stages of a group walk as one.
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

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_MERGED_AXES_H_
