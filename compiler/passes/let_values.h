// The values of lets, for conditions that use their variables: cse and licm bind conditions, or parts of
// them, and the passes on guards look through these lets.
#ifndef COMPILER_PASSES_LET_VALUES_H_
#define COMPILER_PASSES_LET_VALUES_H_

#include <cstddef>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"

namespace polynao {

// A walk binds each let that it enters; the values leave with the innermost Scope:
//
//   LetValues lets(analyzer);
//   LetValues::Scope scope(lets);
//   lets.Bind(s);                  // let c: i1 = 3 <= i && i < n
//   lets.Expand(c && j < 5);       // 3 <= i && i < n && j < 5
//
// A value stands for its variable if the variable is an i1, i32 or i64 and evaluating the value again,
// in a condition, must give the same: the value reads no memory, cannot stop the program, and does
// no arithmetic that may leave its type (which wraps in a let and stops the program in a condition).
// Other variables stay in expanded expressions. The lets outside must be bound, too.
class LetValues {
 public:
  explicit LetValues(arith::Analyzer& analyzer) : analyzer_(analyzer) {}
  LetValues(const LetValues&) = delete;
  LetValues& operator=(const LetValues&) = delete;

  // Forgets, when it ends, the lets that were bound during its life. Scopes nest.
  class Scope {
   public:
    explicit Scope(LetValues& lets) : lets_(lets), bound_(lets.bound_.size()) {}
    ~Scope() { lets_.ForgetAfter(bound_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LetValues& lets_;
    const size_t bound_;
  };

  // Enters the body of the let statement `let`. Tells the analyzer, too, which forgets with a scope of
  // its own. Returns whether the value stands for the variable.
  bool Bind(ir::Stmt let);

  // `e` with values in place of variables.
  ir::Expr Expand(ir::Expr e) const;

 private:
  void ForgetAfter(size_t bound);

  arith::Analyzer& analyzer_;
  ir::VarMap values_;  // expanded
  std::vector<ir::Var> bound_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_LET_VALUES_H_
