// Keeps array elements that a loop updates in a buffer of their own, so that the CPU's registers can hold them.
#ifndef COMPILER_PASSES_PROMOTE_H_
#define COMPILER_PASSES_PROMOTE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

struct PromoteOptions {
  // The most bytes of one loop's promoted elements: three quarters of 32 vector registers of 64 bytes.
  int max_bytes = 1536;
};

//   for (k, 0, n) {                                  allocate C.tile: f64[4, 8]
//     unroll (i, 0, 4) {                             if (0 < n) {
//       vectorize (j, 0, 8) {               -->        unroll (i.in, 0, 4) { vectorize (j.in, 0, 8) {
//         C[x + i, y + j] = C[x + i, y + j]              C.tile[i.in, j.in] = C[x + i.in, y + j.in] } }
//             + A[x + i, k] * B[k, y + j]              for (k, 0, n) { .. C.tile[i, j] = C.tile[i, j] + .. }
//       }                                              .. C[x + i.out, y + j.out] = C.tile[i.out, j.out] ..
//     }                                              }
//   }
//
// For a buffer and a serial loop, the outermost one where all of this holds:
//   * All accesses to the buffer in the loop have the same indices. These do not depend on the loop's variable but on
//     variables of inner `unroll` and `vectorize` loops of constant extents, and different values of these variables
//     mean different elements.
//   * Each iteration stores all of these elements: the store stands in no condition and in no other loop that may have
//     no iterations.
//   * The buffer aliases no other, and nothing in the loop is a call of an instruction, runs in parallel, or takes an
//     address of the buffer.
// Compilers do this by themselves for single elements ("scalar promotion"), but not for tiles of them.
absl::StatusOr<bool> Promote(ir::Function& function, const PromoteOptions& options = {});

// The pass by name (registry.h).
PassInfo PromotePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_PROMOTE_H_
