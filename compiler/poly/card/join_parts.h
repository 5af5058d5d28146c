// Parts of rows that several stages store, as whole rows.
#ifndef COMPILER_POLY_CARD_JOIN_PARTS_H_
#define COMPILER_POLY_CARD_JOIN_PARTS_H_

#include <functional>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Stages that store the parts of one tensor along the last axis compute them on chip,
// and one stage stores whole rows of their sum. `adds`: types of which the card adds elements; of others parts stay.
// Returns whether there were any.
//
//   Y[i, c] = A[i, c]   c in [0, 64)   Y[i, 64 + c] = B[i, c]   c in [0, 96)
//     -->  Y.0[i, c] = select(c < 64, A[i, c], -0)   Y.1[i, c] = select(64 <= c, B[i, c - 64], -0)   Y = Y.0 + Y.1
bool JoinParts(ir::Context& c, NestStages& stages, const std::function<bool(ir::Type)>& adds);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_JOIN_PARTS_H_
