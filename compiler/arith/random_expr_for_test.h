// Random integer expressions and conditions, for tests of the analyzer.
#ifndef COMPILER_ARITH_RANDOM_EXPR_FOR_TEST_H_
#define COMPILER_ARITH_RANDOM_EXPR_FOR_TEST_H_

#include <cstdint>
#include <random>
#include <vector>

#include "compiler/ir/ir.h"

namespace polynao::arith {

// Makes trees over variables, constants with the edges of the type, loads, lets, selects, casts,
// and every operator on integers. Equal seeds give equal trees.
class RandomExpr {
 public:
  // Trees are of `types[0]`; where there are more types, casts lead to sub-trees of the others.
  // Makes two variables of each type, and a buffer of 12 elements of it.
  // With `may_trap`, indices may be out of bounds and divisors zero.
  RandomExpr(ir::Context& context, uint64_t seed, std::vector<ir::Type> types,
             bool may_trap = true);

  ir::Expr Int(int depth) { return Int(types_[0], depth); }
  ir::Expr Bool(int depth);
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  // Variables that are bound nowhere.
  const std::vector<ir::Var>& free_vars() const { return free_vars_; }

 private:
  ir::Expr Int(ir::Type type, int depth);
  ir::Expr Constant(ir::Type type);
  ir::Expr Leaf(ir::Type type);
  ir::Expr Divisor(ir::Type type, int depth);
  ir::Type AnyType() { return types_[static_cast<size_t>(Pick(static_cast<int>(types_.size())))]; }

  ir::Context& context_;
  std::mt19937_64 random_;
  const std::vector<ir::Type> types_;
  const bool may_trap_;
  std::vector<ir::Var> free_vars_;
  std::vector<ir::Var> vars_;        // also those of lets around
  std::vector<ir::Buffer> buffers_;  // by type, as in types_
};

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_RANDOM_EXPR_FOR_TEST_H_
