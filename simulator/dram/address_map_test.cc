#include "simulator/dram/address_map.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/testing.h"

namespace polynao::simulator {
namespace {

using ::testing::HasSubstr;

AddressMap Map(const std::vector<std::string>& overrides) {
  return AddressMap::Make(TestDram("ddr4_3200", overrides), "test").value();
}

TEST(AddressMap, FieldsComeFromTheMostSignificantBitsDown) {
  // 64 B a burst, 128 bursts a row, 4 groups of 4 banks.
  const AddressMap linear = Map({"map=row bank_group bank column", "hash=0"});
  EXPECT_EQ(linear.Map(0), (DramPlace{0, 0, 0}));
  EXPECT_EQ(linear.Map(63), (DramPlace{0, 0, 0}));
  EXPECT_EQ(linear.Map(64), (DramPlace{0, 0, 1}));
  EXPECT_EQ(linear.Map(8192), (DramPlace{1, 0, 0}));
  EXPECT_EQ(linear.Map(16 * 8192 + 3 * 8192 + 2 * 64), (DramPlace{3, 1, 2}));
  // Bank numbers are group x banks + bank.
  const AddressMap spread = Map({"map=row bank column bank_group", "hash=0"});
  EXPECT_EQ(spread.Map(64), (DramPlace{4, 0, 0}));
  EXPECT_EQ(spread.Map(256), (DramPlace{0, 0, 1}));
  EXPECT_EQ(spread.Map(32768), (DramPlace{1, 0, 0}));
}

TEST(AddressMap, AFieldMayComeInPieces) {
  const AddressMap map = Map({"map=row bank column bank_group column:1", "hash=0"});
  EXPECT_EQ(map.Map(64), (DramPlace{0, 0, 1}));
  EXPECT_EQ(map.Map(128), (DramPlace{4, 0, 0}));
  EXPECT_EQ(map.Map(512), (DramPlace{0, 0, 2}));
}

TEST(AddressMap, HashingXorsTheBankWithTheGrayCodeOfTheRow) {
  const AddressMap map = Map({"map=row bank_group bank column", "hash=1"});
  for (int64_t row = 0; row < 40; ++row) {
    const DramPlace place = map.Map((row * 16 + 5) * 8192);
    EXPECT_EQ(place.row, row);
    EXPECT_EQ(place.bank, 5 ^ ((row ^ row >> 1) & 15));
  }
}

TEST(AddressMap, HashingWithAPolynomialKeepsTheLowGroupBitApart) {
  // 4 groups of 4 banks; A is row, bank and the upper bit of the group, reduced modulo x^3 + x + 1.
  const AddressMap map = Map({"map=row bank bank_group column bank_group:1", "hash=2"});
  const auto bank = [&](int64_t a) { return map.Map(a << 14).bank; };
  // 1, x and x^2 are group 2, bank 1 and bank 2; each bit of A changes the low bit of the group.
  EXPECT_EQ(bank(1), 8 + 4);
  EXPECT_EQ(bank(2), 1 + 4);
  EXPECT_EQ(bank(4), 2 + 4);
  EXPECT_EQ(bank(8), 8 + 1 + 4);        // x^3 = x + 1
  EXPECT_EQ(bank(8 + 1), 1);            // x^3 + 1 = x
  EXPECT_EQ(bank(1 << 7), 8 + 4);       // x^7 = 1
  EXPECT_EQ(map.Map(64).bank, 4);       // the next burst: the other group of the pair
  EXPECT_EQ(map.Map(64 << 1).bank, 0);  // and the next column
}

// Streams of whole rows at any distance that is a power of two use as many banks as there are streams, up to all of
// them: bursts of one bank of a pair of groups, runs of 128 bytes of both.
TEST(AddressMap, StreamsAPowerOfTwoApartUseAllBanks) {
  for (const char* preset : {"ddr4_3200", "lpddr5", "hbm2"}) {
    const DramTiming timing = TestDram(preset);
    const AddressMap map = AddressMap::Make(timing, "test").value();
    for (int64_t distance = 2 * timing.row_bytes; 8 * distance <= timing.capacity();
         distance *= 2) {
      for (int64_t streams : {2, 4, 8}) {
        std::set<int32_t> pairs, banks;
        for (int64_t s = 0; s < streams; ++s) {
          const int32_t bank = map.Map(s * distance).bank;
          const int32_t other = map.Map(s * distance + 64).bank;
          pairs.insert(std::min(bank, other));
          banks.insert(bank);
          banks.insert(other);
        }
        EXPECT_EQ(pairs.size(), static_cast<size_t>(streams)) << preset << " " << distance;
        EXPECT_EQ(banks.size(), static_cast<size_t>(2 * streams)) << preset << " " << distance;
      }
    }
  }
}

TEST(AddressMap, BitsAboveTheCapacityAreIgnored) {
  const AddressMap map = Map({});
  const int64_t capacity = TestDram("ddr4_3200").capacity();
  EXPECT_EQ(capacity, int64_t{8} << 30);
  EXPECT_EQ(map.Map(12345 * 64 + 3 * capacity), map.Map(12345 * 64));
}

TEST(AddressMap, EveryBurstHasAPlaceOfItsOwn) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const DramTiming timing = RandomDram(random);
    SCOPED_TRACE(DescribeDram(timing));
    const AddressMap map = AddressMap::Make(timing, "test").value();
    std::set<std::tuple<int32_t, int32_t, int32_t>> places;
    const int64_t bursts = std::min<int64_t>(timing.capacity() / timing.burst_bytes(), 2000);
    for (int64_t burst = 0; burst < bursts; ++burst) {
      const int64_t address = burst * timing.burst_bytes();
      const DramPlace place = map.Map(address);
      ASSERT_TRUE(place.bank < timing.bank_count() && place.row < timing.rows &&
                  place.column < timing.bursts_per_row());
      ASSERT_TRUE(places.insert({place.bank, place.row, place.column}).second) << address;
      ASSERT_EQ(map.AddressOf(place), address);
    }
  }
}

TEST(AddressMap, AHashThatPutsTwoAddressesInOnePlaceIsRefused) {
  DramTiming timing = TestDram("ddr4_3200", {"rows=131072"});
  timing.map = "bank:1 row bank column bank_group";
  // A has the bank's bits at x^0 and x^18 = x^(3 x 6), which is 1 modulo x^2 + x + 1.
  const auto result = AddressMap::Make(timing, "m.toml");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(),
            "m.toml: dram.map \"bank:1 row bank column bank_group\": with dram.hash = 2 it is no "
            "permutation: addresses 32768 and 8589934592 are in one place");
  timing.hash = 0;
  EXPECT_TRUE(AddressMap::Make(timing, "m.toml").ok());
}

TEST(AddressMap, ErrorsNameTheMapAndTheField) {
  const auto expect_error = [](const std::string& map, const std::string& message) {
    DramTiming timing = TestDram("ddr4_3200");
    timing.map = map;
    const auto result = AddressMap::Make(timing, "m.toml");
    ASSERT_FALSE(result.ok()) << map;
    EXPECT_EQ(result.status().message(), "m.toml: dram.map \"" + map + "\": " + message);
  };
  expect_error("row bank column", "bank_group has 2 bits, its pieces have 0");
  expect_error("row bank bank column bank_group", "bank has two pieces without a number of bits");
  expect_error("row bank column:8 bank_group", "column has 7 bits, its pieces have 8");
  expect_error("row:15 bank column bank_group", "row has 16 bits, its pieces have 15");
  expect_error("row bank colum bank_group",
               "expected row, rank, bank_group, bank or column, found \"colum\"");
  expect_error("row bank column:x bank_group", "expected FIELD or FIELD:BITS, found \"column:x\"");
  expect_error("row bank column:0 bank_group", "expected FIELD or FIELD:BITS, found \"column:0\"");
  expect_error("", "bank has 2 bits, its pieces have 0");
}

}  // namespace
}  // namespace polynao::simulator
