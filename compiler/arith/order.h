// Which of two indices is smaller, where loops begin at a max or end at a min of several bounds. Analyzer itself takes
// such a bound as one value: more facts for each loop would cost all of its users time.
#ifndef COMPILER_ARITH_ORDER_H_
#define COMPILER_ARITH_ORDER_H_

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// Analyzer::BindLoop, and each bound alone: of  for (i, max(a, b), min(c, d) - max(a, b))
// a <= i, b <= i, i < c and i < d.
void BindLoopWithParts(Analyzer& analyzer, ir::Stmt loop);

// Returns true if a < b always, for integers of one type; also if a < c, where b is a sum with
// max(c, d).
bool IsLess(Analyzer& analyzer, ir::Expr a, ir::Expr b);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_ORDER_H_
