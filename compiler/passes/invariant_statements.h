// Statements of a loop's body that store the same in every iteration: the part of licm that moves
// statements.
#ifndef COMPILER_PASSES_INVARIANT_STATEMENTS_H_
#define COMPILER_PASSES_INVARIANT_STATEMENTS_H_

#include <functional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/passes/effects.h"

namespace polynao {

struct InvariantStatements {
  // In the order of the program.
  std::vector<ir::Stmt> statements;
  // The loop without them; empty if nothing else is in its body.
  ir::Stmt loop;
};

// The statements that may run once in front of `loop`, which must run at least once. Such a statement
// uses nothing that varies in the loop (`varies` says which do), calls no instruction, and does not
// read what it writes. Nothing else in the body writes what it reads or writes, and nothing in front
// of it reads what it writes.
InvariantStatements FindInvariantStatements(ir::Stmt loop, Effects& effects,
                                            const std::function<bool(ir::Stmt)>& varies);

}  // namespace polynao

#endif  // COMPILER_PASSES_INVARIANT_STATEMENTS_H_
