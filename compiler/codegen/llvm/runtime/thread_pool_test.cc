#include "compiler/codegen/llvm/runtime/thread_pool.h"

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using ::testing::Each;

// Counts how often each iteration runs.
struct Visits {
  explicit Visits(int64_t extent) : counts(extent) {}
  std::vector<std::atomic<int>> counts;
  static int32_t Body(void* closure, int64_t begin, int64_t end) {
    auto& visits = *static_cast<Visits*>(closure);
    for (int64_t i = begin; i < end; ++i) ++visits.counts.at(i);
    return 0;
  }
};

TEST(ThreadPoolTest, RunsEachIterationOnce) {
  for (int threads : {0, 1, 2, 3, 8}) {
    for (int64_t extent : {0, 1, 2, 7, 8, 9, 31, 1000}) {
      Visits visits(extent);
      ASSERT_EQ(polynao_parallel_for(&Visits::Body, &visits, extent, threads), 0);
      const std::vector<int> counts(visits.counts.begin(), visits.counts.end());
      EXPECT_THAT(counts, Each(1)) << "extent " << extent << ", threads " << threads;
    }
  }
}

TEST(ThreadPoolTest, RunsNothingForNegativeExtents) {
  Visits visits(1);
  EXPECT_EQ(polynao_parallel_for(&Visits::Body, &visits, -5, 2), 0);
  EXPECT_EQ(visits.counts[0], 0);
}

TEST(ThreadPoolTest, ReturnsTheCodeOfARangeThatFails) {
  auto fail_at_40 = [](void*, int64_t begin, int64_t end) -> int32_t {
    return begin <= 40 && 40 < end ? 17 : 0;
  };
  for (int threads : {1, 2, 5}) {
    EXPECT_EQ(polynao_parallel_for(fail_at_40, nullptr, 41, threads), 17);
    EXPECT_EQ(polynao_parallel_for(fail_at_40, nullptr, 40, threads), 0);
  }
}

TEST(ThreadPoolTest, UsesSeveralThreads) {
  // Two ranges that wait for one another finish only if two threads run them.
  std::atomic<int> arrived{0};
  auto wait = [](void* closure, int64_t begin, int64_t end) -> int32_t {
    auto& count = *static_cast<std::atomic<int>*>(closure);
    for (int64_t i = begin; i < end; ++i) {
      ++count;
      while (count < 2) std::this_thread::yield();
    }
    return 0;
  };
  EXPECT_EQ(polynao_parallel_for(wait, &arrived, 2, 2), 0);
}

TEST(ThreadPoolTest, RangesStayOnTheirThreads) {
  // Iteration 0 is the calling thread's in each loop, iteration 1 the helper's, as both begin before one ends.
  struct Loop {
    std::atomic<int> arrived{0};
    std::thread::id threads[2];
  };
  auto wait = [](void* closure, int64_t begin, int64_t end) -> int32_t {
    auto& loop = *static_cast<Loop*>(closure);
    for (int64_t i = begin; i < end; ++i) {
      loop.threads[i] = std::this_thread::get_id();
      ++loop.arrived;
      while (loop.arrived < 2) std::this_thread::yield();
    }
    return 0;
  };
  std::set<std::thread::id> helpers;
  for (int repeat = 0; repeat < 50; ++repeat) {
    Loop loop;
    ASSERT_EQ(polynao_parallel_for(wait, &loop, 2, 2), 0);
    EXPECT_EQ(loop.threads[0], std::this_thread::get_id());
    helpers.insert(loop.threads[1]);
  }
  EXPECT_EQ(helpers.size(), 1);
}

TEST(ThreadPoolTest, NestedLoopsRunOnTheThreadTheyAreIn) {
  struct Shared {
    Visits visits{12};
    std::atomic<bool> moved{false};
  } shared;
  auto outer = [](void* closure, int64_t begin, int64_t end) -> int32_t {
    auto& shared = *static_cast<Shared*>(closure);
    const auto here = std::this_thread::get_id();
    struct Row {
      Shared* shared;
      int64_t row;
      std::thread::id thread;
    };
    for (int64_t i = begin; i < end; ++i) {
      Row row{&shared, i, here};
      auto inner = [](void* closure, int64_t begin, int64_t end) -> int32_t {
        auto& row = *static_cast<Row*>(closure);
        if (std::this_thread::get_id() != row.thread) row.shared->moved = true;
        for (int64_t j = begin; j < end; ++j) ++row.shared->visits.counts.at(row.row * 3 + j);
        return 0;
      };
      if (polynao_parallel_for(inner, &row, 3, 2) != 0) return 1;
    }
    return 0;
  };
  EXPECT_EQ(polynao_parallel_for(outer, &shared, 4, 2), 0);
  const std::vector<int> counts(shared.visits.counts.begin(), shared.visits.counts.end());
  EXPECT_THAT(counts, Each(1));
  EXPECT_FALSE(shared.moved);
}

TEST(ThreadPoolTest, SeveralThreadsMayRunLoopsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        Visits visits(37);
        polynao_parallel_for(&Visits::Body, &visits, 37, 2);
        for (auto& count : visits.counts) wrong += count != 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
