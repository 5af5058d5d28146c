#include "compiler/passes/memory_versions.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "compiler/passes/effects.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

BufferSet Buffers(std::initializer_list<size_t> numbers) {
  BufferSet set;
  for (size_t number : numbers) set.Add(number);
  return set;
}

TEST(MemoryVersionsTest, WritesChangeWhatTheyWrite) {
  MemoryVersions versions;
  const int64_t t0 = versions.now();
  versions.Write(Buffers({1}));
  const int64_t t1 = versions.now();
  versions.Tick();
  const int64_t t2 = versions.now();
  versions.Write(2);
  const int64_t t3 = versions.now();
  EXPECT_EQ(versions.At(Buffers({0}), t0), versions.At(Buffers({0}), t3));
  EXPECT_NE(versions.At(Buffers({1}), t0), versions.At(Buffers({1}), t1));
  EXPECT_EQ(versions.At(Buffers({1}), t1), versions.At(Buffers({1}), t3));
  EXPECT_EQ(versions.At(Buffers({1, 2}), t1), versions.At(Buffers({1, 2}), t2));
  EXPECT_NE(versions.At(Buffers({1, 2}), t2), versions.At(Buffers({1, 2}), t3));
  EXPECT_EQ(versions.At(BufferSet(), t0), versions.At(BufferSet(), t3));
}

TEST(MemoryVersionsTest, WritesToAnything) {
  MemoryVersions versions;
  versions.Write(0);
  const int64_t t0 = versions.now();
  versions.Write(BufferSet::Everything());
  const int64_t t1 = versions.now();
  for (const size_t number : {0, 7}) {
    EXPECT_NE(versions.At(Buffers({number}), t0), versions.At(Buffers({number}), t1));
  }
}

TEST(MemoryVersionsTest, BranchesStartAlike) {
  MemoryVersions versions;
  versions.Write(0);
  const int64_t before = versions.now();
  const MemoryVersions::Saved saved = versions.Save(Buffers({0, 1}));
  versions.Write(Buffers({0, 1}));
  const int64_t then = versions.now();
  versions.Restore(saved);
  const int64_t otherwise = versions.now();
  EXPECT_EQ(versions.At(Buffers({0, 1}), before), versions.At(Buffers({0, 1}), otherwise));
  EXPECT_NE(versions.At(Buffers({0}), then), versions.At(Buffers({0}), otherwise));
  EXPECT_NE(versions.At(Buffers({1}), then), versions.At(Buffers({1}), otherwise));
}

}  // namespace
}  // namespace polynao
