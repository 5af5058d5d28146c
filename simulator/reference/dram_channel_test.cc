#include "simulator/reference/dram_channel.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/preset.h"
#include "simulator/reference/gmem_channel.h"
#include "testing/machine.h"

namespace polynao::simulator::reference {
namespace {

using testing::ElementsAre;

// One channel of DDR4 without refresh. A clock is a cycle, unless `card_mhz` says otherwise; DDR4 then has 1600 MHz.
class DramChannelTest : public testing::Test {
 protected:
  explicit DramChannelTest(const std::vector<std::string>& overrides =
                               {"dram.clock_mhz=1000", "gmem.channel_bytes_per_kilocycle=16000"})
      : machine_(MachineWith(overrides)),
        parameters_(machine_),
        timing_(DramOf(machine_).value()),
        channel_(MakeDramChannel(parameters_, timing_, 0, 4)) {}

  static isa::Machine MachineWith(std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"gmem.dram=ddr4_3200", "gmem.cache_reads=0",
                                         "gmem.channels=1", "dram.trefi=0"});
    return TestMachine("unit", overrides);
  }

  void Arrive(int64_t cycle, int64_t requester, int64_t address, int64_t size, bool is_write) {
    Burst burst;
    burst.core = requester;
    burst.address = address;
    burst.payload = size;
    burst.writes_gmem = is_write;
    burst.Add(
        {.requester = requester, .bytes = GmemBytes(parameters_.gmem, address, size, is_write)});
    Enter(channel_, burst, cycle);
    ++under_way_;
  }
  // The cycles in which the bursts leave, as they leave.
  std::vector<int64_t> Run() {
    std::vector<int64_t> left;
    for (int64_t cycle = 0; under_way_ > 0; ++cycle) {
      for (const Burst& burst : Finish(channel_, cycle)) {
        left.push_back(cycle);
        order_.push_back(burst.core);
        --under_way_;
        end_ = cycle;
      }
      Take(channel_, cycle);
    }
    return left;
  }

  const isa::Machine machine_;
  const Parameters parameters_;
  const DramTiming timing_;
  DramChannel channel_;
  int64_t under_way_ = 0, end_ = 0;
  std::vector<int64_t> order_;  // requesters
};

TEST_F(DramChannelTest, ALoadLeavesWhenItsLastDataHasArrived) {
  Arrive(5, 0, 0, 256, false);
  const DramTiming& t = timing_;
  EXPECT_THAT(Run(), ElementsAre(5 + t.trcd + 3 * t.tccd_s + t.cl + t.burst_clocks()));
  const DramCounters counters = Close(channel_, end_);
  EXPECT_EQ(counters.reads, 4);
  EXPECT_EQ(counters.activates, 2);  // bank groups that take turns
  EXPECT_EQ(channel_.queues.counts.busy, 4 * t.burst_clocks());
  EXPECT_EQ(channel_.counts.read, 256);
}

TEST_F(DramChannelTest, AStoreLeavesWhenTheWriteQueueHasIt) {
  Arrive(5, 0, 0, 256, true);
  EXPECT_THAT(Run(), ElementsAre(5 + timing_.cwl + timing_.burst_clocks()));
  // What waits in the queue at the end is not counted.
  EXPECT_LT(Close(channel_, end_).writes, 4);
}

TEST_F(DramChannelTest, AStoreOfPartOfAGranuleTakesTwoTurns) {
  const DramTiming& t = timing_;
  const int64_t read = t.trcd + t.cl + t.burst_clocks();
  Arrive(5, 0, 1024 + 2, 2, true);
  Arrive(5, 1, 0, 64, false);
  // The other requester has its turn meanwhile, one cycle later. Its burst is in the same row.
  EXPECT_THAT(Run(), ElementsAre(5 + read + t.tccd_l, 5 + read + t.cwl + t.burst_clocks()));
  EXPECT_THAT(order_, ElementsAre(1, 0));
  EXPECT_EQ(channel_.counts.written_moved, 128);
}

TEST_F(DramChannelTest, OneRequestForTwoPartsThatTouchAndTwoForOthers) {
  Arrive(0, 0, 32, 64, true);
  Arrive(1000, 0, 4096 + 32, 192, true);
  Run();
  EXPECT_EQ(Close(channel_, end_).reads, 2 + 2);
  EXPECT_EQ(channel_.counts.written_moved, 4 * 64 + 6 * 64);
}

// A write queue of two bursts: the turn of a burst comes when all bursts of the one before have entered.
class ShortQueueTest : public DramChannelTest {
 protected:
  ShortQueueTest()
      : DramChannelTest({"dram.clock_mhz=1000", "gmem.channel_bytes_per_kilocycle=16000",
                         "dram.write_queue=2", "dram.write_high=2", "dram.write_low=0"}) {}
};

TEST_F(ShortQueueTest, ATurnWaitsForTheOneBefore) {
  const DramTiming& t = timing_;
  Arrive(5, 0, 0, 192, true);
  Arrive(5, 1, 512, 64, false);
  // The third burst enters in the clock after the first one's WR; the load's turn comes in the same clock, but reads
  // wait until the queue has drained.
  const int64_t third = 5 + t.trcd + 1;
  const std::vector<int64_t> left = Run();
  EXPECT_THAT(order_, ElementsAre(0, 1));
  EXPECT_EQ(left[0], third + t.cwl + t.burst_clocks());
  EXPECT_GT(left[1], left[0] + t.twtr_s + t.cl);
}

class ClockedFasterTest : public DramChannelTest {
 protected:
  ClockedFasterTest() : DramChannelTest({"gmem.channel_bytes_per_kilocycle=25600"}) {}
};

TEST_F(ClockedFasterTest, ClocksBeginWhenCyclesDoOrLater) {
  // Cycle 1 is clock 2; the data has arrived in clock 2 + 22 + 22 + 4 = 50, which is cycle 32.
  Arrive(1, 0, 0, 64, false);
  EXPECT_THAT(Run(), ElementsAre(32));
}

}  // namespace
}  // namespace polynao::simulator::reference
