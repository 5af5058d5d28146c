// Results of the suite fusion: times of image pipelines, by this compiler's strategies and by others.
#ifndef BENCHMARKS_FUSION_RESULT_H_
#define BENCHMARKS_FUSION_RESULT_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

inline constexpr char kFusionSuite[] = "fusion";
inline constexpr char kFusionTitle[] = "fusion: six image pipelines";

// An implementation of the comparison is one with so many threads: "halide-hand/2".
std::string WithThreads(const std::string& implementation, int threads);
// The other way: {"halide-hand", 2}. A name without threads has 1.
std::pair<std::string, int> SplitThreads(const std::string& name);

// As ToJson of comparison.h, but `rows` is flat, an object for each pipeline, implementation and number of threads:
// {pipeline, sizes, implementation, threads, ok, time_ms, compile_ms, ...}; ok is null for what was skipped. `summary`
// has geometric means over Halide's hand-written schedules and over each C compiler's naive code, on as many threads:
// {implementation, threads, over, geomean, pipelines}.
nlohmann::ordered_json FusionToJson(const Comparison& result);
// Returns the result that FusionToJson was made of. Errors: another object.
absl::StatusOr<Comparison> FusionFromJson(const nlohmann::ordered_json& json);
// For a terminal: times in ms, a line for each pipeline and number of threads, and geometric means.
std::string FusionText(const Comparison& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_FUSION_RESULT_H_
