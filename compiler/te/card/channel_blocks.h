// Results of a contraction that lie in GMEM in blocks of channels, and the rest of a graph that reads them there.
//
//   Y[h, w, c] = max(f(S[h, w, c]) + R[h, w, c], 0)      S: the sums of a convolution or product
//
//   B[b, h, w, i] = f(S[h, w, 64 * b + i])               by a contraction group (TileExtras::in_blocks)
//   Y[p, b, i] = max(B[b, p, i] + R[p, b, i], 0)         p: h and w as one
//
// Clusters or cores that share channels would store a part of each pixel, and of such segments one is in flight; a
// block of many pixels is one segment. So each can have channels of its own and load no weights but theirs, for the
// price of results that cross GMEM twice more.
#ifndef COMPILER_TE_CARD_CHANNEL_BLOCKS_H_
#define COMPILER_TE_CARD_CHANNEL_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/te/graph.h"

namespace polynao::te {

// The last compute that needs nothing but the graph's only contraction and vectors of channels: what is stored in
// blocks of isa::kTensorLanes. Null if there is no such contraction, its channels are no several blocks, or the rest is
// not elementwise.
const Operation* EndOfBlocks(const Tensor& output);

// What is behind `end`, as a graph over pixels, blocks of channels and channels of one.
struct BlockReader {
  Tensor output;
  // Of the whole graph, in the order of the placeholders; `end` is the tensor of blocks.
  std::vector<const Operation*> inputs;
};
BlockReader ReadBlocks(const Tensor& output, const Operation& end);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_CHANNEL_BLOCKS_H_
