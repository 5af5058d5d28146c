// Gives a GPU's threads the iterations of parallel loops.
#ifndef COMPILER_PASSES_BIND_PARALLEL_H_
#define COMPILER_PASSES_BIND_PARALLEL_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

//   parallel (i, 3, 1000) { A[i] = .. }   -->
//     thread (blockIdx.x, 32) {
//       thread (threadIdx.x, 32) {
//         if (blockIdx.x * 32 + threadIdx.x < 1000) {
//           let i = blockIdx.x * 32 + threadIdx.x + 3
//           A[i] = ..
//         }
//       }
//     }
//
// For operators whose schedule binds no loop to threads: correct and parallel, not fast. Only loops of
// constant bounds that stand in no other loop. A loop with thread loops inside is scheduled for a GPU
// already and stays. Blocks have 32 threads, or 256 for loops of 32768 iterations or more.
absl::StatusOr<bool> BindParallel(ir::Function& function);

// The pass by name (registry.h).
PassInfo BindParallelPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_BIND_PARALLEL_H_
