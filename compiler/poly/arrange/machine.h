// The processor that schedules are made for.
#ifndef COMPILER_POLY_ARRANGE_MACHINE_H_
#define COMPILER_POLY_ARRANGE_MACHINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/processor/processor.h"

namespace polynao::poly {

// How fast one core works on what is in its nearest cache, in cycles of vectors: those of current x86 cores, unless
// `nao calibrate` has measured them.
struct CoreRates {
  double operation = 0.5;        // from one multiply-add of floats to the next
  double latency = 4;            // until its result is there
  double load = 0.5, store = 1;  // from one to the next
  double next_bytes = 32;        // that the second cache delivers in a cycle
  // From one instruction of a row of isa/processor to the next. Those that are not here: as their row says.
  std::map<std::string, double, std::less<>> instructions = {};

  double CyclesOf(const isa::ProcessorInstruction& row) const;
};

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
  CoreRates rates = {};
  // Of instructions, as LLVM names them, those that rows of isa/processor need.
  std::vector<std::string> features = {};
  // Iterations along a dimension whose extent is a parameter.
  int64_t assumed_extent = 1024;

  // So many lines at such a distance in bytes meet in so few places of the nearest cache that they drive each other out
  // of it.
  bool Collide(int64_t distance, int64_t lines) const;
};

// This machine's, as far as it tells, and what the file says that the environment's variable POLYNAO_CPU names. Without
// `has_tiles` it lacks the instructions on tiles and those that add floats: compilers of C do not find them in loops.
// Errors: the file cannot be read, or is malformed.
absl::StatusOr<CpuMachine> HostMachine(int cores, bool has_tiles = true);

// What `nao calibrate` measures. Of memory: bytes that are read from beyond all caches.
struct CpuRates {
  int threads = 1;
  double clock_hz = 0;
  double bytes_of_one = 0;   // a second, one core
  double bytes_of_all = 0;   // a second, `threads` cores together
  double start_seconds = 0;  // of a parallel loop, and the wait for its end
  CoreRates core = {};
};

// The file for POLYNAO_CPU: the caches of `machine`, and `rates`. `name`: the processor's; `when`: the date.
//
//   name = "AMD EPYC"
//   [cpu]
//   l1_bytes = { value = 32768, source = "sourced: the operating system" }
//   memory_of_one = { value = 5200, source = "sourced: nao calibrate, 2026-11-27" }
std::string CpuFileText(std::string_view name, std::string_view when, const CpuMachine& machine,
                        const CpuRates& rates);
// `machine` with what such a file says; of other numbers of cores in proportion. Errors name file and line.
absl::StatusOr<CpuMachine> WithCpuFile(CpuMachine machine, std::string_view text,
                                       std::string_view file);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_MACHINE_H_
