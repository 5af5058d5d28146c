// The suite `nests`: programs that nobody scheduled, on the card.
#ifndef BENCHMARKS_NEST_CYCLES_H_
#define BENCHMARKS_NEST_CYCLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/cycles.h"

namespace polynao::benchmarks {

inline constexpr char kNestSuite[] = "nests";

// Cycles of the functions of nests.nir ("nest/add_1000"), two image pipelines of 1024 x 1024 ("pipeline/unsharp"), the
// kernels of PolyBench in f32 at MEDIUM ("polybench/gemm"), and operators of the same sizes ("operator/softmax"). The
// bound of the first three moves each tensor once. A program that leaves more to the scalar unit than a simulation can
// take has a failure that says so. Errors: a wrong machine; no case passes the filter.
absl::StatusOr<std::vector<CaseCycles>> MeasureNestCycles(const CyclesSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_NEST_CYCLES_H_
