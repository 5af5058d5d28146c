#include "simulator/time_buckets.h"

#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

using ::testing::ElementsAre;

TEST(TimeBucketsTest, NeighboursBecomeOneWhenTimeGoesOn) {
  TimeBuckets buckets(2, 4);
  buckets.Add(0, 0, 1);
  buckets.Add(0, 1, 2);
  buckets.Add(1, 3, 4);
  EXPECT_EQ(buckets.width(), 1);
  buckets.Add(1, 4, 8);
  EXPECT_EQ(buckets.width(), 2);
  buckets.Close(5);
  EXPECT_THAT(buckets.Row(0), ElementsAre(3, 0, 0));
  EXPECT_THAT(buckets.Row(1), ElementsAre(0, 4, 8));
  buckets.Close(9);
  EXPECT_EQ(buckets.width(), 4);
  EXPECT_THAT(buckets.Row(0), ElementsAre(3, 0, 0));
  EXPECT_THAT(buckets.Row(1), ElementsAre(4, 8, 0));
}

TEST(TimeBucketsTest, ARunWithoutEventsHasABucket) {
  TimeBuckets buckets(1);
  buckets.Close(0);
  EXPECT_THAT(buckets.Row(0), ElementsAre(0));
}

TEST(TimeBucketsTest, SumsOfRandomEventsStayInABoundedTable) {
  std::mt19937_64 random(FuzzSeed());
  for (int64_t i = 0; i < FuzzCases(100); ++i) {
    TimeBuckets buckets(3);
    std::map<std::pair<int, int64_t>, int64_t> events;
    const int64_t end = int64_t{1} << random() % 40;
    for (int e = 0; e < 200; ++e) {
      const int row = static_cast<int>(random() % 3);
      const int64_t cycle = static_cast<int64_t>(random() % static_cast<uint64_t>(end));
      buckets.Add(row, cycle, e);
      events[{row, cycle}] += e;
    }
    buckets.Close(end);
    for (int row = 0; row < 3; ++row) {
      const std::vector<int64_t> sums = buckets.Row(row);
      ASSERT_LE(sums.size(), 400u);
      ASSERT_GE(static_cast<int64_t>(sums.size()), std::min<int64_t>(end, 200));
      std::vector<int64_t> expected(sums.size());
      for (const auto& [key, sum] : events) {
        if (key.first == row) expected[static_cast<size_t>(key.second / buckets.width())] += sum;
      }
      ASSERT_EQ(sums, expected) << "end " << end;
    }
  }
}

}  // namespace
}  // namespace polynao::simulator
