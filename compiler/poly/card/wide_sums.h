// Sums of products in the type in which the tensor unit adds them up.
#ifndef COMPILER_POLY_CARD_WIDE_SUMS_H_
#define COMPILER_POLY_CARD_WIDE_SUMS_H_

#include <functional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// `stages` with sums of products of a narrow float as sums in f32, rounded once, where the tensor unit multiplies
// their type. So do all units of the kind; of a sum whose order is free it is the most exact one. Empty if there are
// none.
//
//   C[i, j] += A[i, k] * B[k, j]   in f16   -->   C.sums[i, j] += f32(A[i, k]) * f32(B[k, j])   C = f16(C.sums)
std::vector<NestStage> WithWideSums(const std::vector<const NestStage*>& stages, ir::Context& c,
                                    const std::function<bool(ir::Type)>& multiplies);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_WIDE_SUMS_H_
