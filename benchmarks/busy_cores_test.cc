#include "benchmarks/busy_cores.h"

#include <sched.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST(BusyCoresTest, EachCoreIsBusyUntilTheEnd) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  const double begin = ProcessorSeconds();
  {
    const BusyCores busy;
    EXPECT_EQ(busy.size(), CPU_COUNT(&cores));
    // Others may want all cores, for any time: some of it is left.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    constexpr double kSome = 0.001;
    while (ProcessorSeconds() - begin < kSome && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(ProcessorSeconds() - begin, kSome);
  }
  const double end = ProcessorSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(ProcessorSeconds() - end, 0.02);
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

}  // namespace
}  // namespace polynao::benchmarks
