#include "compiler/passes/byte_set.h"

#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(ByteSetTest, NeighboursMerge) {
  ByteSet set;
  set.Add(ByteRange{1, 0, 4});
  set.Add(ByteRange{1, 8, 12});
  set.Add(ByteRange{1, 4, 8});
  ByteSet whole;
  whole.Add(ByteRange{1, 0, 12});
  EXPECT_EQ(set, whole);
  set.Add(ByteRange{2, 0, 0});  // empty
  EXPECT_EQ(set, whole);
}

// Random ranges in two memories against sets of single bytes.
TEST(ByteSetTest, AgreesWithSetsOfBytes) {
  using Bytes = std::set<std::pair<int64_t, int64_t>>;
  std::mt19937_64 random(1);
  const auto range = [&] {
    const auto begin = static_cast<int64_t>(random() % 40);
    return ByteRange{static_cast<int64_t>(random() % 2), begin,
                     begin + static_cast<int64_t>(random() % 6)};
  };
  const auto bytes_of = [](const ByteSet& set) {
    Bytes bytes;
    set.ForEach([&](ByteRange r) {
      for (int64_t i = r.begin; i < r.end; ++i) bytes.insert({r.memory, i});
    });
    return bytes;
  };
  const auto meet = [](const Bytes& a, const Bytes& b) {
    for (const auto& byte : a) {
      if (b.contains(byte)) return true;
    }
    return false;
  };
  for (int round = 0; round < 500; ++round) {
    ByteSet sets[2];
    Bytes expected[2];
    for (int s = 0; s < 2; ++s) {
      for (size_t n = random() % 5; n > 0; --n) {
        const ByteRange r = range();
        sets[s].Add(r);
        for (int64_t i = r.begin; i < r.end; ++i) expected[s].insert({r.memory, i});
      }
      ASSERT_EQ(bytes_of(sets[s]), expected[s]);
    }
    EXPECT_EQ(sets[0].Overlaps(sets[1]), meet(expected[0], expected[1]));
    ByteSet one;
    const ByteRange r = range();
    one.Add(r);
    EXPECT_EQ(sets[0].Overlaps(r), meet(expected[0], bytes_of(one)));
    sets[0].Add(sets[1]);
    expected[0].insert(expected[1].begin(), expected[1].end());
    EXPECT_EQ(bytes_of(sets[0]), expected[0]);
  }
}

}  // namespace
}  // namespace polynao
