#include "simulator/cache_slice.h"

#include <list>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace polynao::simulator {
namespace {

bool Hits(CacheSlice& slice, int64_t address, int64_t size) {
  return slice.Read(address, size, 0).has_value();
}

TEST(CacheSlice, GranulesOfALineComeOneByOne) {
  CacheSlice slice(4, 512, 64);
  EXPECT_FALSE(Hits(slice, 1024, 1));
  EXPECT_TRUE(Hits(slice, 1087, 1));
  EXPECT_FALSE(Hits(slice, 1087, 2));
  EXPECT_TRUE(Hits(slice, 1024, 128));
  EXPECT_FALSE(Hits(slice, 1024, 512));
  EXPECT_TRUE(Hits(slice, 1024, 512));
  EXPECT_FALSE(Hits(slice, 1536, 1));
}

TEST(CacheSlice, TheLineUsedLongestAgoMakesRoom) {
  CacheSlice slice(3, 64, 64);
  for (int64_t line : {0, 1, 2}) EXPECT_FALSE(Hits(slice, 64 * line, 64));
  EXPECT_TRUE(Hits(slice, 0, 64));
  EXPECT_FALSE(Hits(slice, 64 * 3, 64));  // for line 1
  EXPECT_TRUE(Hits(slice, 0, 64));
  EXPECT_TRUE(Hits(slice, 64 * 2, 64));
  EXPECT_FALSE(Hits(slice, 64, 64));
}

TEST(CacheSlice, WritesDropWhatTheyTouch) {
  CacheSlice slice(2, 256, 64);
  EXPECT_FALSE(Hits(slice, 0, 256));
  slice.Drop(127, 2);  // granules 1 and 2
  EXPECT_TRUE(Hits(slice, 0, 64));
  EXPECT_TRUE(Hits(slice, 192, 64));
  EXPECT_FALSE(Hits(slice, 64, 64));
  EXPECT_FALSE(Hits(slice, 128, 64));
  EXPECT_TRUE(Hits(slice, 0, 256));
  // An empty line is evicted first, although it was used last.
  EXPECT_FALSE(Hits(slice, 256, 64));
  slice.Drop(256, 256);
  EXPECT_FALSE(Hits(slice, 512, 64));
  EXPECT_TRUE(Hits(slice, 0, 256));
  slice.Drop(4096, 256);  // Never read.
  EXPECT_TRUE(Hits(slice, 512, 64));
}

TEST(CacheSlice, TellsWhenALineHasComeIn) {
  CacheSlice slice(2, 256, 64);
  EXPECT_EQ(slice.Read(0, 64, 100), std::nullopt);
  EXPECT_EQ(slice.Read(0, 64, 200), 100);
  EXPECT_EQ(slice.Read(0, 65, 300), std::nullopt);
  EXPECT_EQ(slice.Read(0, 64, 400), 300);  // Ready with the line's last fetch.
  slice.Drop(0, 256);
  EXPECT_EQ(slice.Read(0, 64, 500), std::nullopt);
  EXPECT_EQ(slice.Read(0, 64, 600), 500);
}

// The same with a list and sets.
class Plain {
 public:
  Plain(size_t lines, int64_t line_bytes, int64_t granule)
      : lines_(lines), line_bytes_(line_bytes), granule_(granule) {}
  bool Read(int64_t address, int64_t size) {
    Line line{.number = address / line_bytes_, .granules = {}};
    for (auto it = used_.begin(); it != used_.end(); ++it) {
      if (it->number != line.number) continue;
      line = *it;
      used_.erase(it);
      break;
    }
    bool all = true;
    for (int64_t g = address / granule_; g * granule_ < address + size; ++g) {
      all &= !line.granules.insert(g).second;
    }
    used_.push_front(line);
    if (used_.size() > lines_) used_.pop_back();
    return all;
  }
  void Drop(int64_t address, int64_t size) {
    for (auto it = used_.begin(); it != used_.end(); ++it) {
      if (it->number != address / line_bytes_) continue;
      for (int64_t g = address / granule_; g * granule_ < address + size; ++g) {
        it->granules.erase(g);
      }
      if (it->granules.empty()) used_.erase(it);
      return;
    }
  }

 private:
  struct Line {
    int64_t number;
    std::set<int64_t> granules;
  };
  const size_t lines_;
  const int64_t line_bytes_, granule_;
  std::list<Line> used_;  // last used first
};

TEST(CacheSlice, AgreesWithAListOnRandomAccesses) {
  const uint32_t seed = 90210;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    const int64_t granule = 1 << (random() % 8);
    const int64_t line = granule * (1 + static_cast<int64_t>(random() % 64));
    const int64_t lines = 1 + static_cast<int64_t>(random() % 50);
    const int64_t span = 1 + static_cast<int64_t>(random() % (3 * lines));
    // Lines of one channel of many: far apart and evenly spaced.
    const int64_t step = 1 + static_cast<int64_t>(random() % 40);
    CacheSlice slice(lines, line, granule);
    Plain plain(static_cast<size_t>(lines), line, granule);
    int hits = 0;
    for (int i = 0; i < 2000; ++i) {
      const int64_t offset = static_cast<int64_t>(random() % line);
      const int64_t address = static_cast<int64_t>(random() % span) * step * line + offset;
      const int64_t size = 1 + static_cast<int64_t>(random() % (line - offset));
      if (random() % 4 == 0) {
        slice.Drop(address, size);
        plain.Drop(address, size);
      } else {
        const bool hit = plain.Read(address, size);
        ASSERT_EQ(Hits(slice, address, size), hit) << "round " << round << " access " << i;
        hits += hit;
      }
    }
    EXPECT_GT(hits, 0);
  }
}

}  // namespace
}  // namespace polynao::simulator
