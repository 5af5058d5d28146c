// Halide, as far as this machine has it: its Python package runs the pipelines of benchmarks/peers.
#ifndef BENCHMARKS_HALIDE_PEER_H_
#define BENCHMARKS_HALIDE_PEER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/process.h"
#include "compiler/ir/tensor.h"

namespace polynao::benchmarks {

struct HalideTimes {
  double median_ms = 0;
  double least_ms = 0;
  double compile_ms = 0;  // schedule and code, without the start of Halide's compiler
  int runs = 0;
};

class HalidePeer {
 public:
  // "hand", "mullapudi", "adams", "root" (benchmarks/peers/halide_pipelines.py).
  static const std::vector<std::string>& Schedules();

  // Looks for a Python that can import halide and numpy: `python`, or where that is "" the environment's
  // POLYNAO_PYTHON, or python3 on PATH. Errors: there is none; the temporary folder cannot be made.
  static absl::StatusOr<HalidePeer> Find(const std::string& python);

  // "halide 21.0.0 for x86-64-linux-avx512...".
  const std::string& description() const { return description_; }

  // The inputs of runs that follow.
  absl::Status SetInputs(absl::Span<const ir::Tensor* const> inputs);

  struct Run {
    std::string pipeline;  // "harris"
    int64_t rows = 0;
    int64_t cols = 0;
    std::string schedule;
    int threads = 1;
    double seconds = 0.5;     // runs go on for so long, five at least
    int limit_seconds = 300;  // for compiling and all runs; more is an error (DeadlineExceeded)
  };
  // Compiles and runs the pipeline in a process of its own, and stores what it computes to `output`.
  absl::StatusOr<HalideTimes> Time(const Run& run, ir::Tensor& output) const;

 private:
  explicit HalidePeer(TemporaryDirectory folder) : folder_(std::move(folder)) {}

  TemporaryDirectory folder_;  // the scripts, inputs, an output
  std::string python_;
  std::string description_;
  std::vector<std::string> inputs_;
};

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_HALIDE_PEER_H_
