// Loops of a statement as ranges of numbers, and the statement's values at given iterations.
#ifndef COMPILER_POLY_PACK_ITERATIONS_H_
#define COMPILER_POLY_PACK_ITERATIONS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/ast_value.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Integers (i64) with constants folded. The divisor is positive.
ir::Expr Quotient(ir::Expr a, ir::Expr b);
ir::Expr CeilQuotient(ir::Expr a, ir::Expr b);
ir::Expr Remainder(ir::Expr a, ir::Expr b);
ir::Expr Least(ir::Expr a, ir::Expr b);

// A loop over first, first + 1, .., of `count` iterations: 1 and more where the statement has instances.
struct Range {
  ir::Var var = {};
  ir::Expr first = {}, count = {};
  double assumed = 1;  // iterations
};

using Values = absl::flat_hash_map<ir::Var, ir::Expr>;
using Lets = std::vector<std::pair<ir::Var, ir::Expr>>;

// `body` in the scope of the lets, the first one outermost.
ir::Stmt Within(const Lets& lets, ir::Stmt body);

// The names that code of a part is over: i64s of its parameters, and of variables outside of it.
class PartNames {
 public:
  explicit PartNames(const Scop& scop);

  ir::Context& context() const { return context_; }
  const Values& outer() const { return outer_; }
  // A condition on the parameters, or an integer over them. Throws isl::exception.
  ir::Expr Condition(const isl::set& parameters) const;
  ir::Expr Value(const isl::pw_aff& f, const isl::set& where) const;
  // `body` in the scope of the names.
  ir::Stmt Bind(ir::Stmt body) const;

 private:
  const Scop& scop_;
  ir::Context& context_;
  Lets lets_;
  AstNames names_;
  Values outer_;
};

// The range of a statement's loop, if the statement's domain is a box. Throws isl::exception.
Range RangeOf(const Scop& scop, const Statement& statement, size_t loop, const PartNames& names,
              const AssumedParameters& assumed);

// How many iterations loops have together; 1 for none.
ir::Expr CountOf(ir::Context& context, const std::vector<Range>& loops);
double AssumedCount(const std::vector<Range>& loops);

// Sets `at` to iteration number `number` of the loops, counted in their order, the last one fastest. Quotients and
// remainders are bound by `lets`.
void SetIteration(const std::vector<Range>& loops, ir::Expr number, Values& at, Lets& lets);

// The same with quotients and remainders where they are used: nothing may stand between loops that belong together.
void SetIterationInline(const std::vector<Range>& loops, ir::Expr number, Values& at);

// `value`, an expression over the statement's iterators, at `at`.
ir::Expr ValueAt(const Statement& statement, ir::Expr value, const Values& at);
// The indices of the element that the statement stores.
std::vector<ir::Expr> ElementAt(const Statement& statement, const Values& at);

// A loop from 0 to `count`, around body(variable). Without a loop if there is one iteration: body(0).
ir::Stmt LoopOver(ir::Context& context, std::string_view name, ir::Expr count, ir::ForKind kind,
                  const std::function<ir::Stmt(ir::Expr)>& body);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_ITERATIONS_H_
