// The pieces of loops whose bounds are not constant (loop_partition.h). Reads the program only.
#ifndef COMPILER_PASSES_SYMBOLIC_LOOPS_H_
#define COMPILER_PASSES_SYMBOLIC_LOOPS_H_

#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/passes/partition_plan.h"
#include "compiler/passes/surroundings.h"

namespace polynao {

// A piece of a loop: `extent` iterations from `start` on, maybe none.
struct SymbolicPiece {
  bool is_whole;  // the loop as it is
  ir::Expr start, extent;
  ir::Stmt body;                // without the guards that are constant there
  std::vector<ir::Expr> facts;  // of the variable, besides its bounds
};

// The pieces of `loop` in order, without those that have no body left. First at constants, over all
// values the variable might have:
//
//   for (i, 0, n) if (i < 14) A  -->  for (i, 0, min(n, 14)) A
//
// then each piece where a comparison changes at a value that is known before the loop. Nothing if the
// bounds read memory or cannot be written so that they never overflow. Assumes in `around`, which the
// caller has a scope of, what follows for parameters from the evaluation of the bounds.
std::optional<std::vector<SymbolicPiece>> PlanSymbolicLoop(ir::Stmt loop, PartitionPlanner& planner,
                                                           Surroundings& around);

}  // namespace polynao

#endif  // COMPILER_PASSES_SYMBOLIC_LOOPS_H_
