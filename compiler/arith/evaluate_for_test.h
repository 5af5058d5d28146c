// The meaning of expressions, for tests that compare before with after at chosen values of the
// variables. Follows docs/ir.md.
#ifndef COMPILER_ARITH_EVALUATE_FOR_TEST_H_
#define COMPILER_ARITH_EVALUATE_FOR_TEST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

struct Outcome {
  enum Kind : uint8_t {
    kValue,
    kTrap,      // division by zero, index out of bounds
    kOverflow,  // an i32 or i64 result wrapped where it must not; anything may follow
  };
  Kind kind = kValue;
  int64_t value = 0;  // 0 unless kind is kValue
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

// One outcome for each point.
using Outcomes = std::vector<Outcome>;

// Evaluates integer expressions of one context at many points at once, each node once.
//
//   Evaluator evaluator(256);
//   evaluator.Bind(x, values);          // values[p] is the value of x at point p
//   evaluator.Of(x + 1, Mode::kData)[p]
//
// Loads read a fixed pseudo-random value for each buffer and index.
class Evaluator {
 public:
  explicit Evaluator(size_t points) : points_(points) {}
  size_t points() const { return points_; }
  void Bind(ir::Var var, const std::vector<int64_t>& values);
  const Outcomes& Of(ir::Expr e, Mode mode);
  // Forgets what it has evaluated, so that the next expression may bind its variables to other values. References
  // that Of has returned end here.
  void Forget() { done_.clear(); }

 private:
  Outcomes Compute(ir::Expr e, Mode mode);

  const size_t points_;
  absl::node_hash_map<ir::Expr, Outcomes> vars_;
  absl::node_hash_map<std::pair<ir::Expr, Mode>, Outcomes> done_;
};

using Values = std::map<uint32_t, int64_t>;  // by the variable's id

// The outcome of the integer expression `e` at one point.
Outcome Evaluate(ir::Expr e, const Values& values, Mode mode);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_EVALUATE_FOR_TEST_H_
