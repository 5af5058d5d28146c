// Removing guards whose truth is known: EliminateCondition of Algorithm 2 (loop_partition.h).
#ifndef COMPILER_PASSES_GUARD_ELIMINATION_H_
#define COMPILER_PASSES_GUARD_ELIMINATION_H_

#include "absl/container/flat_hash_set.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/partition_guards.h"

namespace polynao {

// `s` without the guards in `truths`, which were `found` in `s`: branches that
// are never taken go, and what is empty without them. What may stop the program
// stays. Asks no prover again but for that.
//
// Fills `live`, if it is not null, with what still decides a branch or is the
// operand of a min or max in the result: comparisons, mins and maxes by the
// places and nodes that they have in `s`.
ir::Stmt EliminateGuards(ir::Stmt s, const Truths& truths, const GuardsBelow& found,
                         arith::Analyzer& analyzer,
                         absl::flat_hash_set<PlacedExpr>* live = nullptr);

}  // namespace polynao

#endif  // COMPILER_PASSES_GUARD_ELIMINATION_H_
