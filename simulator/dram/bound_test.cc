// What the channel takes against DramBound: never less, and for streams hardly more.
#include "simulator/dram/bound.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/channel.h"
#include "simulator/dram/testing.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

struct Outcome {
  int64_t clocks = 0;  // until the last completion
  DramCounters counters;
};

// Requests that all wait in the inbox from clock 0.
Outcome Serve(const DramTiming& timing, const std::vector<DramRequest>& requests) {
  DramChannel channel(timing);
  for (const DramRequest& request : requests) channel.Push(request);
  while (!channel.idle()) channel.Run(channel.clock() + 100'000);
  Outcome outcome;
  outcome.counters = channel.counters();
  for (const DramCompletion& completion : channel.completions()) {
    outcome.clocks = std::max(outcome.clocks, completion.clock);
  }
  return outcome;
}

std::vector<DramRequest> Stream(int64_t bytes, bool is_write) {
  std::vector<DramRequest> requests;
  for (int64_t i = 0; i < bytes / 512; ++i) {
    requests.push_back({.id = i, .address = 512 * i, .bytes = 512, .is_write = is_write});
  }
  return requests;
}

const char* const kPresets[] = {"ddr4_3200", "lpddr5", "hbm2"};

TEST(DramBound, AddsUp) {
  const DramTiming t = TestDram("ddr4_3200");
  // 16 reads: trcd is not in the bound, nor is a refresh.
  EXPECT_EQ(DramBound(t, 1024, 0).clocks, 15 * 4 + 22 + 4);
  EXPECT_EQ(DramBound(t, 0, 0).clocks, 0);
  EXPECT_EQ(DramBound(t, 0, 4096).clocks, 0);  // in the queue
  EXPECT_EQ(DramBound(t, 0, 4096 + 64).clocks, 16 + 4);
  const DramTiming one_group =
      TestDram("ddr4_3200", {"bank_groups=1", "banks=16", "map=row bank column", "posted=0"});
  EXPECT_EQ(DramBound(one_group, 1024, 0).clocks, 15 * 8 + 22 + 4);
  // Reads, then writes: 22 + 4 + 2 - 16 between them and 16 + 4 at the end.
  EXPECT_EQ(DramBound(one_group, 1024, 640).clocks, 15 * 8 + 12 + 9 * 8 + 20);
  EXPECT_EQ(DramBoundCycles(t, 1000, 4, 4 * 1024, 0), (15 * 4 + 22 + 4) * 5 / 8);
}

TEST(DramBound, ReadsAndWritesThatStreamComeWithinAPercent) {
  for (const char* preset : kPresets) {
    for (const bool is_write : {false, true}) {
      SCOPED_TRACE(testing::Message() << preset << (is_write ? " writes" : " reads"));
      const DramTiming t = TestDram(preset);
      const int64_t bytes = 16 << 20;
      const int64_t bound = DramBound(t, is_write ? 0 : bytes, is_write ? bytes : 0).clocks;
      const Outcome outcome = Serve(t, Stream(bytes, is_write));
      EXPECT_GE(outcome.clocks, bound);
      EXPECT_LE(outcome.clocks, bound + bound / 100);
      // Refresh costs a few percent of the peak.
      const double peak = static_cast<double>(bytes / 64 * t.burst_clocks());
      EXPECT_LT(static_cast<double>(bound), peak * 1.12);
      EXPECT_GT(static_cast<double>(bound), peak * 1.03);
    }
  }
}

// Two reads of 512 bytes and one write in turn, in streams and banks of their own: each drain costs a change to writes
// and one back, beyond what the bound has. (Rows are long: a drain opens its rows when it comes to them.)
TEST(DramBound, MixesComeWithinAPercentOfTheBoundAndItsTurnarounds) {
  for (const char* preset : kPresets) {
    SCOPED_TRACE(preset);
    const DramTiming t = TestDram(
        preset, {"map=bank row column bank_group", "hash=0", "row_bytes=1048576", "rows=64"});
    std::vector<DramRequest> requests;
    const int64_t count = 3 * 10'000, far = t.capacity() / 2;
    for (int64_t i = 0; i < count; ++i) {
      const bool is_write = i % 3 == 2;
      requests.push_back({.id = i,
                          .address = is_write ? far + i / 3 * 512 : (i / 3 * 2 + i % 3) * 512,
                          .bytes = 512,
                          .is_write = is_write});
    }
    const Outcome outcome = Serve(t, requests);
    const DramBoundTerms bound = DramBound(t, count / 3 * 2 * 512, count / 3 * 512);
    EXPECT_GE(outcome.clocks, bound.clocks);
    const int64_t b = t.burst_clocks();
    const int64_t turns = t.cl + b + t.turnaround - t.cwl + t.cwl + b + t.twtr_s - 2 * t.tccd_s;
    const int64_t busy = bound.columns + outcome.counters.drains * turns;
    // After a refresh each direction opens its rows when it comes to them.
    const int64_t gap = t.trtp + t.trp + t.trfc + 2 * t.trcd;
    const int64_t expected = busy + busy / (t.trefi - gap) * gap;
    EXPECT_NEAR(static_cast<double>(outcome.clocks), static_cast<double>(expected),
                0.01 * static_cast<double>(expected))
        << outcome.counters.drains << " drains";
  }
}

TEST(DramBound, HoldsForRandomTimingsAndTraffic) {
  const uint64_t seed = FuzzSeed();
  for (int64_t i = 0; i < FuzzCases(300); ++i) {
    std::mt19937_64 random(seed * 7'000'003 + static_cast<uint64_t>(i));
    const DramTiming timing = RandomDram(random);
    SCOPED_TRACE(testing::Message()
                 << "POLYNAO_SEED=" << seed << ", case " << i << ": " << DescribeDram(timing));
    TrafficShape shape = RandomShape(timing, random);
    shape.max_wait = 0;
    std::vector<DramRequest> requests = RandomTraffic(shape, 200, random);
    int64_t read = 0, written = 0;
    for (DramRequest& request : requests) {
      request.clock = 0;
      const int64_t b = timing.burst_bytes();
      const int64_t bursts = (request.address + request.bytes - 1) / b - request.address / b + 1;
      (request.is_write ? written : read) += bursts * b;
    }
    const Outcome outcome = Serve(timing, requests);
    read -= outcome.counters.forwarded * timing.burst_bytes();
    written -= outcome.counters.merged * timing.burst_bytes();
    const DramBoundTerms bound = DramBound(timing, read, written);
    ASSERT_GE(outcome.clocks, bound.clocks);
    ASSERT_EQ(bound.clocks, bound.columns + bound.turn + bound.refresh + bound.latency);
  }
}

TEST(ClockRatio, RoundsToTheFirstEdgeThatIsNotEarlier) {
  const ClockRatio ddr4(1000, 1600);
  EXPECT_EQ(ddr4.ClockOf(0), 0);
  EXPECT_EQ(ddr4.ClockOf(1), 2);  // 1000 ps: edges at 625 and 1250
  EXPECT_EQ(ddr4.ClockOf(5), 8);  // 5000 ps, exactly
  EXPECT_EQ(ddr4.CycleOf(8), 5);
  EXPECT_EQ(ddr4.CycleOf(9), 6);
  EXPECT_EQ(ddr4.CycleOf(1), 1);
  const ClockRatio hbm2(1000, 1200);  // no whole number of picoseconds
  EXPECT_EQ(hbm2.ClockOf(5), 6);
  EXPECT_EQ(hbm2.CycleOf(7), 6);
  for (int64_t cycle = 0; cycle < 1000; ++cycle) {
    EXPECT_EQ(ddr4.CycleOf(ddr4.ClockOf(cycle)),
              ddr4.ClockOf(cycle) * 5 % 8 == 0 ? cycle : (ddr4.ClockOf(cycle) * 5 + 7) / 8);
  }
}

}  // namespace
}  // namespace polynao::simulator
