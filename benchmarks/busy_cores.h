// Keeps all cores of this machine busy while others are timed on them.
#ifndef BENCHMARKS_BUSY_CORES_H_
#define BENCHMARKS_BUSY_CORES_H_

#include <atomic>
#include <thread>
#include <vector>

namespace polynao::benchmarks {

// While it lives, a thread on each core of this process does nothing, and does it only where no other thread wants the
// core (SCHED_IDLE). A host may let two cores of a virtual machine share one of its own after they were idle: two
// threads of multiply-adds then run at half of their rate each, and find a core of their own some 0.4 s later. Threads
// of OpenMP that wait in a loop hide that, threads that sleep pay for it. Where a system has no such threads, does
// nothing.
class BusyCores {
 public:
  BusyCores();
  ~BusyCores();
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BUSY_CORES_H_
