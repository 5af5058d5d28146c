// The meaning of single expressions, for tests that compare before with after at chosen values of
// the variables. Follows compiler/ir/ir.h.
#ifndef COMPILER_ARITH_EVALUATE_FOR_TEST_H_
#define COMPILER_ARITH_EVALUATE_FOR_TEST_H_

#include <cstdint>
#include <map>
#include <ostream>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

struct Outcome {
  enum Kind {
    kValue,
    kTrap,      // division by zero, index out of bounds
    kOverflow,  // an i32 or i64 result wrapped where it must not; anything may follow
  };
  Kind kind = kValue;
  int64_t value = 0;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

using Values = std::map<uint32_t, int64_t>;  // by the variable's id

// The value of the integer expression `e`. Loads read a fixed pseudo-random value for each buffer
// and index.
Outcome Evaluate(ir::Expr e, const Values& values, Mode mode);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_EVALUATE_FOR_TEST_H_
