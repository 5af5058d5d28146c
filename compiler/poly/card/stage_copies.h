// Stages that read what they read in another order or shape, of copies or views.
#ifndef COMPILER_POLY_CARD_STAGE_COPIES_H_
#define COMPILER_POLY_CARD_STAGE_COPIES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// A sum of products whose weights, or whose image, stand in memory in another order than the tensor unit reads them,
// results' axes, then the reduced ones, or are computed. `copies` are stages that turn them around or compute them, for
// buffers of their own.
//
//   C[i, j] += 2 * A[i, l] * B[l, j]   -->   A.factor[i, l] = 2 * A[i, l]   B.factor[j, l] = B[l, j]
//                                            C[i, j] += A.factor[i, l] * B.factor[j, l]
std::optional<NestStage> WithTurnedFactors(const NestStage& stage, ir::Context& c,
                                           std::vector<NestStage>& copies);

// A copy of which neighbouring dimensions are read as neighbours, whole, as a copy that has them as one. `views`: the
// buffers of its own and those of which they are other shapes.
//
//   T[y, x, i] = X[i, y, x]   -->   T'[p, i] = X'[i, p]
struct MergedCopy {
  NestStage stage;
  std::vector<std::pair<ir::Buffer, ir::Buffer>> views;
};
std::optional<MergedCopy> MergeDimensions(const NestStage& stage, ir::Type index_type,
                                          ir::Context& c);

// `e` with neighbouring axes as one, in which their places stand one in the other: X[o * 4 + b] of axes o, b as X[one].
// None if they are read otherwise.
ir::Expr WithAxesAsOne(ir::Expr e, absl::Span<const ir::Var> axes,
                       absl::Span<const int64_t> extents, ir::Var one);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_STAGE_COPIES_H_
