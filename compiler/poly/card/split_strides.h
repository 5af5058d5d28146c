// Places that a stride skips, as a dimension of their own.
#ifndef COMPILER_POLY_CARD_SPLIT_STRIDES_H_
#define COMPILER_POLY_CARD_SPLIT_STRIDES_H_

#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Dimensions of which the stages read every other place, or every third, .., as such steps, where all reads know which
// place of a step they take. Returns the new buffers, each with the one of which it is another shape.
//
//   Y[i] = X[2 * i] + X[2 * i + 1]   -->   Y[i] = X'[i, 0] + X'[i, 1]
std::vector<std::pair<ir::Buffer, ir::Buffer>> SplitStrides(ir::Context& c,
                                                            std::vector<NestStage>& stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_SPLIT_STRIDES_H_
