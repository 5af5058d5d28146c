#include "benchmarks/busy_cores.h"

#include <pthread.h>
#include <sched.h>

namespace polynao::benchmarks {
namespace {

// Makes the calling thread one of `core` that gives way to all others.
bool GivesWay(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  const sched_param priority = {};
  return pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores) == 0 &&
         sched_setscheduler(/*this thread*/ 0, SCHED_IDLE, &priority) == 0;
}

}  // namespace

BusyCores::BusyCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    threads_.emplace_back([this, core] {
      if (!GivesWay(core)) return;
      while (!stop_.load(std::memory_order_relaxed)) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    });
  }
}

BusyCores::~BusyCores() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace polynao::benchmarks
