// Programs on which the two models once differed, shrunk by random_programs_test, with what was wrong.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/tensor.h"
#include "gtest/gtest.h"
#include "simulator/reference/testing/compare.h"
#include "simulator/testing.h"

namespace polynao::simulator::reference {
namespace {

// Core 0 of the tiny machine runs `body` on a tensor whose address is in r7; r0 is 0.
Comparison OnCore0(const std::vector<std::string>& overrides, const std::string& body) {
  // As it was for the older ones; an override replaces it.
  std::vector<std::string> all = {"core.nmem_line=0"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const isa::Machine machine = TestMachine("unit", all);
  const isa::Program program =
      simulator::OnCore0(".tensor x i8 any inout", absl::StrCat("  arg r7, 8\n", body));
  ir::Tensor x(ir::Type::kI8, {1 << 17});
  return Compare(machine, program, {simulator::Argument::Of(&x)});
}

// The event-driven simulator was wrong. In the cycle in which a full queue's wait ended, the next instruction started
// too, since instructions took one cycle each; the wake-up for it stayed pending and let the core issue again in the
// cycle after, whatever scalar code lay between.
TEST(KeptProgramsTest, OneCycleInstructionsBehindAFullQueue) {
  const Comparison c = OnCore0({"vector.start=0"}, R"(
    li r10, 512
    fill.i8 r0, r0, r10      # long enough for the queue to fill up
    fill.i8 r0, r0, r10
    fill.i8 r0, r0, r10
    li r30, 9
  again:
    fill.i8 r0, r0, r0       # nothing to do: one cycle
    addi r30, r30, -1
    bne r30, r0, again
)");
  EXPECT_EQ(c.difference, "");
  EXPECT_GT(CoreOf(c.result, 0, 0).queue_full[0], 0);
}

// The page was not precise: runs that touch where the outer loop goes on are segments of their own.
TEST(KeptProgramsTest, RunsThatTouchBetweenPlanes) {
  const Comparison c = OnCore0({}, R"(
    li r12, 62
    li r13, 8
    li r14, 62
    li r15, 66
    li r16, 2
    li r17, 62
    li r18, 524              # 7 * 66 + 62
    memcpy3d.i32.nmem.gmem.async r0, r7, r12, r13, r14, r15, r16, r17, r18
)");
  EXPECT_EQ(c.difference, "");
}

// The page was not precise: a line of the cache has one time at which its latest fetch has arrived, also for granules
// that came earlier.
TEST(KeptProgramsTest, AGranuleWaitsForItsLinesLatestFetch) {
  const Comparison c = OnCore0({"gmem.interleave=1280", "gmem.cache_kib=1"}, R"(
    addi r11, r7, 5344
    li r12, 59
    li r13, 5
    li r14, 59
    li r15, 118
    li r16, 1
    li r30, 2
  again:
    memcpy3d.f32.smem.gmem r0, r11, r12, r13, r14, r15, r16, r0, r0
    addi r11, r11, 1592
    addi r30, r30, -1
    bne r30, r0, again
)");
  EXPECT_EQ(c.difference, "");
  EXPECT_GT(c.result.gmem_read_cached, 0);
}

// The trace was wrong: scalar code began in cycle -1, and the wait for a copy had the pc of the instruction behind the
// copy.
TEST(KeptProgramsTest, ACopyThatWaits) {
  const Comparison c = OnCore0({}, R"(
    li r10, 100
    memcpy.i8.nmem.gmem r0, r7, r10, r1, r0, r0
)");
  EXPECT_EQ(c.difference, "");
}

// The page was silent, and the event-driven simulator counted what the DRAM does after the run, too: the store is
// complete, but of its sixteen writes six are done when the last core halts.
TEST(KeptProgramsTest, WritesThatAreLeftInTheQueueAreNotCounted) {
  const Comparison c =
      OnCore0({"gmem.dram=lpddr5", "gmem.cache_reads=0", "card.clock_mhz=2000",
               "gmem.channel_bytes_per_kilocycle=2000", "dram.clock_mhz=1000", "dram.bus_bits=16",
               "dram.beats_per_clock=2", "dram.burst_length=2"},
              R"(
    li r12, 1
    memcpy.f16.gmem.smem.async r7, r0, r12, r12, r0, r0
)");
  EXPECT_EQ(c.difference, "");
  ASSERT_EQ(c.result.dram.size(), 2u);
  EXPECT_LT(c.result.dram[0].writes, 16);
}

// The event-driven simulator was wrong: with an idle DRAM and nothing but a store that had just got its granules, it
// slept until a turn that it did not know, a number that overflowed; with an odd ratio of the clocks it came back too
// late or not at all.
TEST(KeptProgramsTest, AStoreWhoseGranulesHaveComeWakesTheChannel) {
  const Comparison c =
      OnCore0({"gmem.dram=lpddr5", "gmem.cache_reads=0", "card.clock_mhz=500",
               "gmem.channel_bytes_per_kilocycle=124416", "dram.clock_mhz=972", "dram.bus_bits=128",
               "dram.beats_per_clock=4", "dram.burst_length=4", "cluster.link_bytes=1"},
              R"(
    li r12, 16
    li r13, 2
    li r14, 54
    memcpy.f32.gmem.smem r7, r0, r12, r13, r14, r0
)");
  EXPECT_EQ(c.difference, "");
}

// The clocked model was wrong: it had one requester for a core's IO-DMA, which after a load's turn at SMEM's port let
// the scalar unit go before a store.
TEST(KeptProgramsTest, LoadsAndStoresTakeTurnsOfTheirOwn) {
  const Comparison c = OnCore0({"scalar.simple=1"}, R"(
    li r12, 1
    memcpy.i8.gmem.smem r7, r0, r12, r12, r0, r0
    memcpy.i64.smem.gmem.async r0, r7, r12, r12, r0, r0
    load.i32.gmem r41, r7
    load.i8.smem r41, r0
)");
  EXPECT_EQ(c.difference, "");
}

// The page was silent: the same four bytes twice are two pieces of the burst, though the runs in NMEM hold them once.
TEST(KeptProgramsTest, BytesThatAreReadTwiceAreTwoPieces) {
  const Comparison c = OnCore0({"core.nmem_line=64"}, R"(
    li r12, 1
    li r13, 2
    memcpy.i32.smem.nmem r0, r0, r12, r13, r12, r0
)");
  EXPECT_EQ(c.difference, "");
}

// The event-driven simulator was wrong: the end of the first empty transfer took the wake-up of the second one with it,
// which never completed.
TEST(KeptProgramsTest, EmptyTransfersSideBySide) {
  const Comparison c = OnCore0({"move_dma.transfers=2"}, R"(
    memcpy.i32.smem.nmem.async r0, r0, r0, r0, r0, r0
    memcpy.i32.smem.nmem.async r0, r0, r0, r0, r0, r0
)");
  EXPECT_EQ(c.difference, "");
}

}  // namespace
}  // namespace polynao::simulator::reference
