// How long compiling takes, and what an elementwise loop reaches of the machine's memory bandwidth.
//
//   bazel run //compiler/codegen:codegen_benchmark

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "benchmark/benchmark.h"
#include "compiler/codegen/c/emit_c.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/text.h"

namespace polynao::codegen {
namespace {

ir::Function Add() {
  auto f = ir::ParseFunction(R"(
      func add(A: f32[n] in, B: f32[n] in, C: f32[n] out, n: i32) {
        for (i, 0, n) { C[i] = A[i] + B[i] }
      })");
  POLYNAO_CHECK(f.ok()) << f.status();
  return *std::move(f);
}

void CompileAdd(benchmark::State& state) {
  const ir::Function f = Add();
  for (auto _ : state) {
    auto compiled = Compile(f, {.optimization_level = static_cast<int>(state.range(0))});
    POLYNAO_CHECK(compiled.ok()) << compiled.status();
  }
}
BENCHMARK(CompileAdd)->Arg(0)->Arg(2)->Arg(3)->Unit(benchmark::kMillisecond);

void EmitAddAsC(benchmark::State& state) {
  const ir::Function f = Add();
  for (auto _ : state) {
    auto text = EmitC(f);
    POLYNAO_CHECK(text.ok()) << text.status();
  }
}
BENCHMARK(EmitAddAsC)->Unit(benchmark::kMicrosecond);

struct Vectors {
  explicit Vectors(int64_t n) : a(n, 1.0f), b(n, 2.0f), c(n) {}
  std::vector<float> a, b, c;
};

void SetBytes(benchmark::State& state, int64_t n) {
  state.SetBytesProcessed(state.iterations() * n * 3 * sizeof(float));
}

void RunEntry(benchmark::State& state, RawEntry entry) {
  const int64_t n = state.range(0);
  Vectors v(n);
  void* const buffers[] = {v.a.data(), v.b.data(), v.c.data()};
  for (auto _ : state) {
    entry(buffers, &n);
    benchmark::ClobberMemory();
  }
  POLYNAO_CHECK(v.c[n - 1] == 3.0f) << v.c[n - 1];
  SetBytes(state, n);
}

void AddByLlvm(benchmark::State& state) {
  auto compiled = Compile(Add());
  POLYNAO_CHECK(compiled.ok()) << compiled.status();
  RunEntry(state, (*compiled)->entry());
}

void AddByC(benchmark::State& state) {
  auto compiled = CompiledC::Create({Add()});
  if (!compiled.ok()) {
    state.SkipWithError("SKIPPED: no C compiler");
    return;
  }
  RunEntry(state, (*compiled)->entry(0));
}

__attribute__((noinline)) void PlainAdd(const float* __restrict a, const float* __restrict b,
                                        float* __restrict c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

void AddByPlainLoop(benchmark::State& state) {
  const int64_t n = state.range(0);
  Vectors v(n);
  for (auto _ : state) {
    PlainAdd(v.a.data(), v.b.data(), v.c.data(), n);
    benchmark::ClobberMemory();
  }
  SetBytes(state, n);
}

// In the first-level cache, and in memory.
constexpr int64_t kInCache = 2 << 10;
constexpr int64_t kInMemory = 16 << 20;
BENCHMARK(AddByLlvm)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK(AddByC)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK(AddByPlainLoop)->Arg(kInCache)->Arg(kInMemory);

}  // namespace
}  // namespace polynao::codegen

BENCHMARK_MAIN();
