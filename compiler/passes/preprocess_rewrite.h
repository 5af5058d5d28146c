// Carries out the plan of preprocess.
#ifndef COMPILER_PASSES_PREPROCESS_REWRITE_H_
#define COMPILER_PASSES_PREPROCESS_REWRITE_H_

#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/guard_removal.h"
#include "compiler/passes/preprocess_facts.h"
#include "compiler/passes/preprocess_plan.h"

namespace polynao {

// `body` with the nests and buffers that the plan asks for.
ir::Stmt CarryOut(ir::Stmt body, const PreprocessFacts& facts, const PreprocessPlan& plan,
                  GuardRemoval& guards, arith::Analyzer& analyzer,
                  std::vector<PreprocessDecision>* decisions);

}  // namespace polynao

#endif  // COMPILER_PASSES_PREPROCESS_REWRITE_H_
