// Into which pieces loop_partition splits a loop. Reads the program only; rewriting comes after.
#ifndef COMPILER_PASSES_PARTITION_PLAN_H_
#define COMPILER_PASSES_PARTITION_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/arith/integer_set.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/guard_solver.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/partition_guards.h"
#include "compiler/passes/surroundings.h"

namespace polynao {

// Values of a loop's variable, and the guards that are constant for all of them.
struct Piece {
  arith::Interval range;
  Truths truths;
};

struct PiecePlan {
  std::vector<Piece> pieces;  // adjacent ones differ in some guard
  GuardsBelow found;
};

class PartitionPlanner {
 public:
  PartitionPlanner(Surroundings& around, const LoopPartitionOptions& options,
                   LoopPartitionStats* stats)
      : around_(around),
        options_(options),
        stats_(stats),
        finder_(around),
        solver_(around, options.max_pieces) {}

  // An outermost loop begins, with pieces of its own to give.
  void EnterNest() { nest_pieces_ = 0; }
  void EnterPragma() { ++pragmas_; }
  void LeavePragma() { --pragmas_; }

  bool HasGuard(ir::Stmt s) { return finder_.HasGuard(s); }
  // The guards on the variable of `loop` in `body`; enters what stands inside (GuardFinder::Find).
  GuardsBelow FindGuards(ir::Stmt loop, ir::Stmt body);

  // FindPartition of Algorithm 2: the pieces of `range`, the values of the variable of `loop`, by
  // the guards in `body`. For a loop whose bounds are not constant, `range` holds all values that
  // the variable may have, and cuts far from 0 are left out.
  PiecePlan Plan(ir::Stmt loop, ir::Stmt body, arith::Interval range, bool is_symbolic = false);

  // How many pieces a loop may be split into, and that it is split into so many.
  int PieceLimit() const;
  void TakePieces(size_t pieces) { nest_pieces_ += static_cast<int>(pieces) - 1; }
  void GiveBackPieces(size_t pieces) { nest_pieces_ -= static_cast<int>(pieces) - 1; }

  // Adds the loop with its guards and pieces to the statistics; `bounds` and `piece_bounds` are texts
  // of what is not constant, or empty.
  void Record(ir::Var var, arith::Interval range, const PiecePlan& plan,
              const std::string& bounds = "", const std::vector<std::string>& piece_bounds = {});
  LoopPartitionStats* stats() { return stats_; }
  int64_t isl_questions() const { return solver_.isl_questions(); }

 private:
  Surroundings& around_;
  const LoopPartitionOptions options_;
  LoopPartitionStats* const stats_;
  GuardFinder finder_;
  GuardSolver solver_;
  int pragmas_ = 0;      // around the place
  int nest_pieces_ = 0;  // more than loops, in the outermost nest so far
};

}  // namespace polynao

#endif  // COMPILER_PASSES_PARTITION_PLAN_H_
