// Scalar code of cores that have nothing to do.
#ifndef COMPILER_PASSES_IDLE_CORES_H_
#define COMPILER_PASSES_IDLE_CORES_H_

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Five rows on six cores: the last one stores nothing, and what it would copy in is under the same condition. An
// instruction that computes with its memory does no harm, but the scalar unit must not read what nobody has written:
//
//   thread (tid, 6) {                                  thread (tid, 6) {
//     if (tid < 5) { load X from A[tid * 64] }           if (tid < 5) { load X from A[tid * 64] }
//     for (i, 0, 64) { Y[i] = f(X[i]) }         -->      if (tid < 5) { for (i, 0, 64) { Y[i] = f(X[i]) } }
//     if (tid < 5) { store Y to B[tid * 64] }            if (tid < 5) { store Y to B[tid * 64] }
//   }                                                  }
//
// So a nest of stores to a core's own memory goes under the conditions on its numbers (cid, tid) that all of the loop's
// writes to GMEM and SMEM have in common: where they do not hold, nobody sees what it stores. Returns `s`, changed or
// not.
ir::Stmt SkipScalarCodeOfIdleCores(ir::Stmt s, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_IDLE_CORES_H_
