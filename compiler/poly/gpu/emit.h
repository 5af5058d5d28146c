// Writes the marks of a GPU mapping as loops over blockIdx and threadIdx, copies to shared memory, and registers.
#ifndef COMPILER_POLY_GPU_EMIT_H_
#define COMPILER_POLY_GPU_EMIT_H_

#include <memory>

#include "compiler/ir/ir.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/gpu/map.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Writes the marks of `mapping`, which outlives it.
std::unique_ptr<MarkHandler> MakeGpuHandler(const GpuMapping& mapping);

// The code of a mapped part. Throws isl::exception.
//
//   thread (by = "blockIdx.y", ..) { thread (bx = "blockIdx.x", ..) {
//     allocate C.own: f64[8, 32] @local
//     thread (ty, 8) { thread (tx, 32) { if (inside) { C.own[ty, tx] = C[by * 8 + ty, bx * 32 + tx] } } }
//     for (kt, ..) {
//       allocate A.shared: f64[8, 32] @shared
//       thread (ty, 8) { thread (tx, 32) { A.shared[ty, tx] = A[by * 8 + ty, kt * 32 + tx] } }
//       thread (ty, 8) { thread (tx, 32) { for (k, ..) { C.own[ty, tx] = C.own[ty, tx] + A.shared[ty, k] .. } } }
//     }
//     thread (ty, 8) { thread (tx, 32) { if (inside) { C[by * 8 + ty, bx * 32 + tx] = C.own[ty, tx] } } }
//   } }
//
// The code generator puts barriers between loops over threads.
//
// isl may write what is below a mark in several pieces, one after the other, where loops around it have one iteration.
// `keeps_registers` is false if it does so with elements that threads keep in registers: each piece loads and stores
// all of them, and the code is wrong.
ir::Stmt GenerateForGpu(const Scop& scop, const GpuMapping& mapping, bool* keeps_registers);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_EMIT_H_
