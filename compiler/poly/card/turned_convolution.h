// Convolutions whose channels do not come last, as one that the tensor unit takes and copies around it.
#ifndef COMPILER_POLY_CARD_TURNED_CONVOLUTION_H_
#define COMPILER_POLY_CARD_TURNED_CONVOLUTION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// A sum of products of an image's windows and filters, in any layout, as groups of stages in this order: copies that
// turn filters and images around, sums of images whose channels come last, and a stage that puts these where the sum's
// own results stand. A batch, groups of channels and the third dimension of windows are several images.
//
//   Y[n, c, y, x] += X[n, i, 2y + r, 2x + s] * F[c, i, r, s]   -->   F.turned[c, r, s, i] = F[c, i, r, s]
//                                                                    X.turned[n, y, x, i] = X[n, i, y, x]
//     Y.turned[0, y, x, c] += X.turned[0, 2y + r, 2x + s, i] * F.turned[c, r, s, i], and so for each n
//                                                                    Y[n, c, y, x] = Y.turned[n, y, x, c]
//
// Images, filters or results that stand so are not copied.
// Channels may be several axes, and so may the image's depth; for the sums they are one. What `before`, stages without
// a reduction, compute for it is computed in the copies, but for margins, select(1 <= y && .., X[.., y - 1, ..], 0):
// these are made with the sums. So is what `after` computes of each sum, and its results are put in order:
//
//   Z[n, c, y, x] = max(Y[n, c, y, x] + B[c], 0)   -->   Z.turned[n, y, x, c] = max(Y.turned[n, y, x, c] + B[c], 0)
struct TurnedConvolution {
  // Stages that run together, for each image from other elements of buffers on.
  struct Group {
    using Offsets = std::vector<std::pair<ir::Buffer, int64_t>>;
    std::vector<NestStage> stages;
    std::vector<Offsets> images = {{}};
  };
  std::vector<Group> groups;  // none: the stage is no such sum, or the sums need no other form
  // NestStages::views, of buffers of the stages. A view may have fewer elements: one image of all.
  std::vector<std::pair<ir::Buffer, ir::Buffer>> views;
  bool has_after = false;  // whether `after` is in the groups
  // With `results_stay`: where the results stand, an index for each axis of the stage, on the dimensions that
  // `results_axes` says, -1 being one of a single element.
  ir::Buffer results;
  std::vector<int> results_axes;
};

struct TurnOptions {
  // Margins and `after` are computed with the sums, where that is possible.
  bool with_sums = true;
  // All images are one, whose rows stand one below another; between them are rows of sums that nobody reads. Margins
  // are copied then. Else the sums stand there for each image, of which there are 256 at most.
  bool stacks = false;
  // The results stay where the sums are: there is no `after`, and the stage's target is none.
  bool results_stay = false;
};

TurnedConvolution TurnConvolution(const NestStage& stage,
                                  const std::vector<const NestStage*>& before,
                                  const std::vector<const NestStage*>& after,
                                  const TurnOptions& options, ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_TURNED_CONVOLUTION_H_
