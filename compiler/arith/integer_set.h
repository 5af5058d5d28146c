// Exact questions about affine conditions over bounded integer variables, answered by isl.
//
// Affine here means: + and -, * by constants, floor / and % by positive constants, min, max,
// select, comparisons, && || !, over variables. What else stands in a condition (a load, a product
// of variables) counts as a variable of its own that may have any value of its type, and a
// condition that is no integer comparison as one that may be true or false: answers stay right,
// they only say less. i32 and i64 arithmetic is mathematical, as in conditions of the program.
#ifndef COMPILER_ARITH_INTEGER_SET_H_
#define COMPILER_ARITH_INTEGER_SET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// All integers from `first` to `last`, both included; first <= last.
struct Interval {
  int64_t first;
  int64_t last;
  bool operator==(const Interval&) const = default;
};

// Sorted, disjoint, and not adjacent.
using Intervals = std::vector<Interval>;

Intervals Union(const Intervals& a, const Intervals& b);
Intervals Intersect(const Intervals& a, const Intervals& b);
// Returns the part of `range` that is outside of `intervals`.
Intervals Complement(const Intervals& intervals, Interval range);
bool Contains(const Intervals& intervals, int64_t value);

// "[0, 2] [4, 7]"; "none" if empty.
std::string ToString(const Intervals& intervals);

// min <= var < min + extent. The bounds may use other variables: for a triangular loop, the outer
// one.
struct BoundedVar {
  ir::Var var;
  ir::Expr min;
  ir::Expr extent;
};

struct IntegerSetOptions {
  // isl's count of its own steps for one question, after which the answer is "unknown".
  unsigned long max_operations = 200000;
  // A set of values in more intervals than this is unknown (x % 2 == 0 over a long loop).
  int max_intervals = 16;
};

// Owns an isl context; answers are computed afresh each time.
class IntegerSets {
 public:
  explicit IntegerSets(const IntegerSetOptions& options = {});
  ~IntegerSets();
  IntegerSets(const IntegerSets&) = delete;
  IntegerSets& operator=(const IntegerSets&) = delete;

  enum class Truth { kAlways, kNever, kSometimes, kUnknown };
  // Says whether `condition` holds for all, for no or for some values of the variables within
  // `bounds`. Variables without bounds have any value of their type. kAlways if the bounds admit no
  // values.
  Truth Decide(ir::Expr condition, absl::Span<const BoundedVar> bounds);

  struct Split {
    Intervals always;  // the condition holds whatever the other variables are
    Intervals never;   // it holds for none of their values
  };
  // Splits the values of `var` in `range`, where all of `facts` hold. Values for which the facts or
  // the bounds of a used variable admit nothing are in both.
  // Nothing if isl gave up. `var` has no entry in `bounds`; entries of unused variables do no harm.
  std::optional<Split> SplitByTruth(ir::Expr condition, ir::Var var, Interval range,
                                    absl::Span<const BoundedVar> bounds,
                                    absl::Span<const ir::Expr> facts = {});

  // How many questions isl has been asked.
  int64_t questions() const { return questions_; }

 private:
  class Impl;
  const IntegerSetOptions options_;
  std::unique_ptr<Impl> impl_;
  int64_t questions_ = 0;
};

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_INTEGER_SET_H_
