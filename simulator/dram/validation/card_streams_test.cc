// Streams of all cores that start a power of two apart share a card's channels without meeting on one of them.
#include "simulator/dram/validation/card_streams.h"

#include "gtest/gtest.h"
#include "testing/machine.h"

namespace polynao::simulator {
namespace {

TEST(CardStreams, AtAnyPowerOfTwoTheCardsGetThreeQuartersOfThePeak) {
  for (const char* name : {"mlu270", "mlu290", "mlu370"}) {
    const isa::Machine machine = TestMachine(name);
    for (const StreamMix& mix :
         {kStreamMixes[0], kStreamMixes[3]}) {  // docs/dram_streams.md has all
      for (const int64_t distance : CardDistances(machine)) {
        const double share = CardShareOfPeak(machine, mix, distance);
        EXPECT_GE(share, 0.75) << name << ", " << mix.name << ", " << distance << " bytes apart";
        EXPECT_LE(share, 1) << name << ", " << mix.name << ", " << distance << " bytes apart";
      }
    }
  }
}

// What blocks of 1 KiB and the hash are for.
TEST(CardStreams, LargeBlocksInTurnMeetOnOneChannel) {
  const isa::Machine machine =
      TestMachine("mlu290", {"gmem.interleave=16384", "gmem.channel_hash=0"});
  EXPECT_LT(CardShareOfPeak(machine, kStreamMixes[0], 4 << 20), 0.25);
}

// Published kernels of this card move 253 GB/s with two reads a write.
TEST(CardStreams, MixturesOnMlu370ReachWhatPublishedKernelsMove) {
  const isa::Machine machine = TestMachine("mlu370");
  EXPECT_GE(CardShareOfPeak(machine, {"1 of 3 writes", 3}, 8 << 20) * 307.2, 253);
}

}  // namespace
}  // namespace polynao::simulator
