#include "compiler/codegen/llvm/runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace polynao::codegen {
namespace {

// More ranges than threads, so that a thread that is late does not hold up the others.
constexpr int64_t kRangesPerThread = 16;
constexpr int32_t kMaxThreads = 256;

// True on a thread that is inside a parallel loop.
thread_local bool in_loop = false;

// A thread's own ranges of a loop, in a cache line of their own.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};

// A loop that runs. Each thread has the same ranges as in the last loop of that length, whose elements its caches may
// hold still; when it is done with them, it takes what others have left.
struct Job {
  PolynaoLoopBody body;
  void* closure;
  int64_t extent;
  int64_t ranges;
  Share* shares;
  int32_t threads;
  std::atomic<int32_t> code{0};

  void Begin() {
    for (int32_t t = 0; t < threads; ++t) {
      shares[t].next.store(ranges * t / threads, std::memory_order_relaxed);
      shares[t].end = ranges * (t + 1) / threads;
    }
  }

  void Work(int32_t thread) {
    in_loop = true;
    for (int32_t i = 0; i < threads; ++i) {
      Share& share = shares[(thread + i) % threads];
      while (code.load(std::memory_order_relaxed) == 0) {
        const int64_t range = share.next.fetch_add(1, std::memory_order_relaxed);
        if (range >= share.end) break;
        RunRange(range);
      }
    }
    in_loop = false;
  }

  void RunRange(int64_t range) {
    // The first `longer` ranges have one iteration more than the others.
    const int64_t length = extent / ranges;
    const int64_t longer = extent % ranges;
    const int64_t begin = range * length + std::min(range, longer);
    const int64_t end = begin + length + (range < longer ? 1 : 0);
    const int32_t result = body(closure, begin, end);
    int32_t none = 0;
    if (result != 0) code.compare_exchange_strong(none, result);
  }
};

// How long a thread looks for its next job, or for the end of others', before it sleeps: to wake it costs some 10
// microseconds, which is what a small parallel loop takes.
constexpr auto kSpinTime = std::chrono::microseconds(50);

// Returns when `condition` holds, or after kSpinTime.
template <typename Condition>
void SpinUntil(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
}

class ThreadPool {
 public:
  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Runs `job` on the calling thread and others, job.threads in all; false if the pool has another job.
  bool Run(Job& job) {
    bool wake = false;
    const int32_t helpers = job.threads - 1;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (job_ != nullptr || working_ > 0) return false;
      while (static_cast<int32_t>(threads_.size()) < helpers) {
        const auto number = static_cast<int32_t>(threads_.size()) + 1;
        threads_.emplace_back([this, number] { Loop(number); });
      }
      if (shares_.size() < static_cast<size_t>(job.threads))
        shares_ = std::vector<Share>(static_cast<size_t>(job.threads));
      job.shares = shares_.data();
      job.Begin();
      job_ = &job;
      wanted_ = helpers;
      posted_.fetch_add(1, std::memory_order_release);
      wake = sleeping_ > 0;
    }
    if (wake) start_.notify_all();
    job.Work(0);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      // Helpers that have not begun find nothing left to do; do not wait for them.
      wanted_ = 0;
    }
    SpinUntil([this] { return working_ == 0; });
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return working_ == 0; });
    job_ = nullptr;
    return true;
  }

 private:
  // Helpers are numbered from 1.
  void Loop(int32_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    int64_t done = 0;
    const auto has_work = [&] { return stop_ || (number <= wanted_ && posted_ != done); };
    while (true) {
      if (!has_work()) {
        // A program's next loop often comes a few microseconds later.
        const int64_t seen = posted_.load(std::memory_order_relaxed);
        lock.unlock();
        SpinUntil([&] { return posted_.load(std::memory_order_acquire) != seen; });
        lock.lock();
        ++sleeping_;
        start_.wait(lock, has_work);
        --sleeping_;
      }
      if (stop_) return;
      done = posted_;
      ++working_;
      Job* job = job_;
      lock.unlock();
      job->Work(number);
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  Job* job_ = nullptr;
  std::vector<Share> shares_;        // of the job
  int32_t wanted_ = 0;               // helpers up to this number may join the job
  size_t sleeping_ = 0;              // helpers that need to be woken
  std::atomic<size_t> working_ = 0;  // helpers in the job; changed under the mutex
  std::atomic<int64_t> posted_ = 0;  // jobs so far; changed under the mutex
  bool stop_ = false;
};

ThreadPool& Pool() {
  static ThreadPool pool;
  return pool;
}

}  // namespace
}  // namespace polynao::codegen

int32_t polynao_parallel_for(PolynaoLoopBody body, void* closure, int64_t extent, int32_t threads) {
  using namespace polynao::codegen;  // NOLINT: the definition of an extern "C" function
  if (extent <= 0) return 0;
  if (threads <= 0) threads = static_cast<int32_t>(std::thread::hardware_concurrency());
  threads =
      static_cast<int32_t>(std::clamp<int64_t>(std::min<int64_t>(threads, extent), 1, kMaxThreads));
  if (threads > 1 && !in_loop) {
    Job job{.body = body,
            .closure = closure,
            .extent = extent,
            .ranges = std::min<int64_t>(extent, int64_t{threads} * kRangesPerThread),
            .shares = nullptr,
            .threads = threads};
    if (Pool().Run(job)) return job.code.load();
  }
  return body(closure, 0, extent);
}
