// The execution model of CUDA on a CPU: with this in front, a generated CUDA file is C++ that runs
// its kernels, one block after another, the threads of a block as fibers that switch at barriers.
//
// What it does beyond running: shared memory holds NaNs when a block starts; threads run from barrier
// to barrier in an order that the caller chooses, so that what is missing a barrier is seen; a
// barrier can be left out, to see that it is needed; a barrier that not all threads of a block reach,
// or at different places, stops the kernel with an error. It counts no time and models no machine. One kernel at a time in a process.
//
// Compiled with -std=c++17 or later and -fno-strict-aliasing; needs nothing of the C++ library.
#ifndef COMPILER_CODEGEN_CUDA_SHIM_H_
#define COMPILER_CODEGEN_CUDA_SHIM_H_

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define __global__ static
#define __device__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// All shared memory stands together, where it is found at the start of a block; `used` says that
// others than the kernel write to it.
#define __shared__ static __attribute__((used, section("nao_shared")))
#define __syncthreads() nao_shim::Barrier(__LINE__)

struct int2 {
  int32_t x, y;
};
struct int4 {
  int32_t x, y, z, w;
};
struct dim3 {
  unsigned x, y, z;
};
static dim3 threadIdx, blockIdx;

static inline uint32_t __float_as_uint(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float __uint_as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
// The sum of four products of signed bytes and `sum`, wrapping around.
static inline int32_t __dp4a(int32_t a, int32_t b, int32_t sum) {
  uint32_t result = (uint32_t)sum;
  for (int i = 0; i < 4; ++i) {
    result += (uint32_t)((int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i));
  }
  return (int32_t)result;
}

extern "C" {
extern char __start_nao_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_nao_shared[] __attribute__((weak, visibility("hidden")));
}

namespace nao_shim {

constexpr size_t kStackBytes = size_t{1} << 20;  // of one thread; touched only as far as it is used

struct Thread {
  jmp_buf state;
  ucontext_t start;
  dim3 index;
  bool started;
  int waits_at;  // the line of a barrier; 0: finished
};

static Thread* threads;  // of the block
static Thread* current;
static jmp_buf scheduler;
static ucontext_t scheduler_start;
static void (*kernel)(void* arguments);
static void* kernel_arguments;
static char message[200];
// 0: threads run in the order of their numbers; 1: in reverse; others: in orders drawn from it.
static uint64_t order;
// The line of the barrier that threads pass without waiting; 0: none.
static int left_out_line;

static inline void Barrier(int line) {
  if (line == left_out_line) return;
  current->waits_at = line;
  if (_setjmp(current->state) == 0) _longjmp(scheduler, 1);
}

// A fiber runs a thread of each block, one after the other.
static void FiberMain() {
  while (true) {
    kernel(kernel_arguments);
    current->waits_at = 0;
    if (_setjmp(current->state) == 0) _longjmp(scheduler, 1);
  }
}

// Runs `thread` until it waits or finishes.
static void Resume(Thread* thread) {
  current = thread;
  threadIdx = thread->index;
  if (_setjmp(scheduler) != 0) return;
  if (thread->started) _longjmp(thread->state, 1);
  thread->started = true;
  setcontext(&thread->start);
}

static inline void StartBlock() {
  // Addresses that the compiler cannot follow, so that it forgets what the last block stored.
  char* volatile begin = __start_nao_shared;
  char* volatile end = __stop_nao_shared;
  if (begin != end) memset(begin, 0xff, (size_t)(end - begin));
}

static inline uint64_t Draw(uint64_t* seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

static bool RunBlock(const char* name, unsigned count, unsigned* sequence, uint64_t* seed) {
  for (unsigned i = 0; i < count; ++i) threads[i].waits_at = -1;
  int running = 1;
  while (running) {
    for (unsigned i = 0; i < count; ++i) sequence[i] = order == 1 ? count - 1 - i : i;
    for (unsigned i = count; order > 1 && i > 1; --i) {
      const unsigned j = (unsigned)(Draw(seed) % i);
      const unsigned swapped = sequence[i - 1];
      sequence[i - 1] = sequence[j];
      sequence[j] = swapped;
    }
    for (unsigned i = 0; i < count; ++i) Resume(&threads[sequence[i]]);
    running = threads[0].waits_at;
    for (unsigned i = 1; i < count; ++i) {
      if (threads[i].waits_at == running) continue;
      snprintf(message, sizeof message,
               "%s, block (%u, %u, %u): threads 0 and %u are at different places: lines %d and %d "
               "(0: finished) of a barrier that all must reach",
               name, blockIdx.x, blockIdx.y, blockIdx.z, i, running, threads[i].waits_at);
      return false;
    }
  }
  return true;
}

// Runs a kernel that has barriers. False after an error, which `message` tells.
template <typename Kernel>
bool Launch(const char* name, dim3 grid, dim3 block, bool has_barriers, Kernel call) {
  kernel = [](void* arguments) { (*static_cast<Kernel*>(arguments))(); };
  kernel_arguments = &call;
  const unsigned count = block.x * block.y * block.z;
  char* stacks = nullptr;
  unsigned* sequence = nullptr;
  uint64_t seed = order | 1;
  const size_t stack_bytes = count * kStackBytes;
  if (has_barriers) {
    threads = static_cast<Thread*>(calloc(count, sizeof(Thread)));
    sequence = static_cast<unsigned*>(calloc(count, sizeof(unsigned)));
    void* memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (threads == nullptr || sequence == nullptr || memory == MAP_FAILED) {
      snprintf(message, sizeof message, "%s: no memory for %u threads", name, count);
      return false;
    }
    stacks = static_cast<char*>(memory);
    for (unsigned i = 0; i < count; ++i) {
      Thread& thread = threads[i];
      thread.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
      getcontext(&thread.start);
      thread.start.uc_stack.ss_sp = stacks + i * kStackBytes;
      thread.start.uc_stack.ss_size = kStackBytes;
      thread.start.uc_link = &scheduler_start;
      makecontext(&thread.start, FiberMain, 0);
    }
  }
  bool ok = true;
  for (unsigned z = 0; ok && z < grid.z; ++z) {
    for (unsigned y = 0; ok && y < grid.y; ++y) {
      for (unsigned x = 0; ok && x < grid.x; ++x) {
        blockIdx = {x, y, z};
        StartBlock();
        if (has_barriers) {
          ok = RunBlock(name, count, sequence, &seed);
          continue;
        }
        for (unsigned i = 0; i < count; ++i) {
          const unsigned number = order == 1 ? count - 1 - i : i;
          threadIdx = {number % block.x, number / block.x % block.y, number / block.x / block.y};
          call();
        }
      }
    }
  }
  if (has_barriers) {
    munmap(stacks, stack_bytes);
    free(threads);
    free(sequence);
  }
  return ok;
}

}  // namespace nao_shim

// How threads are to be ordered and which barrier is left out from now on, and what stopped the last kernel.
extern "C" void nao_shim_set_order(uint64_t order) { nao_shim::order = order; }
extern "C" void nao_shim_leave_out(int line) { nao_shim::left_out_line = line; }
extern "C" const char* nao_shim_message() { return nao_shim::message; }

#endif  // COMPILER_CODEGEN_CUDA_SHIM_H_
