// The runtime of compiled parallel loops: one pool of threads per process.
//
// Objects written by `nao compile --target=cpu` refer to polynao_parallel_for and must be linked
// with this library if they have parallel loops.
#ifndef COMPILER_CODEGEN_LLVM_RUNTIME_THREAD_POOL_H_
#define COMPILER_CODEGEN_LLVM_RUNTIME_THREAD_POOL_H_

#include <cstdint>

extern "C" {

// Some iterations, begin <= i < end, of a loop. Returns 0, or the code of the check that failed.
using PolynaoLoopBody = int32_t (*)(void* closure, int64_t begin, int64_t end);

// Calls `body` on disjoint ranges that together are 0 <= i < extent, on up to `threads` threads (0:
// as many as the machine runs at once), the calling one among them. Returns when all are done: 0,
// or the code of one range that failed, after which no new ranges are begun. Inside a body, or
// while another thread's loop has the pool, the loop runs on the calling thread alone.
int32_t polynao_parallel_for(PolynaoLoopBody body, void* closure, int64_t extent, int32_t threads);
}

#endif  // COMPILER_CODEGEN_LLVM_RUNTIME_THREAD_POOL_H_
