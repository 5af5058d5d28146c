#include "compiler/poly/arrange/machine.h"

#include <unistd.h>

#include <algorithm>

#include "isa/processor/processor.h"

namespace polynao::poly {

CpuMachine HostMachine(int cores, bool has_tiles) {
  CpuMachine machine;
  machine.cores = cores;
  machine.memory_scaling = std::min(1 + 0.4 * (cores - 1), 8.0);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) machine.near_bytes = bytes;
#endif
#ifdef _SC_LEVEL1_DCACHE_ASSOC
  if (const long ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC); ways > 1)
    machine.near_ways = static_cast<int>(ways);
#endif
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) machine.cache_bytes = bytes;
#endif
#if defined(__x86_64__)
  // Vectors of 512 bits only where they do not lower the clock: from Ice Lake and Zen 4 on (avx512vbmi2).
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2")) {
    machine.vector_bytes = 64;
    machine.vector_registers = 32;
    for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
      if ((row.IsTile() || !row.IsExact()) && !has_tiles) continue;
      const bool is_new =
          std::count(machine.features.begin(), machine.features.end(), row.feature) == 0;
      if (is_new && isa::HostHas(row.feature)) machine.features.push_back(row.feature);
    }
  } else if (!__builtin_cpu_supports("avx")) {
    machine.vector_bytes = 16;
  }
#else
  machine.vector_bytes = 16;
  machine.vector_registers = 32;
#endif
  return machine;
}

}  // namespace polynao::poly
