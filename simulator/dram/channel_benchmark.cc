// How fast the DRAM model is: bursts of 64 bytes per second of host time.
//
//   bazel run //simulator/dram:channel_benchmark

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "simulator/dram/channel.h"
#include "simulator/dram/testing.h"

namespace polynao::simulator {
namespace {

constexpr int64_t kRequests = 1 << 16;

// Requests of range(0) bytes that all wait from the start; range(1): percent of them are writes; range(2): at
// random addresses, not one behind the other.
void Traffic(benchmark::State& state, const char* preset) {
  const DramTiming timing = TestDram(preset);
  std::mt19937_64 random(1);
  std::vector<DramRequest> requests;
  const int64_t bytes = state.range(0);
  for (int64_t i = 0; i < kRequests; ++i) {
    const int64_t place = state.range(2) ? static_cast<int64_t>(random() >> 1) : i;
    requests.push_back({.id = i,
                        .address = place % (timing.capacity() / bytes) * bytes,
                        .bytes = bytes,
                        .is_write = static_cast<int64_t>(random() % 100) < state.range(1)});
  }
  int64_t clocks = 0;
  DramCounters counters;
  for (auto _ : state) {
    DramChannel channel(timing);
    // As a card does: the next request comes when the one before has entered.
    for (DramRequest& request : requests) {
      request.clock = channel.clock();
      channel.Push(request);
      channel.RunUntilEntered(INT64_MAX);
    }
    while (!channel.idle()) channel.Run(channel.clock() + 1000);
    clocks = channel.completions().back().clock;
    counters = channel.counters();
    benchmark::DoNotOptimize(clocks);
  }
  const double bursts = static_cast<double>(counters.reads + counters.writes + counters.forwarded);
  state.counters["bursts/s"] = benchmark::Counter(bursts * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate);
  state.counters["of peak"] =
      bursts * static_cast<double>(timing.burst_clocks()) / static_cast<double>(clocks);
  state.counters["ACT/burst"] = static_cast<double>(counters.activates) / bursts;
}
void Arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"bytes", "writes", "random"})
      ->Args({512, 0, 0})
      ->Args({512, 33, 0})
      ->Args({512, 0, 1})
      ->Args({64, 0, 1})
      ->Args({64, 33, 1})
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Traffic, ddr4_3200, "ddr4_3200")->Apply(Arguments);
BENCHMARK_CAPTURE(Traffic, lpddr5, "lpddr5")->Apply(Arguments);
BENCHMARK_CAPTURE(Traffic, hbm2, "hbm2")->Apply(Arguments);

}  // namespace
}  // namespace polynao::simulator

BENCHMARK_MAIN();
