#include "simulator/dram/row_changes.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/channel.h"
#include "simulator/dram/testing.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Kind = DramCommand::Kind;

DramTiming Timing() {
  DramTiming timing = TestDram("ddr4_3200");
  timing.cl = 20;
  timing.cwl = 16;
  timing.trcd = 7;
  timing.trp = 5;
  return timing;
}

using Changes = std::vector<std::pair<int64_t, DramState>>;

Changes ChangesOf(const DramTiming& timing, const std::vector<DramCommand>& commands,
                  int64_t until) {
  RowChanges rows(timing);
  Changes changes;
  for (const DramCommand& command : commands) rows.Add(command);
  rows.Advance(until, [&](int64_t clock, DramState state) { changes.push_back({clock, state}); });
  return changes;
}

TEST(RowChangesTest, ReadOfAClosedBank) {
  // B is 4 clocks.
  EXPECT_THAT(ChangesOf(Timing(), {{10, Kind::kActivate}, {17, Kind::kRead}}, 100),
              ElementsAre(Pair(10, DramState::kRows), Pair(17, DramState::kOther),
                          Pair(37, DramState::kData), Pair(41, DramState::kOther)));
}

TEST(RowChangesTest, WriteAfterAConflict) {
  EXPECT_THAT(
      ChangesOf(Timing(), {{10, Kind::kPrecharge}, {15, Kind::kActivate}, {22, Kind::kWrite}}, 100),
      ElementsAre(Pair(10, DramState::kRows), Pair(22, DramState::kOther),
                  Pair(38, DramState::kData), Pair(42, DramState::kOther)));
}

TEST(RowChangesTest, DataHidesRows) {
  // Data in [30, 34); the row of another bank opens in [28, 35).
  EXPECT_THAT(ChangesOf(Timing(), {{10, Kind::kRead}, {28, Kind::kActivate}}, 100),
              ElementsAre(Pair(28, DramState::kRows), Pair(30, DramState::kData),
                          Pair(34, DramState::kRows), Pair(35, DramState::kOther)));
}

TEST(RowChangesTest, ARefreshChangesNoRows) {
  EXPECT_THAT(ChangesOf(Timing(), {{10, Kind::kPrechargeAll}, {20, Kind::kRefresh}}, 100),
              ElementsAre());
}

// In pieces as at once, and as a plain loop over clocks has it.
TEST(RowChangesTest, AgreesWithALoopOverClocksOnRandomTraffic) {
  const uint64_t seed = FuzzSeed();
  int64_t clocks_of[3] = {0, 0, 0};
  for (int64_t i = 0; i < FuzzCases(100); ++i) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<uint64_t>(i));
    const DramTiming timing = RandomDram(random);
    SCOPED_TRACE(testing::Message()
                 << "POLYNAO_SEED=" << seed << ", case " << i << ": " << DescribeDram(timing));
    DramChannel channel(timing);
    std::vector<DramCommand> trace, all;
    channel.set_trace(&trace);
    RowChanges rows(timing);
    Changes changes;
    const auto take = [&] {
      for (const DramCommand& command : trace) rows.Add(command);
      all.insert(all.end(), trace.begin(), trace.end());
      trace.clear();
      rows.Advance(channel.clock(),
                   [&](int64_t clock, DramState state) { changes.push_back({clock, state}); });
    };
    for (const DramRequest& request : RandomTraffic(RandomShape(timing, random), 50, random)) {
      if (request.clock > channel.clock()) channel.Run(request.clock);
      channel.Push(request);
      take();
    }
    while (!channel.idle()) {
      channel.Run(channel.clock() + 1 + static_cast<int64_t>(random() % 5000));
      take();
    }
    channel.Run(channel.clock() + 2000);  // the last data arrives
    take();
    const int64_t end = channel.clock();
    std::vector<DramState> expected(static_cast<size_t>(end), DramState::kOther);
    const auto mark = [&](int64_t begin, int64_t count, DramState state) {
      for (int64_t t = begin; t < std::min(begin + count, end); ++t) {
        DramState& at = expected[static_cast<size_t>(t)];
        at = std::max(at, state);
      }
    };
    for (const DramCommand& c : all) {
      if (c.kind == Kind::kActivate) mark(c.clock, timing.trcd, DramState::kRows);
      if (c.kind == Kind::kPrecharge) mark(c.clock, timing.trp, DramState::kRows);
      const int64_t burst = timing.burst_clocks();
      if (c.kind == Kind::kRead) mark(c.clock + timing.cl, burst, DramState::kData);
      if (c.kind == Kind::kWrite) mark(c.clock + timing.cwl, burst, DramState::kData);
    }
    Changes plain;
    for (int64_t t = 0; t < end; ++t) {
      const DramState before = t == 0 ? DramState::kOther : expected[static_cast<size_t>(t - 1)];
      const DramState state = expected[static_cast<size_t>(t)];
      if (state != before) plain.push_back({t, state});
      ++clocks_of[static_cast<int>(state)];
    }
    ASSERT_EQ(changes, plain);
  }
  for (int64_t clocks : clocks_of) EXPECT_GT(clocks, 100);
}

}  // namespace
}  // namespace polynao::simulator
