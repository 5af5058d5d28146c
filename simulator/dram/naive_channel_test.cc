// DramChannel against NaiveChannel: each command, each completion and each counter, to the clock, on random
// traffic through channels of random timing. POLYNAO_RANDOM_CASES=5000 runs more channels, POLYNAO_SEED=7
// others.
#include "simulator/dram/naive_channel.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/channel.h"
#include "simulator/dram/testing.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

std::vector<DramCompletion> Sorted(std::vector<DramCompletion> completions) {
  std::sort(completions.begin(), completions.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return completions;
}

TEST(NaiveChannelTest, AgreesWithTheEventDrivenChannelOnRandomTraffic) {
  const uint64_t seed = FuzzSeed();
  DramCounters total;
  for (int64_t i = 0; i < FuzzCases(300); ++i) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<uint64_t>(i));
    const DramTiming timing = RandomDram(random);
    SCOPED_TRACE(testing::Message()
                 << "POLYNAO_SEED=" << seed << ", case " << i << ": " << DescribeDram(timing));
    const std::vector<DramRequest> requests = RandomTraffic(
        RandomShape(timing, random), 20 + static_cast<int64_t>(random() % 200), random);
    NaiveChannel naive(timing);
    DramChannel channel(timing);
    std::vector<DramCommand> trace;
    channel.set_trace(&trace);
    // The same whether the future is known or not, and whether time is run in pieces.
    const bool ahead = random() % 2 == 0;
    for (const DramRequest& request : requests) {
      naive.Push(request);
      if (!ahead && request.clock > channel.clock()) channel.Run(request.clock);
      channel.Push(request);
    }
    int64_t end = channel.clock();
    while (!channel.idle()) {
      end += 1 + static_cast<int64_t>(random() % 5000);
      channel.Run(end);
    }
    end += static_cast<int64_t>(random() % 10'000);
    channel.Run(end);
    naive.Run(end);
    const size_t common = static_cast<size_t>(
        std::mismatch(trace.begin(), trace.end(), naive.trace().begin(), naive.trace().end())
            .first -
        trace.begin());
    ASSERT_TRUE(trace == naive.trace())
        << "command " << common << " of " << trace.size() << " and " << naive.trace().size()
        << " differs: kind " << static_cast<int>(trace[common].kind) << " in clock "
        << trace[common].clock << ", and " << static_cast<int>(naive.trace()[common].kind)
        << " in clock " << naive.trace()[common].clock;
    ASSERT_EQ(channel.completions().size(), requests.size());
    ASSERT_EQ(Sorted(channel.completions()), Sorted(naive.completions()));
    DramCounters expected = naive.counters();
    ASSERT_EQ(channel.counters(), expected);
    ASSERT_TRUE(std::ranges::equal(channel.bank_counters(), naive.bank_counters()));
    total.hits += expected.hits;
    total.misses += expected.misses;
    total.conflicts += expected.conflicts;
    total.forwarded += expected.forwarded;
    total.merged += expected.merged;
    total.refreshes += expected.refreshes;
    total.drains += expected.drains;
    total.writes += expected.writes;
  }
  // The cases reach everything.
  for (int64_t count : {total.hits, total.misses, total.conflicts, total.forwarded, total.merged,
                        total.refreshes, total.drains, total.writes}) {
    EXPECT_GT(count, 100);
  }
}

}  // namespace
}  // namespace polynao::simulator
