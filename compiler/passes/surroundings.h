// Keeps what loop_partition knows at the statement that its walk has reached.
#ifndef COMPILER_PASSES_SURROUNDINGS_H_
#define COMPILER_PASSES_SURROUNDINGS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/integer_set.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/let_values.h"

namespace polynao {

// The loops, lets and conditions around a statement. The end of a Scope removes everything that was added
// since its construction.
class Surroundings {
 public:
  // Knows what holds throughout `function`.
  explicit Surroundings(const ir::Function& function);

  class Scope {
   public:
    explicit Scope(Surroundings& around);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Surroundings& around_;
    arith::Analyzer::Scope analyzer_;
    LetValues::Scope lets_;
    const size_t facts_, loops_;
  };

  // `condition`, an expanded one, is `truth`.
  void Assume(ir::Expr condition, bool truth = true);
  // Returns true if conditions may use the value in place of the variable (LetValues::Bind).
  bool BindLet(ir::Stmt let);
  // Enters the loop, whose variable is in `range`, or between the loop's own bounds.
  void EnterLoop(ir::Stmt loop, std::optional<arith::Interval> range);
  // Enters a loop, but uses only the range of its variable. The other facts that the bounds imply (such as
  // 0 < extent) hold in the loop's body, not in the loops beside it.
  void EnterBeside(ir::Stmt loop);
  // Narrows the variable of an enclosing loop to `range`. The caller must pass the result to RestoreLoop
  // before the scope ends.
  arith::BoundedVar NarrowLoop(ir::Var var, arith::Interval range);
  void RestoreLoop(const arith::BoundedVar& loop);

  // `e` with the values of lets in place of their variables, as far as a condition may use them.
  ir::Expr Expand(ir::Expr e) const { return lets_.Expand(e); }
  // Appends the comparisons that follow from `condition` being `truth`, except those that can trap, as loads can.
  void AddFacts(ir::Expr condition, bool truth, std::vector<ir::Expr>& facts);
  // The values of the loop's variable, if they are constant and there is one.
  std::optional<arith::Interval> ConstantRange(ir::Stmt loop);
  // Returns true if the variable's range depends on no other variable: it is a parameter, or its loop has constant
  // bounds.
  bool HasConstantBounds(ir::Var var) const;

  ir::Context& context() const { return context_; }
  arith::Analyzer& analyzer() { return analyzer_; }
  // The enclosing loops, outermost first, each with the range of the current piece.
  const std::vector<arith::BoundedVar>& loops() const { return loops_; }
  // The conditions of enclosing ifs and the function's `@assert`, outermost first. No fact reads memory.
  const std::vector<ir::Expr>& facts() const { return facts_; }

 private:
  ir::Context& context_;
  arith::Analyzer analyzer_;
  LetValues lets_;
  std::vector<arith::BoundedVar> loops_;
  std::vector<ir::Expr> facts_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_SURROUNDINGS_H_
