// Compile time of cse against program size, 1,000 to 100,000 nodes.
//
//   bazel run //compiler/passes:cse_benchmark
//
// Time per node should stay the same in all rows of one benchmark.
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/cse.h"

namespace polynao {
namespace {

ir::Function Parse(const std::string& text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// Nests of two loops with repeated guards, divisions and loads, such as padding makes.
ir::Function Nests(int nodes) {
  std::string text = "func f(A: f32[4096] in, B: f32[4096] out, n: i32) {\n";
  constexpr int kNodes = 19;  // of one nest
  for (int i = 0; i < nodes / kNodes; ++i) {
    const std::string y = StrCat("(i * 7 + ", i, ") / 3");
    StrAppend(&text, "for (i, 0, 16) { for (j, 0, 16) { if (0 <= ", y, " && ", y, " < n) { B[", y,
              " * 16 + j] = A[", y, " + j] * A[", y, " + j] } } }\n");
  }
  return Parse(text + "}\n");
}

// One block of stores. Each store shares one part with all others and one with its neighbour. The
// variables nest, each in the scope of the one before, so the depth of the stack bounds their number.
ir::Function Block(int nodes) {
  std::string text = "func f(B: i32[4096] out, x: i32, y: i32) {\n";
  constexpr int kNodes = 6;  // of two stores
  for (int i = 0; i < nodes / kNodes; ++i) {
    for (int k = 0; k < 2; ++k) {
      StrAppend(&text, "B[", k, "] = x * y % 64 + (x + y * ", i, ")\n");
    }
  }
  return Parse(text + "}\n");
}

// One sum in which every part stands twice: as a tree it would have 2^n nodes.
ir::Function Sum(int nodes) {
  ir::Function function = Parse("func f(B: i32[4] out, x: i32, y: i32) { B[0] = x * y }\n");
  const ir::Stmt store = function.body;
  ir::Expr sum = store.value();
  for (int i = 0; i < nodes; ++i) sum = i % 2 == 0 ? sum + sum : sum * (i % 5 + 1);
  function.body = function.context->Store(store.buffer(), store.indices(), sum);
  return function;
}

void Run(benchmark::State& state, ir::Function (*program)(int), bool semantic) {
  size_t nodes = 0;
  size_t after = 0;
  for (auto _ : state) {
    state.PauseTiming();
    ir::Function function = program(static_cast<int>(state.range(0)));
    nodes = ir::NodeCount(function.body);
    state.ResumeTiming();
    benchmark::DoNotOptimize(Cse(function, {.semantic = semantic}));
    state.PauseTiming();
    after = ir::NodeCount(function.body);
    function = {};  // freed outside the time
    state.ResumeTiming();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["nodes_after"] = static_cast<double>(after);
  state.counters["time_per_node"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void BM_Nests(benchmark::State& state) { Run(state, Nests, false); }
void BM_NestsSemantic(benchmark::State& state) { Run(state, Nests, true); }
void BM_Block(benchmark::State& state) { Run(state, Block, false); }
void BM_Sum(benchmark::State& state) { Run(state, Sum, false); }
BENCHMARK(BM_Nests)->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_NestsSemantic)
    ->RangeMultiplier(10)
    ->Range(1000, 100000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Block)->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Sum)->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace polynao

BENCHMARK_MAIN();
