// Asks whether sums in indices and bounds, of any integer type, are those of mathematical integers. i32 and i64 stop
// the program where they are not, and other types wrap: who makes new bounds of old ones asks here.
#ifndef COMPILER_ARITH_WRAPS_H_
#define COMPILER_ARITH_WRAPS_H_

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// Returns true if arithmetic stops the program where it leaves `type` in an index: i32 and i64. In proofs about such
// places it is mathematical.
inline bool IsMathematical(ir::Type type) {
  return type == ir::Type::kI32 || type == ir::Type::kI64;
}

// Returns true if the index or bound `e`, with what is known where `analyzer` stands, may not have the value of its
// sums as mathematical integers: n - 3 for n of u32, n + 1 for n of i32. What is below an i32 or i64 and of another
// type, such as the sum in cast(i32, a + b) for a and b of u8, is a value like a variable's.
bool CanWrap(Analyzer& analyzer, ir::Expr e);

// Returns true if all values of a loop surely fit its type, as far as ranges tell; otherwise the loop may stop the
// program.
bool HasValuesInType(Analyzer& analyzer, ir::Expr min, ir::Expr extent);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_WRAPS_H_
