// What holds everywhere in a function.
#ifndef COMPILER_PASSES_FACTS_H_
#define COMPILER_PASSES_FACTS_H_

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao {

// Tells `analyzer` that extents of buffer parameters are not negative, and the conditions in the
// function's `assert` attribute.
void AssumeParameters(const ir::Function& function, arith::Analyzer& analyzer);

}  // namespace polynao

#endif  // COMPILER_PASSES_FACTS_H_
