// How fast the simulator is: simulated cycles per second of host time, values computed.
//
//   bazel run //simulator:simulator_benchmark

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "simulator/isolated.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

// out = x + y over 16 M elements, all 16 cores, tiles of range(0) elements; range(1): check
// hazards.
void BM_StreamingAdd(benchmark::State& state) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = StreamingAdd(state.range(0));
  const int64_t n = 16 << 20;
  ir::Tensor x = ir::RandomTensor(ir::Type::kF16, {n}, 1);
  ir::Tensor y = ir::RandomTensor(ir::Type::kF16, {n}, 2);
  ir::Tensor out(ir::Type::kF16, {n});
  RunOptions options;
  options.check_hazards = state.range(1) != 0;
  int64_t cycles = 0;
  for (auto _ : state) {
    const auto result = RunProgram(
        machine, program,
        {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out), Argument::Scalar(n)}, options);
    POLYNAO_CHECK(result.ok()) << result.status();
    cycles += result->cycles;
  }
  state.counters["cycles/s"] =
      benchmark::Counter(static_cast<double>(cycles), benchmark::Counter::kIsRate);
  state.counters["cycles"] = static_cast<double>(cycles) / static_cast<double>(state.iterations());
}
BENCHMARK(BM_StreamingAdd)
    ->ArgNames({"tile", "hazards"})
    ->Args({16384, 1})
    ->Args({16384, 0})
    ->Args({4096, 1})
    ->Args({1024, 1})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Scalar code alone: every core counts to 10000.
void BM_ScalarLoop(benchmark::State& state) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = TestProgram(R"(
    li r0, 0
    li r1, 10000
  loop:
    addi r0, r0, 1
    blt r0, r1, loop
    halt
  )");
  int64_t cycles = 0;
  for (auto _ : state) {
    const auto result = RunProgram(machine, program, {});
    POLYNAO_CHECK(result.ok()) << result.status();
    cycles += result->cycles;
  }
  state.counters["cycles/s"] =
      benchmark::Counter(static_cast<double>(cycles), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_ScalarLoop)->UseRealTime()->Unit(benchmark::kMillisecond);

// The smallest program: what a run costs before the first cycle.
void BM_Halt(benchmark::State& state) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = TestProgram("halt\n");
  for (auto _ : state) {
    const auto result = RunProgram(machine, program, {});
    POLYNAO_CHECK(result.ok()) << result.status();
  }
}
BENCHMARK(BM_Halt)->UseRealTime()->Unit(benchmark::kMicrosecond);

// Of that, the child process.
void BM_Fork(benchmark::State& state) {
  for (auto _ : state) {
    POLYNAO_CHECK(RunIsolated([] { return std::string(); }).ok());
  }
}
BENCHMARK(BM_Fork)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace polynao::simulator

BENCHMARK_MAIN();
