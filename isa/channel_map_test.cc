#include "isa/channel_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "testing/machine.h"

namespace polynao::isa {
namespace {

ChannelMap Map(int64_t channels, int64_t hash) {
  return ChannelMap(TestMachine("unit", {"gmem.channels=" + std::to_string(channels),
                                         "gmem.channel_hash=" + std::to_string(hash)}));
}

TEST(ChannelMap, IsTheSumOfTheDigits) {
  const ChannelMap map = Map(4, 1);
  const int64_t block = map.interleave();
  EXPECT_EQ(map.ChannelOf(3 * block + 5), 3);
  EXPECT_EQ(map.ChannelOf(4 * block), 1);                     // 10
  EXPECT_EQ(map.ChannelOf((3 * 16 + 2 * 4 + 1) * block), 2);  // 321
  EXPECT_EQ(map.LocalAddress(9 * block + 5), 2 * block + 5);
  EXPECT_EQ(Map(4, 0).ChannelOf(4 * block), 0);
  EXPECT_EQ(Map(1, 1).ChannelOf(77 * block), 0);
  // Beyond the table: 4^6 is 1 followed by zeros, and so is 4^13.
  EXPECT_EQ(map.ChannelOf((int64_t{1} << 12) * block), 1);
  EXPECT_EQ(map.ChannelOf(((int64_t{1} << 26) + 2) * block), 3);
}

TEST(ChannelMap, EveryBlockHasAPlaceOfItsOwn) {
  for (int64_t channels : {1, 2, 3, 4, 5, 12, 32, 64}) {
    for (int64_t hash : {0, 1}) {
      const ChannelMap map = Map(channels, hash);
      std::set<std::pair<int64_t, int64_t>> places;
      for (int64_t b = 0; b < 40 * channels; ++b) {
        const int64_t address = b * map.interleave();
        const int64_t channel = map.ChannelOf(address);
        ASSERT_TRUE(channel >= 0 && channel < channels);
        ASSERT_TRUE(places.emplace(channel, map.LocalAddress(address)).second)
            << channels << " " << b;
      }
    }
  }
}

TEST(ChannelMap, BlocksAPowerOfTwoApartUseAllChannels) {
  for (int64_t channels : {2, 4, 32}) {
    const ChannelMap map = Map(channels, 1);
    for (int shift = 0; shift < 20; ++shift) {
      std::set<int64_t> used;
      for (int64_t i = 0; i < channels; ++i)
        used.insert(map.ChannelOf((i << shift) * map.interleave()));
      EXPECT_EQ(used.size(), static_cast<size_t>(channels)) << channels << " " << shift;
    }
  }
}

}  // namespace
}  // namespace polynao::isa
