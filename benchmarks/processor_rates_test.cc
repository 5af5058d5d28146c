#include "benchmarks/processor_rates.h"

#include <gtest/gtest.h>

namespace polynao::benchmarks {
namespace {

// Within what processors can be, not of this one's speed.
TEST(ProcessorRatesTest, ArePossible) {
  const poly::CpuRates rates = MeasureProcessor(2, int64_t{1} << 20);
  EXPECT_EQ(rates.threads, 2);
  EXPECT_GT(rates.clock_hz, 1e7);
  EXPECT_LT(rates.clock_hz, 1e10);
  EXPECT_GT(rates.bytes_of_one, 1e6);
  EXPECT_GT(rates.bytes_of_all, 1e6);
  EXPECT_GE(rates.start_seconds, 0);
  EXPECT_LT(rates.start_seconds, 1);
}

}  // namespace
}  // namespace polynao::benchmarks
