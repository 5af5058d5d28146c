// A graph over more channels than its tensors have, so that the rows of each core begin where vector instructions may:
//
//   S[y, x, c] = sum of P[y + r, x + s, c] * F[r, s, c]     c < 144 of f32: 4.5 times 128 bytes
//
//     -->   P'[y, x, c] = c < 144 ? P[y, x, c] : 0          c < 160
//           F'[r, s, c] = c < 144 ? F[r, s, c] : 0
//           S'[y, x, c] = sum of P'[y + r, x + s, c] * F'[r, s, c]
//           S[y, x, c]  = S'[y, x, c]                        c < 144
//
// What the added channels are computed from are zeros, and nobody reads the results. If one core has all channels, its
// tiles have those that there are; so that what they read has the added ones too, they read whole blocks of channels:
//
//           B[y, x, b, i] = S'[y, x, 32 b + i]              b < 5, i < 32
//           S[y, x, c]    = B[y, x, c / 32, c % 32]
#ifndef COMPILER_TE_CARD_WIDE_CHANNELS_H_
#define COMPILER_TE_CARD_WIDE_CHANNELS_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "compiler/te/graph.h"

namespace polynao::te {

// The graph of `output`, of which `computes` are the computes, over `channels` of the last dimension, more than it has,
// as a graph of its own in the same context; by way of blocks of `block` of them, if it is not 0 (it divides them).
// Nothing if a compute has several results or other channels than the output, if something reads other channels than
// its own, or computes with their numbers.
std::optional<Tensor> WidenChannels(const Tensor& output,
                                    absl::Span<const Operation* const> computes, int64_t channels,
                                    int64_t block = 0);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_WIDE_CHANNELS_H_
