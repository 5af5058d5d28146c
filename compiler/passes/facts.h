// What holds everywhere in a function.
#ifndef COMPILER_PASSES_FACTS_H_
#define COMPILER_PASSES_FACTS_H_

#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao {

// That extents of buffer parameters are not negative, and the conditions in the function's `assert`
// attribute.
std::vector<ir::Expr> ParameterFacts(const ir::Function& function);

// Tells `analyzer` these.
void AssumeParameters(const ir::Function& function, arith::Analyzer& analyzer);

}  // namespace polynao

#endif  // COMPILER_PASSES_FACTS_H_
