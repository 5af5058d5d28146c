// Collects the facts that hold everywhere in a function.
#ifndef COMPILER_PASSES_FACTS_H_
#define COMPILER_PASSES_FACTS_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"

namespace polynao {

// The conditions in the function's `assert` attribute. That a buffer parameter has an extent `n` says
// nothing of n: a negative extent counts as 0 (docs/ir.md).
std::vector<ir::Expr> ParameterFacts(const ir::Function& function);

// Tells `analyzer` these.
void AssumeParameters(const ir::Function& function, arith::Analyzer& analyzer);

// Returns true if the element at `indices` is certain to exist where the facts hold.
bool IsInside(ir::Buffer buffer, absl::Span<const ir::Expr> indices, arith::Analyzer& facts);

}  // namespace polynao

#endif  // COMPILER_PASSES_FACTS_H_
