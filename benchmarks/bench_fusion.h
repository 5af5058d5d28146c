// Runs the suite fusion: this compiler's strategies, Halide and C compilers on six image pipelines.
#ifndef BENCHMARKS_BENCH_FUSION_H_
#define BENCHMARKS_BENCH_FUSION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"

namespace polynao::benchmarks {

inline constexpr char kFusionSuiteDoc[] =
    "6 image pipelines on the CPU: strategies of fusion, against Halide and naive C";

struct FusionSettings {
  // Pipelines whose name contains this text, or a match of it as a regular expression; "" is all.
  std::string filter = {};
  std::vector<std::string> pipelines = {};  // of these only those named; empty: all
  std::string size = "paper";               // the paper's sizes, or "small"
  int64_t rows = 0, cols = 0;               // instead of these; 0: as `size` says
  uint64_t seed = 1;
  std::vector<int> threads = {1, 2};
  // Of this compiler (cases::ScheduleFunction); each is an implementation "nao-NAME".
  std::vector<std::string> strategies = {"none", "min", "smart", "max", "overlap", "fuse", "auto"};
  // "halide" (all of its schedules), "halide-SCHEDULE" (HalidePeer::Schedules), "gcc" and "clang" (naive C with
  // OpenMP).
  std::vector<std::string> peers = {"halide", "gcc", "clang"};
  std::string python = {};  // for Halide (HalidePeer::Find)
  // Runs of one program go on for so long, and a run that takes longer than `most_seconds` is the only one.
  double seconds = 0.5;
  double most_seconds = 6;
  // Halide's schedulers may take so long for one pipeline; then it is skipped.
  int limit_seconds = 120;
  // A result of the same run (CheckSameRun), whose rows become rows of the result; these pipelines do not run.
  std::optional<Comparison> known = {};
  // Called for each pipeline that has run.
  std::function<void(int done, int total, const ComparisonRow& row)> on_row = {};
  // Called after each pipeline with all rows until then. An error ends the run.
  std::function<absl::Status(const Comparison& so_far)> save = {};
};

// For each pipeline that passes the filter and is named: the same image for all implementations, one after the other,
// on each number of threads. Values are compared with the pipeline's reference. Float operations may be contracted and
// reassociated by all. An implementation that cannot be compiled or run is an entry with an error or a reason. Errors:
// an unknown size, strategy or pipeline or peer, a malformed filter, one that no pipeline passes, rows or columns that
// a pipeline does not take, `known` of another run.
absl::StatusOr<Comparison> RunFusion(const FusionSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_FUSION_H_
