// Removing guards whose truth is known: EliminateCondition of Algorithm 2 (loop_partition.h).
#ifndef COMPILER_PASSES_GUARD_ELIMINATION_H_
#define COMPILER_PASSES_GUARD_ELIMINATION_H_

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/partition_guards.h"

namespace polynao {

// `s` without the guards in `truths`, which were found in `s` by the walk that filled `places`:
// branches that are never taken go, and what is empty without them. What may stop the program
// stays. Asks no prover again but for that.
ir::Stmt EliminateGuards(ir::Stmt s, const Truths& truths, const GuardPlaces& places,
                         arith::Analyzer& analyzer);

}  // namespace polynao

#endif  // COMPILER_PASSES_GUARD_ELIMINATION_H_
