// Streams that start a power of two apart share a channel without meeting in one bank.
#include "simulator/dram/validation/distances.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/testing.h"

namespace polynao::simulator {
namespace {

TEST(Distances, NoNumberOfStreamsAtAnyPowerOfTwoFallsBelowThreeQuartersOfThePeak) {
  for (const char* preset : {"ddr4_3200", "lpddr5", "hbm2"}) {
    const DramTiming timing = TestDram(preset);
    for (const StreamMix& mix : kStreamMixes) {
      for (const int64_t streams : {2, 4, 8, 16, 32, 64}) {
        for (const int64_t distance : StreamDistances(timing, streams)) {
          EXPECT_GE(ShareOfPeak(timing, mix, streams, distance), 0.75)
              << preset << ", " << mix.name << ", " << streams << " streams " << distance
              << " bytes apart";
        }
      }
    }
  }
}

// What the hash is for: without it, the streams of one bank wait for each other's rows.
TEST(Distances, WithoutAHashStreamsMeetInOneBank) {
  const DramTiming timing = TestDram("ddr4_3200", {"hash=0"});
  EXPECT_LT(ShareOfPeak(timing, kStreamMixes[0], 16, 4 << 20), 0.5);
}

TEST(Distances, AreThoseAtWhichStreamsDoNotOverlap) {
  const DramTiming timing = TestDram("hbm2");  // 1 GiB
  const std::vector<int64_t> distances = StreamDistances(timing, 64);
  EXPECT_EQ(distances.front(), 8192);
  EXPECT_EQ(distances.back(), 16 << 20);
}

}  // namespace
}  // namespace polynao::simulator
