// The execution model of CUDA on a CPU: with this in front, a generated CUDA file is C++ that runs
// its kernels, one block after another, the threads of a block as fibers that switch at barriers.
//
// What it does beyond running: threads run from barrier to barrier in an order that the caller chooses, so that what is
// missing a barrier is seen; a barrier can be left out, to see that it is needed. These stop the kernel with an error:
// a barrier that not all threads of a block reach, or at different places; a load of memory that nothing has stored, be
// it global, shared or an array of a thread. It counts no time and models no machine. One kernel at a time in a
// process.
//
// ShimmedText (run_cuda.h) turns the pointers and arrays of a CUDA file into the classes below, which know what is
// stored. The rest of the file stays as it is.
//
// Compiled with -std=c++17 or later, -fno-strict-aliasing and -fno-threadsafe-statics; needs nothing of the C++
// library.
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
#define __shared__ static
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

namespace nao_shim {

constexpr size_t kStackBytes = size_t{4} << 20;  // of one thread; touched only as far as it is used

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
static char message[300];
static const char* kernel_name;
static bool has_fibers;  // the kernel's threads are fibers
static bool has_failed;
static jmp_buf failure;
static int64_t block_number;  // of all blocks so far
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

// Runs `thread` until it waits, finishes or fails.
static void Resume(Thread* thread) {
  current = thread;
  threadIdx = thread->index;
  if (_setjmp(scheduler) != 0) return;
  if (thread->started) _longjmp(thread->state, 1);
  thread->started = true;
  setcontext(&thread->start);
}

// ---- memory

// A buffer. `undefined` has a byte for each of its bytes, not 0 if nothing has stored it; null: all is defined.
struct Memory {
  const char* name;
  char* base;
  unsigned char* undefined;
  size_t element_bytes;
};

// Stops the kernel.
__attribute__((noinline, cold)) static void FailUndefined(const Memory& memory, size_t byte) {
  snprintf(message, sizeof message,
           "%s, block (%u, %u, %u), thread (%u, %u, %u): loads element %zu of '%s', which nothing "
           "has stored",
           kernel_name, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z,
           byte / memory.element_bytes, memory.name);
  has_failed = true;
  _longjmp(has_fibers ? scheduler : failure, 1);
}

template <typename T>
struct Pointer;

// An element, or several that one access moves.
template <typename T>
class Element {
 public:
  Element(T* place, const Memory* memory) : place_(place), memory_(memory) {}
  operator T() const {
    const Memory& memory = *memory_;
    if (memory.undefined != nullptr) {
      const size_t first = (size_t)((char*)place_ - memory.base);
      for (size_t i = 0; i < sizeof(T); ++i) {
        if (memory.undefined[first + i] != 0) FailUndefined(memory, first + i);
      }
    }
    return *place_;
  }
  Element& operator=(T value) {
    const Memory& memory = *memory_;
    *place_ = value;
    if (memory.undefined != nullptr) {
      memset(memory.undefined + ((char*)place_ - memory.base), 0, sizeof(T));
    }
    return *this;
  }
  Element(const Element&) = default;
  Element& operator=(const Element& other) { return *this = (T)other; }
  Element& operator+=(T value) { return *this = (T)((T) * this + value); }
  Pointer<T> operator&() const { return {place_, memory_}; }

 private:
  T* place_;
  const Memory* memory_;
};

// Stands for memory that comes from elsewhere.
static const Memory defined_memory = {"", nullptr, nullptr, 1};

template <typename T>
struct Pointer {
  Pointer(T* p, const Memory* m = &defined_memory) : place(p), memory(m) {}
  Element<T> operator[](int64_t i) const { return {place + i, memory}; }
  Element<T> operator*() const { return {place, memory}; }
  Pointer operator+(int64_t i) const { return {place + i, memory}; }

  T* place;
  const Memory* memory;
};

// Elements of one thread, or of a block; undefined at first.
template <typename T, size_t n>
class Elements {
 public:
  explicit Elements(const char* name) : memory_{name, (char*)elements_, undefined_, sizeof(T)} {
    Clear();
  }
  Elements(const Elements&) = delete;
  Pointer<T> At(int64_t i) { return {elements_ + i, &memory_}; }
  // Threads come here when they get to the declaration of an array in shared memory.
  void Enter() {
    if (block_ != block_number) Clear();
    block_ = block_number;
  }

 private:
  void Clear() {
    memset(elements_, 0xff, sizeof elements_);
    memset(undefined_, 1, sizeof undefined_);
  }

  alignas(16) T elements_[n];
  unsigned char undefined_[n * sizeof(T)];
  const Memory memory_;
  int64_t block_ = 0;
};

// T[n] and T[m][n].
template <typename T>
class Array;
template <typename T, size_t n>
class Array<T[n]> : public Elements<T, n> {
 public:
  using Elements<T, n>::Elements;
  Element<T> operator[](int64_t i) { return *this->At(i); }
};
template <typename T, size_t m, size_t n>
class Array<T[m][n]> : public Elements<T, m * n> {
 public:
  using Elements<T, m * n>::Elements;
  Pointer<T> operator[](int64_t i) { return this->At(i * (int64_t)n); }
};

template <typename T>
struct Pointee;
template <typename T>
struct Pointee<T*> {
  using Type = T;
};
template <typename T>
struct Pointee<const T*> {
  using Type = T;
};
// reinterpret_cast<To>.
template <typename To, typename T>
Pointer<typename Pointee<To>::Type> Cast(const Pointer<T>& from) {
  return {reinterpret_cast<typename Pointee<To>::Type*>(from.place), from.memory};
}
template <typename To, typename T, size_t n>
auto Cast(Array<T[n]>& from) {
  return Cast<To>(from.At(0));
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
    for (unsigned i = 0; i < count; ++i) {
      Resume(&threads[sequence[i]]);
      if (has_failed) return false;
    }
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

// A block without barriers. False after an error.
template <typename Kernel>
__attribute__((noinline)) bool RunInTurn(const Kernel& call, dim3 block) {
  const unsigned count = block.x * block.y * block.z;
  if (_setjmp(failure) != 0) return false;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned number = order == 1 ? count - 1 - i : i;
    threadIdx = {number % block.x, number / block.x % block.y, number / block.x / block.y};
    call();
  }
  return true;
}

// Runs a kernel. False after an error, which `message` tells.
template <typename Kernel>
bool Launch(const char* name, dim3 grid, dim3 block, bool has_barriers, Kernel call) {
  kernel = [](void* arguments) { (*static_cast<Kernel*>(arguments))(); };
  kernel_arguments = &call;
  kernel_name = name;
  has_fibers = has_barriers;
  has_failed = false;
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
        ++block_number;
        ok = has_barriers ? RunBlock(name, count, sequence, &seed) : RunInTurn(call, block);
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
