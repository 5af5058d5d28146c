// Compile time of simplify and loop_partition against program size.
//
//   bazel run //compiler/passes:loop_partition_benchmark
//
// Time per node should stay the same from row to row of one benchmark.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/simplify.h"

namespace polynao {
namespace {

// `nests` loop nests one after the other, each with a store to B under `guard`, which may open
// further ifs.
ir::Function Nests(int nests, const std::string& guard, const std::string& extent = "16") {
  std::string text = "func f(A: f32[4096] in, B: f32[4096] out, n: i32) {\n";
  const std::string close(3 + 1 + std::count(guard.begin(), guard.end(), '{'), '}');
  for (int n = 0; n < nests; ++n) {
    StrAppend(&text, "for (i, 0, ", extent, ") { for (j, 0, 16) { for (k, 0, 8) { if (", guard,
              ") { B[(i * 16 + j + ", n, ") / 16 * 16 + (i * 16 + j + ", n,
              ") % 16] = A[i * 16 + j] ", close, "\n");
  }
  text += "}\n";
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// A nest of `depth` loops around one guard on all of them.
ir::Function Deep(int depth) {
  std::string text = "func f(B: f32[4096] out) {\n";
  std::string sum = "0";
  for (int d = 0; d < depth; ++d) {
    StrAppend(&text, "for (i", d, ", 0, 2) {\n");
    StrAppend(&sum, " + i", d);
  }
  StrAppend(&text, "if (", sum, " < ", depth, ") { B[0] = 1.0 }", std::string(depth, '}'), "}\n");
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

void Report(benchmark::State& state, size_t nodes) {
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["time_per_node"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void BM_Simplify(benchmark::State& state) {
  size_t nodes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    ir::Function function = Nests(static_cast<int>(state.range(0)), "i * 16 + j < 250");
    nodes = ir::NodeCount(function.body);
    state.ResumeTiming();
    benchmark::DoNotOptimize(Simplify(function));
  }
  Report(state, nodes);
}
BENCHMARK(BM_Simplify)->RangeMultiplier(10)->Range(10, 1000)->Unit(benchmark::kMillisecond);

void Partition(benchmark::State& state, const std::string& guard,
               const std::string& extent = "16") {
  size_t nodes = 0;
  LoopPartitionStats stats;
  for (auto _ : state) {
    state.PauseTiming();
    ir::Function function = Nests(static_cast<int>(state.range(0)), guard, extent);
    nodes = ir::NodeCount(function.body);
    stats = {};
    state.ResumeTiming();
    benchmark::DoNotOptimize(LoopPartition(function, {}, &stats));
  }
  Report(state, nodes);
  state.counters["isl_questions"] = static_cast<double>(stats.isl_questions);
}

// Linear guards over a box: intervals alone.
void BM_PartitionByIntervals(benchmark::State& state) { Partition(state, "i * 16 + j < 250"); }
BENCHMARK(BM_PartitionByIntervals)
    ->RangeMultiplier(10)
    ->Range(10, 1000)
    ->Unit(benchmark::kMillisecond);

// A division: every question goes to isl.
void BM_PartitionByIsl(benchmark::State& state) { Partition(state, "(i * 16 + j) / 3 % 50 < 41"); }
BENCHMARK(BM_PartitionByIsl)->RangeMultiplier(10)->Range(10, 1000)->Unit(benchmark::kMillisecond);

// A loop of n iterations: constant cuts, written with min and max.
void BM_PartitionSymbolic(benchmark::State& state) { Partition(state, "i * 16 + j < 250", "n"); }
BENCHMARK(BM_PartitionSymbolic)
    ->RangeMultiplier(10)
    ->Range(10, 1000)
    ->Unit(benchmark::kMillisecond);

// A guard inside another about the same variables: the outer one's facts go to isl.
void BM_PartitionByFacts(benchmark::State& state) {
  Partition(state, "i * 16 + j < 250) { if (i * 16 + j < 252", "16");
}
BENCHMARK(BM_PartitionByFacts)->RangeMultiplier(10)->Range(10, 1000)->Unit(benchmark::kMillisecond);

void BM_PartitionDeepNest(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    ir::Function function = Deep(static_cast<int>(state.range(0)));
    state.ResumeTiming();
    benchmark::DoNotOptimize(LoopPartition(function));
  }
}
BENCHMARK(BM_PartitionDeepNest)->DenseRange(4, 16, 4)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace polynao

BENCHMARK_MAIN();
