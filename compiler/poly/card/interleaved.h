// Interleaved elements, of which one axis of a tensor says which part they are: the channels of a pixel, real and
// imaginary parts, even and odd places.
#ifndef COMPILER_POLY_CARD_INTERLEAVED_H_
#define COMPILER_POLY_CARD_INTERLEAVED_H_

#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// The stages of a group over tensors that are turned around on the way: parts become rows of their own, which vector
// instructions take as they are. What the group reads is turned first, what it stores last; all this is one group
// again, so that each tensor crosses GMEM as it stands there.
//
//   Y[y, x] = X[y, x, 0] + X[y, x, 1]      -->  X.turned[k, p] = X'[p, k]   Y'[p] = X.turned[0, p] + X.turned[1, p]
//   Y[i] = X[2 * i] + X[2 * i + 1]         -->  X.turned[k, i] = X'[i, k]   Y[i] = X.turned[0, i] + X.turned[1, i]
//   Y[p, k] = A[p, 0] * B[p, k]            -->  A.turned, B.turned          Y.turned[k, p] = A.turned[0, p] * ..
//                                                                           Y[p, k] = Y.turned[k, p]
//
// The instruction that transposes takes whole groups of rows and columns, so two or three columns take as long as 64.
// Another way turns blocks of pixels, p = r * 64 + b, and computes on rows of pixels that stand 64 apart:
//
//   Y[p] = X[p, 0] + X[p, 1]   -->   X.turned[c, r] = X'[r, c]   c in [0, 128): place b * 2 + k
//                                    Y.turned[b, r] = X.turned[b * 2, r] + X.turned[b * 2 + 1, r]
//                                    Y'[r, b] = Y.turned[b, r]
struct Deinterleaved {
  std::vector<NestStage> stages;
  // New buffers, each with the one of which it is another shape.
  std::vector<std::pair<ir::Buffer, ir::Buffer>> views;
};
// The ways to do so; none if no stage walks a tensor with a stride.
std::vector<Deinterleaved> Deinterleave(ir::Context& c, std::vector<NestStage> stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_INTERLEAVED_H_
