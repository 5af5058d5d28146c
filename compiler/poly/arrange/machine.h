// The processor that schedules are made for.
#ifndef COMPILER_POLY_ARRANGE_MACHINE_H_
#define COMPILER_POLY_ARRANGE_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace polynao::poly {

struct CpuMachine {
  int cores = 2;
  int vector_bytes = 32;
  int vector_registers = 16;
  int64_t near_bytes = 32 * 1024;     // of the nearest cache, L1
  int near_ways = 8;                  // lines of it that one address may be in
  int64_t cache_bytes = 1024 * 1024;  // of the next one, which is still one core's: L2
  // Cycles for a byte that comes from beyond that cache.
  double cycles_per_byte = 0.2;
  // How many times as many all cores together get as one.
  double memory_scaling = 1.4;
  // Cycles for starting a parallel loop and waiting for its end.
  double parallel_cycles = 6000;
  // Of instructions, as LLVM names them, those that rows of isa/processor need.
  std::vector<std::string> features = {};
  // Iterations along a dimension whose extent is a parameter.
  int64_t assumed_extent = 1024;
};

// This machine's, as far as it tells. Without `has_tiles` it lacks the instructions on tiles and those that add floats:
// compilers of C do not find them in loops.
CpuMachine HostMachine(int cores, bool has_tiles = true);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_MACHINE_H_
