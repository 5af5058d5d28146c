// Runs the suite dense: this compiler and libraries on convolutions and products of networks.
#ifndef BENCHMARKS_BENCH_DENSE_H_
#define BENCHMARKS_BENCH_DENSE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"
#include "benchmarks/dense_peer.h"

namespace polynao::benchmarks {

inline constexpr char kDenseSuiteDoc[] =
    "layers of ResNet-50, VGG16, MobileNetV2, BERT and Llama on the CPU, against oneDNN and "
    "OpenBLAS";

struct DenseSettings {
  // Layers whose DenseName contains this text, or a match of it as a regular expression; "" is all.
  std::string filter = {};
  std::string size = "networks";  // or "small": a few layers for tests
  uint64_t seed = 1;
  std::vector<int> threads = {1, 2};
  std::vector<std::string> peers = DensePeer::Names();
  // Each implementation runs for so long in all, in kDenseRounds turns with the others; at least once in each.
  double seconds = 0.3;
  // A result of the same run (CheckSameRun), whose rows become rows of the result; these layers do not run.
  std::optional<Comparison> known = {};
  // Called for each layer that has run.
  std::function<void(int done, int total, const ComparisonRow& row)> on_row = {};
  // Called after each layer with all rows until then. An error ends the run.
  std::function<absl::Status(const Comparison& so_far)> save = {};
};

inline constexpr int kDenseRounds = 5;

// For each layer that passes the filter, on each number of threads: the same inputs and output for all implementations,
// which run in turns. Values are compared with those of the first implementation: floats within 1e-4 of the largest,
// integers exactly. Peers that this machine lacks, and layers that a library does not have, are skipped with the
// reason. `sizes` of a row are "macs" and "bytes", which must cross memory once; figures of this compiler's entries are
// "mac_ms" and "memory_ms": what these take at the rates that this machine shows (RoofOn); 0 for bytes that its last
// cache holds from run to run.
//
// onednn and nao-packed run on weights that they have reordered before, onednn-reorder reorders them in each run.
// openblas and nao-auto take the weights as they are. The figure "pack_ms" is what packing takes nao-packed.
//
// Errors: an unknown size or peer, a malformed filter, one that no layer passes, `known` of another run.
absl::StatusOr<Comparison> RunDense(const DenseSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_DENSE_H_
