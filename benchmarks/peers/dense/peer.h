// What benchmarks/dense_peer.cc asks of a library: one layer, opened on its buffers, run again and again. Each of the
// other files here is this interface by one library; it is compiled when the suite runs, where the library is there.
#ifndef BENCHMARKS_PEERS_DENSE_PEER_H_
#define BENCHMARKS_PEERS_DENSE_PEER_H_

#include <stdint.h>

enum { kConv, kMatmul, kBatchedMatmul };
enum { kF32, kI8, kBF16 };

// The fields that a kind does not have are 1. A product has `batch`, rows `h`, sums `ci` and columns `co`. Outputs are
// f32 of floats and i32 of integers.
struct PeerLayer {
  int64_t kind, type, threads, batch, h, w, ci, co, kh, kw, stride, pad_h, pad_w, dilation, groups,
      bias, relu;
};

// The library's name and version.
const char* peer_version(void);
// Null, and a reason in `why`: the library does not have such a layer. Buffers: X (H, W, CI), F (CO, KH, KW, CI / G) or
// (CO, CI), of a batch (B, CI, CO), with `bias` B (CO), and Y.
void* peer_open(const struct PeerLayer* layer, void* const* buffers, const char** why);
// Puts the weights into the layout that the library wants. 0: done. A library that has none does nothing.
int peer_reorder(void* layer);
// Computes the output from the reordered weights.
int peer_run(void* layer);
void peer_close(void* layer);

#endif  // BENCHMARKS_PEERS_DENSE_PEER_H_
