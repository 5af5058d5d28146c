// Which loops may run in any order, for the pragmas of OpenMP.
#ifndef COMPILER_CODEGEN_C_INDEPENDENT_ITERATIONS_H_
#define COMPILER_CODEGEN_C_INDEPENDENT_ITERATIONS_H_

#include "compiler/ir/aliases.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// Returns true if no iteration of a loop stores an element that another one loads or stores, and none calls a function.
// This holds if every buffer from outside the loop that is stored to overlaps no other accessed buffer, and has a
// dimension in which all accesses use the same index, different in each iteration.
bool IterationsAreIndependent(ir::Stmt loop, const ir::Aliases& aliases);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_INDEPENDENT_ITERATIONS_H_
