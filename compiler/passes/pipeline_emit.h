// Writes a loop in the form that a pipeline plan asks for.
#ifndef COMPILER_PASSES_PIPELINE_EMIT_H_
#define COMPILER_PASSES_PIPELINE_EMIT_H_

#include <set>

#include "compiler/ir/ir.h"
#include "compiler/passes/pipeline_body.h"
#include "compiler/passes/pipeline_plan.h"
#include "compiler/target/control.h"

namespace polynao::pipelining {

// The steps of the pipelined loop, with the allocations of all copies around them. `busy`: the queues
// that the whole function uses.
ir::Stmt Emit(ir::Stmt loop, const Body& body, const PipelinePlan& plan,
              const std::set<isa::Queue>& busy, const ControlInstructions& control);

}  // namespace polynao::pipelining

#endif  // COMPILER_PASSES_PIPELINE_EMIT_H_
