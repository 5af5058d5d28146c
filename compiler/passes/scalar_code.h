// What scalar code of cores reads.
#ifndef COMPILER_PASSES_SCALAR_CODE_H_
#define COMPILER_PASSES_SCALAR_CODE_H_

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Instructions may compute with memory that nobody has written, as long as nobody looks at the result: guards of tiles
// fall away where that helps. The scalar unit must not read such memory. Two changes see to that.
//
// Five rows on six cores: the last one stores nothing, and what it would copy in is under the same condition. A nest of
// stores to a core's own memory goes under the conditions on its numbers (cid, tid) that all of the loop's writes to
// GMEM and SMEM have in common, unless it stores constants, which copies of other tiles may read:
//
//   thread (tid, 6) {                                  thread (tid, 6) {
//     if (tid < 5) { load X from A[tid * 64] }           if (tid < 5) { load X from A[tid * 64] }
//     for (i, 0, 64) { Y[i] = f(X[i]) }         -->      if (tid < 5) { for (i, 0, 64) { Y[i] = f(X[i]) } }
//     if (tid < 5) { store Y to B[tid * 64] }            if (tid < 5) { store Y to B[tid * 64] }
//   }                                                  }
//
// A core may have a part of the rows that a nest goes over, too. So where there is such a nest, buffers in NMEM that
// one reads, and those from which instructions compute these, are filled with zeros first. So is what such a nest
// stores: a copy of an idle core, for a margin that another one's last element reaches, may read it. Returns `s`,
// changed or not.
// Runs behind tensorize.
ir::Stmt DefineWhatScalarCodeReads(ir::Stmt s, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_SCALAR_CODE_H_
