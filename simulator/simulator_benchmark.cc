// How fast the simulator is: simulated cycles per second of host time, values computed.
//
//   bazel run //simulator:simulator_benchmark

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "simulator/isolated.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

// out = x + y over 16 M elements, all 16 cores, tiles of range(0) elements; range(1): check
// hazards; range(2): GMEM is DDR4, not flat.
void BM_StreamingAdd(benchmark::State& state) {
  std::vector<std::string> overrides;
  if (state.range(2) != 0) overrides = {"gmem.dram=ddr4_3200", "gmem.cache_reads=0"};
  const isa::Machine machine = TestMachine("mlu270", overrides);
  const isa::Program program = StreamingAdd(state.range(0));
  const int64_t n = 16 << 20;
  ir::Tensor x = ir::RandomTensor(ir::Type::kF16, {n}, 1, ir::Values::kExact);
  ir::Tensor y = ir::RandomTensor(ir::Type::kF16, {n}, 2, ir::Values::kExact);
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
    ->ArgNames({"tile", "hazards", "dram"})
    ->Args({16384, 1, 0})
    ->Args({16384, 0, 0})
    ->Args({4096, 1, 0})
    ->Args({1024, 1, 0})
    ->Args({16384, 0, 1})
    ->Args({1024, 1, 1})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// A convolution of 56 x 56 x 256 (i8, with a border of zeros) by 128 filters of 3 x 3 x 256: every core
// loads all filters and computes 14 x 14 pixels of all channels. 925 M multiplications, executed by
// the host.
void BM_Convolution(benchmark::State& state) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = TestProgram(R"(
    .program convolution
    .tensor image i8 [58, 58, 256] in
    .tensor filters i8 [128, 3, 3, 256] in
    .tensor out i32 [56, 56, 128] out
    .equ SUMS 65536         # in NMEM, behind 16 x 16 pixels of the image
    .equ FILTER 2304
      li r0, 0
      arg r1, 4             # memory cores have nothing to do
      bne r1, r0, end
      li r1, 1
      arg r2, 0
      arg r3, 1             # clusters take rows of tiles, cores columns
      muli r4, r3, 207872   # 14 * 58 * 256
      muli r5, r2, 3584     # 14 * 256
      add r4, r4, r5
      arg r5, 8
      add r4, r4, r5
      li r6, 4096           # 16 * 256
      li r7, 16
      li r8, 14848          # 58 * 256
      memcpy.i8.nmem.gmem.async r0, r4, r6, r7, r6, r8
      arg r9, 9
      li r10, FILTER
      li r11, 64
      li r12, 4608          # 2 * FILTER of a bank
      li r13, 2
      li r14, 147456        # 64 * FILTER
      memcpy3d.i8.wmem.gmem.async r0, r9, r10, r11, r12, r10, r13, r10, r14
      sync
      li r15, SUMS
      li r16, 14
      li r17, 128
      li r18, 3
      li r19, 256
      conv.i8 r15, r0, r0, r16, r16, r17, r7, r18, r18, r19, r1, r1, r1, r1, r10, r12
      sync
      muli r20, r3, 401408  # 14 * 56 * 128 * 4
      muli r21, r2, 7168    # 14 * 128 * 4
      add r20, r20, r21
      arg r21, 10
      add r20, r20, r21
      li r22, 1792          # 14 * 128
      li r23, 7168          # 56 * 128
      memcpy.i32.gmem.nmem r20, r15, r22, r16, r23, r22
    end:
      halt
  )");
  ir::Tensor image = ir::RandomTensor(ir::Type::kI8, {58, 58, 256}, 1);
  ir::Tensor filters = ir::RandomTensor(ir::Type::kI8, {128, 3, 3, 256}, 2);
  ir::Tensor out(ir::Type::kI32, {56, 56, 128});
  int64_t cycles = 0, read = 0;
  for (auto _ : state) {
    const auto result = RunProgram(
        machine, program, {Argument::Of(&image), Argument::Of(&filters), Argument::Of(&out)});
    POLYNAO_CHECK(result.ok()) << result.status();
    cycles = result->cycles;
    read = result->gmem_read_moved;
  }
  state.counters["cycles"] = static_cast<double>(cycles);
  state.counters["gmem_read"] = static_cast<double>(read);
}
BENCHMARK(BM_Convolution)->UseRealTime()->Unit(benchmark::kMillisecond);

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

// The smallest program: the cost of a run before its first cycle.
void BM_Halt(benchmark::State& state) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = TestProgram("halt\n");
  for (auto _ : state) {
    const auto result = RunProgram(machine, program, {});
    POLYNAO_CHECK(result.ok()) << result.status();
  }
}
BENCHMARK(BM_Halt)->UseRealTime()->Unit(benchmark::kMicrosecond);

// The child process alone.
void BM_Fork(benchmark::State& state) {
  for (auto _ : state) {
    POLYNAO_CHECK(RunIsolated([] { return std::string(); }).ok());
  }
}
BENCHMARK(BM_Fork)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace polynao::simulator

BENCHMARK_MAIN();
