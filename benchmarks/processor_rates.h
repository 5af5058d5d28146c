// What schedules for this machine's processor ask for: its clock, memory, and starts of threads. What a core does in
// its caches: core_rates.h.
#ifndef BENCHMARKS_PROCESSOR_RATES_H_
#define BENCHMARKS_PROCESSOR_RATES_H_

#include <cstdint>

#include "compiler/poly/arrange/machine.h"

namespace polynao::benchmarks {

// Measures for about two seconds, each rate several times; the best counts, since other programs only take away.
//
// - The clock by a chain of 64-bit multiplications, of which each takes three cycles (Intel since Nehalem, AMD since
//   Zen, Arm's Neoverse: Agner Fog, Instruction tables; Arm's optimisation guides).
// - Memory by sums over `bytes` bytes (0: four times the last cache, at most 1 GiB), on one core and on `threads`.
// - Starts by parallel loops of 20 us on the pool that compiled code has (the median: waits are part of them).
poly::CpuRates MeasureProcessor(int threads, int64_t bytes = 0);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_PROCESSOR_RATES_H_
