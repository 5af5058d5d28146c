// LAYOUT and ALIGN of preprocess: weights in banks, output channels in groups of the instruction's
// lanes.
#ifndef COMPILER_PASSES_CHANNEL_LAYOUT_H_
#define COMPILER_PASSES_CHANNEL_LAYOUT_H_

#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/passes/preprocess_facts.h"
#include "compiler/passes/preprocess_plan.h"

namespace polynao {

// Plans, for each nest that reduces with weights, the split of its loop over output channels and
// the layout of the weights. Channels that are no multiple of the lanes are rounded up, in the
// result and in all marked elementwise nests connected with it by their innermost loop:
//   B: i32[8, 8, 100]  -->  B: i32[8, 8, 128]      for (c, 0, 100)  -->  for (c, 0, 128)
void PlanChannels(const PreprocessFacts& facts, PreprocessPlan& plan, arith::Analyzer& analyzer,
                  std::vector<PreprocessDecision>* decisions);

// Returns true if the innermost extent of `buffer` is 1, so that nests over its channels have no
// loop.
bool Has1Channel(ir::Buffer buffer);

}  // namespace polynao

#endif  // COMPILER_PASSES_CHANNEL_LAYOUT_H_
