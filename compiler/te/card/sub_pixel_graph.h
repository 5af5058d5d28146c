// A transposed convolution with a stride as a contraction whose channels are those of several pixels.
//
//   Z[q, x, a, b, o] = sum of P[q + r, x + s, i] * F[a, b, o, r, s, i]
//   Y[y, x, o] = f(Z[(y + t) / 2, (x + l) / 2, (y + t) % 2, (x + l) % 2, o])
//
// becomes T[q, x, c] = f(sum of P[q + r, x + s, i] * F[c, r, s, i]), a contraction like others, of channels
// c = (a, b, o), whose results go to their places in Y on their way through SMEM (TileExtras::sub_pixels).
#ifndef COMPILER_TE_CARD_SUB_PIXEL_GRAPH_H_
#define COMPILER_TE_CARD_SUB_PIXEL_GRAPH_H_

#include <optional>

#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"

namespace polynao::te {

struct SubPixelGraph {
  Tensor output;  // T; placeholders are the whole graph's, in order
  SubPixelPlaces places;
};
// None if `output` is no such Y.
std::optional<SubPixelGraph> ReadSubPixels(const Tensor& output);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_SUB_PIXEL_GRAPH_H_
