// Loads that hold up others before anybody needs them.
#ifndef COMPILER_PASSES_LATE_LOADS_H_
#define COMPILER_PASSES_LATE_LOADS_H_

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// The loads of a core come one after the other, each with the latency of GMEM. What is first read behind long
// computation, the tensor unit's (vectors of channels, by which whole sums are multiplied), therefore goes in front of
// that reader: it comes while the computation before it runs, and the loads behind it come sooner.
//
//   thread (tid, 4) {                               thread (tid, 4) {
//     load SCALE                                      load W
//     load W                                          for (r, 0, 9) { add products of X and W to S; load W }
//     for (r, 0, 9) { add products; load W }    -->   load SCALE
//     multiply S by SCALE                             multiply S by SCALE
//   }                                               }
//
// A load goes if other loads stand between it and its first reader, none of them for what stands behind that (the next
// tile: the reader would wait for it), and nothing in the loop over clusters writes what it reads. Loads in loops, ifs
// and lets stay. Runs behind the pass pipeline, which makes loops of whole sums, and before sync. Returns the statement
// `s`, changed or not.
ir::Stmt LoadLate(ir::Stmt s, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_LATE_LOADS_H_
