#include "isa/check/access_list.h"

#include <random>
#include <set>

#include "gtest/gtest.h"
#include "isa/ranges.h"
#include "testing/fuzz.h"

namespace polynao::isa {
namespace {

Access Make(int64_t begin, int64_t run, int64_t pc = 0, bool is_write = false) {
  Access access;
  access.ranges = {
      .space = Space::kSmem, .is_write = is_write, .begin = begin, .run = run, .dims = {}};
  access.pc = pc;
  return access;
}

std::vector<Access> All(const AccessList& list) {
  std::vector<Access> all;
  list.ForEach([&](const Access& access) {
    all.push_back(access);
    return true;
  });
  return all;
}

std::set<int64_t> Bytes(const AccessList& list) {
  std::set<int64_t> bytes;
  list.ForEach([&](const Access& access) {
    access.ranges.ForEachRun([&](int64_t begin, int64_t size) {
      for (int64_t i = 0; i < size; ++i) bytes.insert(begin + i);
    });
    return true;
  });
  return bytes;
}

TEST(AccessList, LoopsBecomeDimensions) {
  AccessList list;
  for (int64_t i = 0; i < 1000; ++i) {
    for (int64_t j = 0; j < 10; ++j) list.Add(Make(i * 100 + j * 8, 4));
  }
  ASSERT_EQ(All(list).size(), 1u);
  EXPECT_EQ(Bytes(list).size(), 1000u * 10 * 4);
  // The same loop once more adds nothing, another instruction does.
  for (int64_t j = 0; j < 10; ++j) list.Add(Make(300 + j * 8, 4));
  EXPECT_LE(All(list).size(), 2u);
  EXPECT_EQ(Bytes(list).size(), 1000u * 10 * 4);
  const size_t before = All(list).size();
  list.Add(Make(108, 4, 7));
  EXPECT_EQ(All(list).size(), before + 1);
  list.Clear();
  EXPECT_TRUE(list.empty());
}

TEST(AccessList, JoinMakesUncertainWhatOneWayLacks) {
  AccessList a, b;
  a.Add(Make(0, 8, 1));
  a.Add(Make(8, 8, 2));
  b.Add(Make(0, 8, 1));
  EXPECT_TRUE(a.Join(b));
  ASSERT_EQ(All(a).size(), 2u);
  EXPECT_FALSE(All(a)[0].is_uncertain);
  EXPECT_TRUE(All(a)[1].is_uncertain);
  EXPECT_FALSE(a.Join(b));
}

// However accesses follow each other, the list has their bytes and no others.
TEST(AccessList, RandomAccessesKeepTheirBytes) {
  const uint64_t seed = FuzzSeed();
  SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int64_t round = FuzzCases(500); round > 0; --round) {
    AccessList list;
    std::set<int64_t> expected;
    int64_t at = 0;
    for (int n = 0; n < 40; ++n) {
      // Mostly a few distances, so that runs and nests of them come about, with jumps between.
      at = random() % 6 == 0 ? static_cast<int64_t>(random() % 200)
                             : at + static_cast<int64_t>(random() % 3) * 8 - 8;
      const int64_t size = random() % 10 == 0 ? 5 : 3;
      list.Add(Make(at, size, static_cast<int64_t>(random() % 2)));
      for (int64_t i = 0; i < size; ++i) expected.insert(at + i);
    }
    ASSERT_EQ(Bytes(list), expected) << round;
  }
}

}  // namespace
}  // namespace polynao::isa
