// What loop_partition knows at the place of the program that its walk has reached.
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

// The loops, lets and conditions around a place. All that is added during the life of a Scope leaves
// with it.
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
  // Whether conditions may use the value in place of the variable (LetValues::Bind).
  bool BindLet(ir::Stmt let);
  // Enters the loop, whose variable is in `range`, or between the loop's own bounds.
  void EnterLoop(ir::Stmt loop, std::optional<arith::Interval> range);
  // Enters a loop of which only the range of the variable is used: what else a loop's bounds say holds
  // in its body if there is an iteration at all, and not in the loops beside it.
  void EnterBeside(ir::Stmt loop);
  // Narrows the variable of a loop that is entered to `range`; the caller must undo this by
  // `RestoreLoop` of the result before the scope ends.
  arith::BoundedVar NarrowLoop(ir::Var var, arith::Interval range);
  void RestoreLoop(const arith::BoundedVar& loop);

  // `e` with the values of lets in place of their variables, as far as a condition may use them.
  ir::Expr Expand(ir::Expr e) const { return lets_.Expand(e); }
  // Appends what `condition` being `truth` says of values that nothing changes, one comparison each.
  void AddFacts(ir::Expr condition, bool truth, std::vector<ir::Expr>& facts);
  // The values of the loop's variable, if they are constant and there is one.
  std::optional<arith::Interval> ConstantRange(ir::Stmt loop);
  // Whether the variable may have any value of its range together with any values of others: it is a
  // parameter, or its loop has constant bounds.
  bool HasConstantBounds(ir::Var var) const;

  ir::Context& context() const { return context_; }
  arith::Analyzer& analyzer() { return analyzer_; }
  // Enclosing loops, with the range of the piece that is worked on, outermost first.
  const std::vector<arith::BoundedVar>& loops() const { return loops_; }
  // What conditions of enclosing ifs and the function's `@assert` say, outermost first. No fact reads
  // memory.
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
