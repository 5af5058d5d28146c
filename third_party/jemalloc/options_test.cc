// The allocator of this program is jemalloc, and it has our options.
#include <sys/types.h>
#include <cstddef>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Absent where a program has another malloc, as with --config=asan.
extern "C" int mallctl(const char* name, void* value, size_t* bytes, void* next, size_t next_bytes)
    __attribute__((weak));

namespace {

TEST(JemallocTest, KeepsWhatIsFreed) {
  if (mallctl == nullptr) GTEST_SKIP() << "another malloc";
  for (const char* name : {"opt.dirty_decay_ms", "opt.muzzy_decay_ms"}) {
    ssize_t milliseconds = 0;
    size_t bytes = sizeof(milliseconds);
    ASSERT_EQ(mallctl(name, &milliseconds, &bytes, nullptr, 0), 0) << name;
    EXPECT_EQ(milliseconds, -1) << name;
  }
  const char* pages = nullptr;
  size_t bytes = sizeof(pages);
  ASSERT_EQ(mallctl("opt.thp", &pages, &bytes, nullptr, 0), 0);
  // "not supported": the system has none.
  EXPECT_THAT(pages, testing::AnyOf(testing::StrEq("always"), testing::StrEq("not supported")));
}

}  // namespace
