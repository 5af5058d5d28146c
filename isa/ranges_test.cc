#include "isa/ranges.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ByteRanges Make(int64_t begin, int64_t run, std::vector<std::pair<int64_t, int64_t>> dims) {
  ByteRanges ranges;
  ranges.space = Space::kNmem;
  ranges.begin = begin;
  ranges.run = run;
  ranges.dims = std::move(dims);
  return ranges;
}

std::set<int64_t> Bytes(const ByteRanges& ranges) {
  std::set<int64_t> bytes;
  ranges.ForEachRun([&](int64_t begin, int64_t size) {
    for (int64_t i = 0; i < size; ++i) bytes.insert(begin + i);
  });
  return bytes;
}

TEST(Canonical, MergesRowsAndWindows) {
  // 4 rows of 8 bytes that follow each other.
  ByteRanges rows = Canonical(Make(100, 8, {{4, 8}}));
  EXPECT_EQ(rows.run, 32);
  EXPECT_THAT(rows.dims, IsEmpty());
  // 3x3 windows at stride 1 over rows of 10 pixels, 2 bytes each: columns merge, rows stay apart.
  ByteRanges windows = Canonical(Make(0, 2, {{4, 20}, {6, 2}, {3, 20}, {3, 2}}));
  EXPECT_EQ(windows.run, 16);
  EXPECT_THAT(windows.dims, ElementsAre(Pair(6, 20)));
  // Whole rows: one run.
  ByteRanges whole = Canonical(Make(0, 2, {{4, 20}, {8, 2}, {3, 20}, {3, 2}}));
  EXPECT_THAT(whole.dims, IsEmpty());
  EXPECT_EQ(whole.run, 6 * 20);
}

TEST(Canonical, LeavesGapsAlone) {
  ByteRanges gaps = Canonical(Make(0, 7, {{4, 8}}));
  EXPECT_EQ(gaps.run, 7);
  EXPECT_THAT(gaps.dims, ElementsAre(Pair(4, 8)));
  EXPECT_EQ(Canonical(Make(0, 7, {{0, 8}})).run, 0);
}

TEST(CommonByte, InterleavedRunsDoNotMeet) {
  const auto even = Make(0, 8, {{10, 16}});
  EXPECT_FALSE(CommonByte(even, Make(8, 8, {{10, 16}})));
  EXPECT_TRUE(CommonByte(even, Make(8, 9, {{9, 16}})));
  EXPECT_EQ(CommonByte(even, 8, 17), 16);
  EXPECT_FALSE(CommonByte(even, 8, 16));
}

TEST(RunCursor, JoinsOnlyInnerRunsInOrder) {
  RunCursor contiguous(Make(64, 16, {{3, 48}, {3, 16}}));
  EXPECT_EQ(contiguous.run_count(), 1);
  EXPECT_EQ(contiguous.size(), 144);
  // Columns outside, rows inside: the runs stay as the loops visit them.
  RunCursor columns(Make(0, 4, {{2, 4}, {2, 100}}));
  std::vector<int64_t> begins;
  for (; !columns.done(); columns.Next()) begins.push_back(columns.begin());
  EXPECT_THAT(begins, ElementsAre(0, 100, 4, 104));
  EXPECT_TRUE(RunCursor(Make(0, 0, {})).done());
  EXPECT_TRUE(RunCursor(Make(0, 4, {{0, 4}})).done());
}

TEST(Ranges, RandomSetsKeepTheirBytes) {
  const uint32_t seed = 77;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  const auto make = [&] {
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (int d = pick(0, 3); d > 0; --d) dims.push_back({pick(1, 4), pick(-12, 40)});
    return Make(pick(100, 200), pick(1, 9), dims);
  };
  int meeting = 0;
  for (int round = 0; round < 3000; ++round) {
    const ByteRanges a = make(), b = make();
    const ByteRanges ca = Canonical(a), cb = Canonical(b);
    const std::set<int64_t> bytes_a = Bytes(a), bytes_b = Bytes(b);
    ASSERT_EQ(Bytes(ca), bytes_a);
    std::set<int64_t> both;
    std::set_intersection(bytes_a.begin(), bytes_a.end(), bytes_b.begin(), bytes_b.end(),
                          std::inserter(both, both.end()));
    const auto common = CommonByte(ca, cb);
    ASSERT_EQ(common.has_value(), !both.empty()) << round;
    if (common) ASSERT_TRUE(both.count(*common));
    meeting += common.has_value();
    std::set<int64_t> walked;
    for (RunCursor cursor(a); !cursor.done(); cursor.Next()) {
      for (int64_t i = 0; i < cursor.size(); ++i) walked.insert(cursor.begin() + i);
    }
    ASSERT_EQ(walked, bytes_a);
  }
  EXPECT_GT(meeting, 300);
  EXPECT_LT(meeting, 2700);
}

}  // namespace
}  // namespace polynao::isa
