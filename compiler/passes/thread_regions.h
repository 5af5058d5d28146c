// Loops over the threads of a GPU's block, one after the other instead of one in another.
#ifndef COMPILER_PASSES_THREAD_REGIONS_H_
#define COMPILER_PASSES_THREAD_REGIONS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

// What compiler/te makes of a GPU's schedule says for each thread by itself what it needs, also
// where all threads of the block do it together (loops over threadIdx inside loops over threadIdx).
// This pass makes *thread regions* of that: loops over all threads of the block that stand one after
// another, so that what one region stores the next one reads, and a barrier can stand between them.
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
// The meaning stays, loop after loop, and the interpreter can check it. Loops, branches and lets
// around an inner loop over threads go outside all threads, so they may not depend on a thread;
// what a thread keeps for itself gets a dimension for each thread axis in front (the code generator
// takes it away again: registers). Nests without inner thread loops stay the same nodes.
//
// Errors name the loop or buffer: bounds or a condition around an inner thread loop that depend on
// the thread or on what the threads store; an inner thread loop that does, that stores elsewhere
// than to shared memory allocated inside the threads, or reads what one thread keeps for itself; a
// thread that stores to such shared memory by itself; thread loops that do not start at 0.
absl::StatusOr<bool> ThreadRegions(ir::Function& function);

// The pass by name (registry.h).
PassInfo ThreadRegionsPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_THREAD_REGIONS_H_
