// Interleaved elements, of which one axis of a tensor says which part they are: the channels of a pixel, real and
// imaginary parts, even and odd places.
#ifndef COMPILER_POLY_CARD_INTERLEAVED_H_
#define COMPILER_POLY_CARD_INTERLEAVED_H_

#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// The stages of a group over tensors that are turned around on the way: parts become rows of their own, which vector
// instructions take as they are. What the group reads is turned first, what it stores last; all this is one group
// again, so that each tensor crosses GMEM as it stands there. None if no stage walks a tensor with a stride.
//
//   Y[y, x] = X[y, x, 0] + X[y, x, 1]      -->  X.turned[k, p] = X'[p, k]   Y'[p] = X.turned[0, p] + X.turned[1, p]
//   Y[i] = X[2 * i] + X[2 * i + 1]         -->  X.turned[k, i] = X'[i, k]   Y[i] = X.turned[0, i] + X.turned[1, i]
//   Y[p, k] = A[p, 0] * B[p, k]            -->  A.turned, B.turned          Y.turned[k, p] = A.turned[0, p] * ..
//                                                                           Y[p, k] = Y.turned[k, p]
struct Deinterleaved {
  std::vector<NestStage> stages;
  // New buffers, each with the one of which it is another shape.
  std::vector<std::pair<ir::Buffer, ir::Buffer>> views;
};
std::optional<Deinterleaved> Deinterleave(ir::Context& c, std::vector<NestStage> stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_INTERLEAVED_H_
