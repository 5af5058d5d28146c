// For which values of a loop's variable a guard always holds, and for which it never does.
#ifndef COMPILER_PASSES_GUARD_SOLVER_H_
#define COMPILER_PASSES_GUARD_SOLVER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/arith/integer_set.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/partition_guards.h"
#include "compiler/passes/surroundings.h"

namespace polynao {

// Intervals where they are exact (a linear comparison over a box), else isl. An answer may miss values,
// and holds for those that it names.
class GuardSolver {
 public:
  // A set of more than `max_pieces` intervals is not looked for.
  GuardSolver(Surroundings& around, int max_pieces)
      : around_(around), max_pieces_(max_pieces), sets_({.max_intervals = max_pieces}) {}

  // Fills `always` and `never` of the guards, for values in `range`. Adds the parts of guards whose
  // whole is not constant everywhere. The loops and lets below the loop must be entered.
  void Solve(arith::Interval range, GuardsBelow& found);

  // How many questions isl has been asked.
  int64_t isl_questions() const { return sets_.questions(); }

 private:
  struct Solution {
    arith::Intervals always = {}, never = {};
    // This is true if no more values could be in either.
    bool exact = false;
  };

  Solution SolveUnder(const std::vector<ir::Expr>& facts, ir::Expr condition,
                      const GuardsBelow& found, arith::Interval range);
  Solution SolveIn(const std::vector<ir::Expr>& relevant, ir::Expr condition, ir::Var var,
                   arith::Interval range);
  int64_t PeriodOf(ir::Expr condition, const GuardsBelow& found) const;
  void SolveParts(size_t whole, const std::vector<ir::Expr>& facts, arith::Interval range,
                  GuardsBelow& found);
  void Exactly(ir::Expr condition, const std::vector<ir::Expr>& facts, ir::Var var,
               arith::Interval range, Solution& solution);
  Solution Intervalwise(ir::Expr condition, ir::Var var, arith::Interval range);
  bool IsRemainder(const arith::LinearForm& form, const arith::LinearForm::Term& term);

  Surroundings& around_;
  const int max_pieces_;
  arith::IntegerSets sets_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_GUARD_SOLVER_H_
