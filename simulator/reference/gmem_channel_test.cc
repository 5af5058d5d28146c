#include "simulator/reference/gmem_channel.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/machine.h"

namespace polynao::simulator::reference {
namespace {

// A channel with lines of 256 bytes, granules of 64, a line served in 16 cycles and a slice's port that takes 8 for it.
class GmemChannelTest : public testing::Test {
 protected:
  explicit GmemChannelTest(int64_t lines = 2)
      : parameters_(
            TestMachine("unit", {"gmem.channels=1", "gmem.cache_latency=30", "gmem.cache_kib=1"})),
        channel_(MakeGmemChannel(parameters_, 0, 4)) {
    channel_.lines_allowed = lines;
  }

  // A burst that arrives now and is alone; the cycles until it leaves.
  int64_t Cycles(int64_t address, int64_t size, bool is_write = false) {
    Burst burst;
    burst.address = address;
    burst.payload = size;
    burst.writes_gmem = is_write;
    burst.Add({.bytes = GmemBytes(parameters_.gmem, address, size, is_write)});
    burst.Add({.delay = parameters_.gmem.latency});
    Enter(channel_, burst, cycle_);
    for (const int64_t first = cycle_;; ++cycle_) {
      int64_t left = -1;
      for (const Burst& b : Finish(channel_, cycle_)) {
        left = cycle_ - first;
        came_from_cache_ = b.next_stop().requester == 1;
        EXPECT_EQ(b.next_stop().delay, came_from_cache_ ? 30 : 100);
      }
      if (left >= 0) return left;
      Take(channel_, cycle_);
    }
  }
  bool IsCached(int64_t address, int64_t size) {
    cycle_ += 1000;
    Cycles(address, size);
    return came_from_cache_;
  }

  const Parameters parameters_;
  GmemChannel channel_;
  int64_t cycle_ = 0;
  bool came_from_cache_ = false;
};

TEST_F(GmemChannelTest, TheSliceServesWhatWasRead) {
  EXPECT_EQ(Cycles(0, 256), 16);
  EXPECT_FALSE(came_from_cache_);
  cycle_ += 1000;
  EXPECT_EQ(Cycles(0, 256), 8);
  EXPECT_TRUE(came_from_cache_);
  EXPECT_EQ(channel_.counts.read_cached, 256);
  EXPECT_EQ(channel_.counts.read_moved, 256);
}

TEST_F(GmemChannelTest, AReadWaitsUntilTheDataHasCome) {
  EXPECT_EQ(Cycles(0, 256), 16);
  // From the channel to the slice the data takes 100 - 30 cycles.
  EXPECT_EQ(Cycles(0, 64), 70 + 2);
}

TEST_F(GmemChannelTest, OnlyGranulesThatWereReadAreThere) {
  EXPECT_FALSE(IsCached(64, 64));
  EXPECT_FALSE(IsCached(0, 256));
  EXPECT_TRUE(IsCached(64, 192));
}

TEST_F(GmemChannelTest, TheLineReadLongestAgoMakesRoom) {
  EXPECT_FALSE(IsCached(0, 64));
  EXPECT_FALSE(IsCached(256, 64));
  EXPECT_TRUE(IsCached(0, 64));
  EXPECT_FALSE(IsCached(512, 64));
  EXPECT_TRUE(IsCached(0, 64));
  EXPECT_FALSE(IsCached(256, 64));
}

TEST_F(GmemChannelTest, AWriteRemovesWhatItTouchesAndIsNoUseOfTheLine) {
  EXPECT_FALSE(IsCached(0, 128));
  EXPECT_FALSE(IsCached(256, 64));
  EXPECT_EQ(Cycles(100, 8, true), 8);  // reads the granule first
  EXPECT_TRUE(IsCached(0, 64));
  EXPECT_FALSE(IsCached(64, 64));
  // The line of 256 is the older one now; without granules it makes room first.
  Cycles(0, 256, true);
  EXPECT_FALSE(IsCached(512, 64));
  EXPECT_TRUE(IsCached(256, 64));
}

TEST(GmemBytesTest, AWriteReadsTheGranulesThatItCoversInPart) {
  const Parameters p(TestMachine("unit"));
  EXPECT_EQ(GmemBytes(p.gmem, 64, 128, true), 128);
  EXPECT_EQ(GmemBytes(p.gmem, 70, 4, true), 128);
  EXPECT_EQ(GmemBytes(p.gmem, 60, 8, true), 256);
  EXPECT_EQ(GmemBytes(p.gmem, 60, 8, false), 128);
}

}  // namespace
}  // namespace polynao::simulator::reference
