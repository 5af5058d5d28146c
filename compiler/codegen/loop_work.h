// How much a loop has to do: what decides at run time whether a parallel loop is worth its threads.
#ifndef COMPILER_CODEGEN_LOOP_WORK_H_
#define COMPILER_CODEGEN_LOOP_WORK_H_

#include "compiler/ir/ir.h"

namespace polynao::codegen {

// About how many operations (loads, stores, arithmetic; four iterations of an innermost loop as one) all iterations of
// `loop` make: an f64 expression of the variables that are known in front of it. Bounds that depend on loops inside are
// taken at the middle iteration of these. An extent that is not known there (it has loads or divides by variables)
// counts as 64.
//
//   parallel (i, 0, n) { for (j, 0, i) { x[i] = x[i] + A[i, j] } }     n * (1 + n / 2 * (4 / 4))
ir::Expr LoopWork(ir::Stmt loop);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LOOP_WORK_H_
