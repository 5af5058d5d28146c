// Loops over the threads of a GPU's block, one after the other instead of one in another.
#ifndef COMPILER_PASSES_THREAD_REGIONS_H_
#define COMPILER_PASSES_THREAD_REGIONS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

// compiler/te lowers a GPU's schedule to a program of one thread, in which a loop over threadIdx inside
// a loop over threadIdx is work that all threads of the block share. This pass makes *thread regions* of
// it: loops over all threads of the block, one after another. A region may read what the one
// before stored, and a barrier can stand between them.
//
//   thread (tx = "threadIdx.x", 8) {            allocate S: f32[8] @shared
//     allocate S: f32[8] @shared                allocate sum: f32[8, 1] @local
//     allocate sum: f32[1] @local               thread (tx = "threadIdx.x", 8) { sum[tx, 0] = 0.0 }
//     sum[0] = 0.0                       -->    for (k, 0, 4) {
//     for (k, 0, 4) {                             thread (ty = "threadIdx.x", 8) { S[ty] = .. }
//       thread (ty = "threadIdx.x", 8) {          thread (tx_1 = "threadIdx.x", 8) {
//         S[ty] = ..                                sum[tx_1, 0] = sum[tx_1, 0] + S[..]
//       }                                         }
//       sum[0] = sum[0] + S[..]                 }
//     }                                         thread (tx_2 = "threadIdx.x", 8) { A[tx_2] = .. }
//     A[tx] = sum[0]
//   }
//
// The interpreter runs the regions loop after loop, to the same result. Loops, branches and lets around
// an inner loop over threads go outside all threads, so they must not depend on a thread. A private
// buffer of a thread gets a dimension for each thread axis in front (the code generator removes it
// again, for registers). Nests without inner thread loops stay the same nodes.
//
// Errors name the loop or buffer. They are:
//  - an inner thread loop, or bounds or a condition around one, that depends on the thread or on
//    what the threads store;
//  - an inner thread loop that stores elsewhere than to shared memory allocated inside the threads, or
//    reads a private buffer of one thread;
//  - a single thread that stores to such shared memory;
//  - thread loops that do not start at 0.
absl::StatusOr<bool> ThreadRegions(ir::Function& function);

// The pass by name (registry.h).
PassInfo ThreadRegionsPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_THREAD_REGIONS_H_
