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
constexpr int64_t kRangesPerThread = 4;
constexpr int32_t kMaxThreads = 256;

// True on a thread that is inside a parallel loop.
thread_local bool in_loop = false;

struct Job {
  PolynaoLoopBody body;
  void* closure;
  int64_t extent;
  int64_t ranges;
  std::atomic<int64_t> next{0};
  std::atomic<int32_t> code{0};

  void Work() {
    in_loop = true;
    while (code.load(std::memory_order_relaxed) == 0) {
      const int64_t range = next.fetch_add(1, std::memory_order_relaxed);
      if (range >= ranges) break;
      // The first `longer` ranges have one iteration more than the others.
      const int64_t length = extent / ranges;
      const int64_t longer = extent % ranges;
      const int64_t begin = range * length + std::min(range, longer);
      const int64_t end = begin + length + (range < longer ? 1 : 0);
      const int32_t result = body(closure, begin, end);
      int32_t none = 0;
      if (result != 0) code.compare_exchange_strong(none, result);
    }
    in_loop = false;
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

  // Runs `job` on the calling thread and `helpers` others; false if the pool has another job.
  bool Run(Job& job, size_t helpers) {
    bool wake = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (job_ != nullptr || working_ > 0) return false;
      while (threads_.size() < helpers) threads_.emplace_back([this] { Loop(); });
      job_ = &job;
      wanted_ = helpers;
      posted_.fetch_add(1, std::memory_order_release);
      wake = sleeping_ > 0;
    }
    if (wake) start_.notify_all();
    job.Work();
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
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto has_work = [this] { return stop_ || wanted_ > 0; };
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
      --wanted_;
      ++working_;
      Job* job = job_;
      lock.unlock();
      job->Work();
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  Job* job_ = nullptr;
  size_t wanted_ = 0;                // helpers that may still join the job
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
    Job job{body, closure, extent, std::min<int64_t>(extent, threads * kRangesPerThread)};
    if (Pool().Run(job, static_cast<size_t>(threads) - 1)) return job.code.load();
  }
  return body(closure, 0, extent);
}
