#include "base/interval_set.h"

#include <bitset>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Interval = IntervalSet::Interval;

std::vector<Interval> All(const IntervalSet& set) {
  std::vector<Interval> all;
  set.ForEach([&](const Interval& interval) { all.push_back(interval); });
  return all;
}

TEST(IntervalSet, MergesWhatTouches) {
  IntervalSet set;
  set.Add(10, 20, 1);
  set.Add(30, 40, 2);
  EXPECT_THAT(All(set), ElementsAre(Interval{10, 20, 1}, Interval{30, 40, 2}));
  set.Add(20, 30, 3);
  EXPECT_THAT(All(set), ElementsAre(Interval{10, 40, 3}));
  set.Add(5, 5, 4);
  EXPECT_EQ(set.size(), 1u);
}

TEST(IntervalSet, RemoveSplits) {
  IntervalSet set;
  set.Add(0, 100, 7);
  set.Remove(40, 60);
  EXPECT_THAT(All(set), ElementsAre(Interval{0, 40, 7}, Interval{60, 100, 7}));
  set.Remove(0, 100);
  EXPECT_THAT(All(set), IsEmpty());
}

TEST(IntervalSet, OverlapAndGapAreHalfOpen) {
  IntervalSet set;
  set.Add(10, 20, 1);
  EXPECT_FALSE(set.FirstOverlap(0, 10));
  EXPECT_FALSE(set.FirstOverlap(20, 30));
  EXPECT_EQ(set.FirstOverlap(19, 30), (Interval{10, 20, 1}));
  EXPECT_FALSE(set.FirstOverlap(15, 15));
  EXPECT_EQ(set.FirstGap(0, 30), std::pair(int64_t{0}, int64_t{10}));
  EXPECT_EQ(set.FirstGap(12, 30), std::pair(int64_t{20}, int64_t{30}));
  EXPECT_FALSE(set.FirstGap(10, 20));
  EXPECT_TRUE(set.Contains(10, 20));
  EXPECT_FALSE(set.Contains(10, 21));
}

TEST(IntervalSet, AgreesWithABitset) {
  constexpr int kSize = 96;
  const uint32_t seed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    IntervalSet set;
    std::bitset<kSize> bits;
    for (int step = 0; step < 60; ++step) {
      int a = random() % kSize, b = random() % (kSize + 1);
      if (a > b) std::swap(a, b);
      const bool add = random() % 3 != 0;
      add ? set.Add(a, b) : set.Remove(a, b);
      for (int i = a; i < b; ++i) bits[i] = add;

      std::bitset<kSize> seen;
      int64_t last = -1;
      set.ForEach([&](const Interval& interval) {
        ASSERT_GT(interval.begin, last) << "intervals are not maximal and sorted";
        ASSERT_LT(interval.begin, interval.end);
        for (int64_t i = interval.begin; i < interval.end; ++i) seen[i] = true;
        last = interval.end;
      });
      ASSERT_EQ(seen, bits);

      int c = random() % kSize, d = random() % (kSize + 1);
      if (c > d) std::swap(c, d);
      int first_set = -1, first_clear = -1, clear_end = d;
      for (int i = d - 1; i >= c; --i) {
        if (bits[i]) first_set = i;
        if (!bits[i]) first_clear = i;
      }
      if (first_clear >= 0) {
        clear_end = first_clear;
        while (clear_end < d && !bits[clear_end]) ++clear_end;
      }
      const auto overlap = set.FirstOverlap(c, d);
      ASSERT_EQ(overlap.has_value(), first_set >= 0);
      if (overlap) {
        ASSERT_EQ(std::max<int64_t>(overlap->begin, c), first_set);
      }
      const auto gap = set.FirstGap(c, d);
      ASSERT_EQ(gap.has_value(), first_clear >= 0);
      if (gap) {
        ASSERT_EQ(*gap, (std::pair<int64_t, int64_t>(first_clear, clear_end)));
      }
      ASSERT_EQ(set.Contains(c, d), first_clear < 0);
    }
  }
}

}  // namespace
}  // namespace polynao
