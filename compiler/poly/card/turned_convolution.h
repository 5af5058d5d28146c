// Convolutions whose channels do not come last, as one that the tensor unit takes and copies around it.
#ifndef COMPILER_POLY_CARD_TURNED_CONVOLUTION_H_
#define COMPILER_POLY_CARD_TURNED_CONVOLUTION_H_

#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// A sum of products of an image's windows and filters, in any layout, as groups of stages in this order: copies that
// turn image and filters around, sums of images whose channels come last, and stages that put these where the sum's own
// results stand; for each image of a batch by itself, and so for groups of channels and for the third dimension of
// windows.
//
//   Y[n, c, y, x] += X[n, i, 2y + r, 2x + s] * F[c, i, r, s]   -->   X.turned[y, x, i] = X[0, i, y, x]
//                                                                    F.turned[c, r, s, i] = F[c, i, r, s]
//     Y.turned[y, x, c] += X.turned[2y + r, 2x + s, i] * F.turned[c, r, s, i]     Y[0, c, y, x] = Y.turned[y, x, c]
//
// Image, filters or results of a single image that stand so are not copied.
// Channels may be several axes, and so may the image's depth; for the sums they are one. What `before`, stages without
// a reduction, compute for it is computed in the copies, but for margins, select(1 <= y && .., X[.., y - 1, ..], 0):
// these are made with the sums. So is what `after` computes of each sum, and its results are put in order:
//
//   Z[n, c, y, x] = max(Y[n, c, y, x] + B[c], 0)   -->   Z.turned[y, x, c] = max(Y.turned[y, x, c] + B[c], 0)
//
// None if the stage is no such sum: other indices, more than 256 images. The sums of all images are one group, which
// stands there for each of them.
struct TurnedConvolution {
  std::vector<std::vector<NestStage>> groups;
  std::vector<std::pair<ir::Buffer, ir::Buffer>>
      views;               // NestStages::views, of buffers of the stages
  bool has_after = false;  // whether `after` is in the groups
};
// `with_sums`: margins and `after` are computed with the sums, where that is possible.
TurnedConvolution TurnConvolution(const NestStage& stage,
                                  const std::vector<const NestStage*>& before,
                                  const std::vector<const NestStage*>& after, bool with_sums,
                                  ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_TURNED_CONVOLUTION_H_
