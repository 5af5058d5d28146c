// Sums of products in other forms, of which the card's programs may be faster.
#ifndef COMPILER_POLY_CARD_PRODUCT_FORMS_H_
#define COMPILER_POLY_CARD_PRODUCT_FORMS_H_

#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Sums of products of a tensor with itself, over two tensors that stand in the same place: parts of each are loaded by
// themselves then. Not what one of the stages computes. `views`: the new buffers, and what they are another name of.
// Empty: there are none.
//
//   C[i, j] += A[i, k] * A[j, k]   -->   C[i, j] += A[i, k] * A'[j, k]
struct OwnFactors {
  std::vector<NestStage> stages;
  std::vector<std::pair<ir::Buffer, ir::Buffer>> views;
};
OwnFactors WithOwnFactors(const std::vector<const NestStage*>& stages, ir::Context& c);

// A sum of two products as two sums: the second one adds the first one's results, a buffer of its own, behind its sum.
// None of another stage.
//
//   C[i, j] += A[i, k] * B[j, k] + B[i, k] * A[j, k]
//     -->   C.first[i, j] += A[i, k] * B[j, k]     C[i, j] += B[i, k] * A[j, k];  C[i, j] += C.first[i, j]
std::optional<std::pair<NestStage, NestStage>> AsTwoSums(const NestStage& stage, ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_PRODUCT_FORMS_H_
