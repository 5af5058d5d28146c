// How fast a core works on vectors in its caches, and each instruction of isa/processor: programs of the loop IR that
// do nothing else, compiled as all others are.
#ifndef BENCHMARKS_CORE_RATES_H_
#define BENCHMARKS_CORE_RATES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/machine.h"
#include "isa/processor/processor.h"

namespace polynao::benchmarks {

// A program that does one thing in each iteration of a loop over its parameter n.
struct RateProgram {
  ir::Function function;
  double count = 0;  // how often in an iteration
};

// Multiply-adds of f32 vectors of `bytes` bytes, one after the other, or several that do not wait for each other.
RateProgram WaitingMultiplyAdds(int bytes);
RateProgram MultiplyAdds(int bytes);
// Loads of vectors from `array` bytes, or stores to them, again and again. Each vector that is loaded is added to one.
RateProgram Loads(int bytes, int64_t array);
RateProgram Stores(int bytes, int64_t array);
// An instruction with the same operands, for several sums in turn: vectors, or tiles, in registers.
RateProgram Instructions(const isa::ProcessorInstruction& row);

// The rates of one core of `machine` at `clock_hz`, and those of the rows whose feature it has; for less than a second.
absl::StatusOr<poly::CoreRates> MeasureCore(const poly::CpuMachine& machine, double clock_hz);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_CORE_RATES_H_
