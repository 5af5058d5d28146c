// Compile time of normalize, licm and hoist_if against program size.
//
//   bazel run //compiler/passes:licm_benchmark
//
// Time per node should stay the same in all rows of one benchmark.
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/hoist_if.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/normalize.h"

namespace polynao {
namespace {

// `nests` tiled nests one after the other inside of one loop, each with guards and index arithmetic
// of its own.
ir::Function Nests(int nests) {
  std::string text =
      "func f(A: f32[65536] in, B: f32[65536] out, n: i32, m: i32) { for (b, 0, 2) {\n";
  for (int k = 1; k <= nests; ++k) {
    StrAppend(&text, "for (i, 0, 8) { for (j, 0, 16) { for (r, 0, 32) { if (j + r < n + ", k,
              " && i + b < m + ", k, ") { B[r + j * 32 + i * 512 + ", k,
              "] = 1 <= r + j && i < m - ", k, " ? (r < n / ", k + 1, " ? A[r + i * 8 + b * ", k,
              "] : 0.0) : 0.0 } } } }\n");
  }
  text += "} }\n";
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// `loops` loops inside of each other around one store.
ir::Function Deep(int loops) {
  std::string text = "func f(B: f32[65536] out) {\n";
  std::string sum = "0";
  for (int d = 0; d < loops; ++d) {
    StrAppend(&text, "for (i", d, ", 0, 9) {\n");
    sum = StrCat("i", d, " * ", d + 1, " + ", sum);
  }
  StrAppend(&text, "B[", sum, "] = 1.0", std::string(loops, '}'), "}\n");
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// One index of `selects` selects inside of each other, each of which something is added to.
ir::Function Selects(int selects) {
  std::string index = "j";
  for (int k = 0; k < selects; ++k) {
    index =
        StrCat("select(i * 3 + j < n + ", k, ", j + ", k % 7, ", ", index, " + n % ", k + 2, ")");
  }
  const std::string text =
      StrCat("func f(B: f32[65536] out, n: i32) { for (i, 0, 9) { for (j, 0, 9) { B[", index,
             "] = 1.0 } } }");
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

const Target& Cpu() {
  static const auto* target = new Target{.name = "cpu"};
  return *target;
}

// Times `pass` on the program that `prepare` returns; `prepare` is not timed.
template <typename Prepare, typename Pass>
void Time(benchmark::State& state, ir::Function (*make)(int), const Prepare& prepare,
          const Pass& pass) {
  size_t nodes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    {
      ir::Function function = make(static_cast<int>(state.range(0)));
      prepare(function);
      nodes = ir::NodeCount(function.body);
      state.ResumeTiming();
      benchmark::DoNotOptimize(pass(function));
      state.PauseTiming();
    }
    state.ResumeTiming();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["time_per_node"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

constexpr auto kNothing = [](ir::Function&) {};
constexpr auto kNormalize = [](ir::Function& f) { return Normalize(f, Cpu()); };
constexpr auto kLicm = [](ir::Function& f) { return Licm(f, Cpu(), LicmOptionsFor(Cpu())); };
constexpr auto kHoistIf = [](ir::Function& f) { return HoistIf(f, Cpu()); };

void BM_Normalize(benchmark::State& state) { Time(state, Nests, kNothing, kNormalize); }
void BM_Licm(benchmark::State& state) {
  Time(state, Nests, [](ir::Function& f) { POLYNAO_CHECK(kNormalize(f).ok()); }, kLicm);
}
void BM_HoistIf(benchmark::State& state) {
  Time(
      state, Nests,
      [](ir::Function& f) {
        POLYNAO_CHECK(kNormalize(f).ok());
        POLYNAO_CHECK(kLicm(f).ok());
      },
      kHoistIf);
}
// From about a thousand nodes to more than a hundred thousand.
BENCHMARK(BM_Normalize)->RangeMultiplier(10)->Range(30, 3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Licm)->RangeMultiplier(10)->Range(30, 3000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_HoistIf)->RangeMultiplier(10)->Range(30, 3000)->Unit(benchmark::kMillisecond);

void BM_NormalizeSelects(benchmark::State& state) { Time(state, Selects, kNothing, kNormalize); }
BENCHMARK(BM_NormalizeSelects)->RangeMultiplier(2)->Range(8, 64)->Unit(benchmark::kMillisecond);

void BM_LicmDeepNest(benchmark::State& state) {
  Time(state, Deep, [](ir::Function& f) { POLYNAO_CHECK(kNormalize(f).ok()); }, kLicm);
}
BENCHMARK(BM_LicmDeepNest)->DenseRange(8, 40, 16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace polynao

BENCHMARK_MAIN();
