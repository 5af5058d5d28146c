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
