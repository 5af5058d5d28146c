// A processor so small that loops of ten iterations have tiles, register tiles and parallel loops.
#ifndef COMPILER_POLY_ARRANGE_MACHINE_FOR_TEST_H_
#define COMPILER_POLY_ARRANGE_MACHINE_FOR_TEST_H_

#include "compiler/poly/arrange/machine.h"

namespace polynao::poly {

inline CpuMachine SmallMachine(int vector_registers = 8) {
  return {.cores = 2,
          .vector_bytes = 16,
          .vector_registers = vector_registers,
          .near_bytes = 512,
          .cache_bytes = 4096,
          .cycles_per_byte = 1,
          .memory_scaling = 2,
          .parallel_cycles = 1,
          .assumed_extent = 64};
}

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_MACHINE_FOR_TEST_H_
