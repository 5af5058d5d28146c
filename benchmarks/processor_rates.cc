#include "benchmarks/processor_rates.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/elapsed.h"
#include "benchmarks/busy_cores.h"
#include "compiler/codegen/llvm/runtime/thread_pool.h"

namespace polynao::benchmarks {
namespace {

template <typename F>
double Seconds(const F& f) {
  const Clock::time_point start = Clock::now();
  f();
  return SecondsSince(start);
}

// A chain of multiplications, of which each waits for the one before.
uint64_t Multiply(uint64_t factor, int64_t steps) {
  // Nothing that the compiler knows, so that it multiplies; and each time, not by powers.
  asm volatile("" : "+r"(factor));
  uint64_t product = factor;
  for (int64_t i = 0; i < steps; ++i) {
    product *= factor;
    asm volatile("" : "+r"(product));
  }
  return product;
}

double ClockHz() {
  constexpr int64_t kSteps = 3'000'000;
  constexpr double kCycles = 3;
  double best = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 20; ++turn)
    best = std::min(best, Seconds([&] { Multiply(3, kSteps); }));
  return kCycles * static_cast<double>(kSteps) / best;
}

struct Sums {
  const std::vector<uint64_t>& words;
  int64_t parts;
  std::vector<uint64_t> results;
};

int32_t SumParts(void* closure, int64_t begin, int64_t end) {
  auto& sums = *static_cast<Sums*>(closure);
  const auto count = static_cast<int64_t>(sums.words.size());
  for (int64_t part = begin; part < end; ++part) {
    uint64_t sum = 0;
    for (int64_t i = count * part / sums.parts; i < count * (part + 1) / sums.parts; ++i)
      sum += sums.words[static_cast<size_t>(i)];
    sums.results[static_cast<size_t>(part)] = sum;
  }
  return 0;
}

double BytesPerSecond(const std::vector<uint64_t>& words, int threads) {
  // Some parts for each thread, so that none waits long for another.
  const int64_t parts = threads * int64_t{8};
  Sums sums = {
      .words = words, .parts = parts, .results = std::vector<uint64_t>(static_cast<size_t>(parts))};
  double best = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 5; ++turn)
    best = std::min(best, Seconds([&] { polynao_parallel_for(SumParts, &sums, parts, threads); }));
  return static_cast<double>(words.size() * sizeof(uint64_t)) / best;
}

// What a loop with work for each thread takes beyond this work. (Without work the first thread is done before another
// one has come.)
double StartSeconds(int threads) {
  const auto work = [](void*, int64_t begin, int64_t end) {
    Multiply(3, (end - begin) * 20'000);
    return int32_t{0};
  };
  const auto median = [&](int64_t extent, int count) {
    std::vector<double> times;
    for (int turn = 0; turn < 501; ++turn)
      times.push_back(Seconds([&] { polynao_parallel_for(work, nullptr, extent, count); }));
    std::nth_element(times.begin(), times.begin() + 250, times.end());
    return times[250];
  };
  const double alone = median(1, 1);
  return std::max(median(threads, threads) - alone, 0.0);
}

int64_t BytesBeyondCaches() {
  int64_t last = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  last = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
#endif
  return std::clamp<int64_t>(4 * last, int64_t{256} << 20, int64_t{1} << 30);
}

}  // namespace

poly::CpuRates MeasureProcessor(int threads, int64_t bytes) {
  if (bytes <= 0) bytes = BytesBeyondCaches();
  poly::CpuRates rates = {.threads = threads, .clock_hz = ClockHz()};
  const std::vector<uint64_t> words(static_cast<size_t>(bytes) / sizeof(uint64_t), 1);
  {
    // Not for starts of threads: a core that sleeps is a part of what they take.
    const BusyCores busy;
    rates.bytes_of_one = BytesPerSecond(words, 1);
    rates.bytes_of_all = threads > 1 ? BytesPerSecond(words, threads) : rates.bytes_of_one;
  }
  rates.start_seconds = StartSeconds(threads);
  return rates;
}

}  // namespace polynao::benchmarks
