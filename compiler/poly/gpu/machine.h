// The GPU that groups of stages are made for.
#ifndef COMPILER_POLY_GPU_MACHINE_H_
#define COMPILER_POLY_GPU_MACHINE_H_

#include <cstdint>

namespace polynao::poly {

// By default about an H100. Counts and sizes: CUDA C++ programming guide, technical specifications of compute
// capability 9.0. Bandwidth of memory: 3.35 TB/s at 1.75 GHz, of NVIDIA's data sheet. Bandwidth of the cache, latencies
// and the launch are estimates that no GPU has confirmed.
struct GpuMachine {
  int multiprocessors = 132;
  // Of one multiprocessor: operations, and loads or stores, of threads in a cycle; threads, blocks and bytes of shared
  // memory at a time.
  double operations_per_cycle = 128;
  double accesses_per_cycle = 32;
  int64_t threads = 2048;
  int64_t blocks = 32;
  int64_t shared_bytes = 228 << 10;
  int64_t block_overhead_bytes = 1 << 10;  // of shared memory, besides what a block asks for
  double bytes_per_cycle = 1900;           // of global memory, the whole GPU
  double sector_bytes = 32;                // that global memory delivers at once
  double cache_bytes = 50 << 20;           // of the cache of all multiprocessors, L2
  double cache_bytes_per_cycle = 4500;
  // Cycles that a thread waits for global memory, for shared memory and arithmetic, and at a barrier; for a launch.
  double global_latency = 600;
  double near_latency = 40;
  double barrier_cycles = 40;
  double launch_cycles = 4000;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_MACHINE_H_
