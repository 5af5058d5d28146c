#include "compiler/passes/preprocess.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/passes/channel_layout.h"
#include "compiler/passes/guard_removal.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/preprocess_facts.h"
#include "compiler/passes/preprocess_rewrite.h"
#include "compiler/passes/thread_memory.h"

namespace polynao {

absl::StatusOr<bool> Preprocess(ir::Function& function, const Target& target,
                                std::vector<PreprocessDecision>* decisions) {
  if (target.instructions == nullptr) {
    return InvalidInput("preprocess: target '", target.name, "' has no tensor instructions");
  }
  const bool placed = PlaceThreadMemory(function, *target.instructions, decisions);
  arith::Analyzer analyzer(*function.context);
  const std::optional<PreprocessFacts> facts = CollectPreprocessFacts(function, target, analyzer);
  if (!facts) return placed;
  for (const auto& [nest, why] : facts->rejected) {
    ReportDecision(decisions, nest, StrCat("kept: ", why));
  }
  PreprocessPlan plan = MakePlan(*facts);
  PlanChannels(*facts, plan, analyzer, decisions);
  GuardRemoval guards(*facts, analyzer);
  guards.Run(plan, decisions);
  MakeBuffers(*facts, plan, *function.context);
  const ir::Stmt body = CarryOut(function.body, *facts, plan, guards, analyzer, decisions);
  const bool changed = placed || body != function.body;
  function.body = body;
  return changed;
}

namespace {

absl::StatusOr<bool> RunPreprocess(ir::Function& function, const PassEnvironment& environment,
                                   const OptionValues&) {
  std::vector<PreprocessDecision> decisions;
  ASSIGN_OR_RETURN(bool changed, Preprocess(function, environment.target,
                                            environment.stats ? &decisions : nullptr));
  for (const PreprocessDecision& decision : decisions) {
    environment.stats->push_back(StrCat(decision.place, "  -->  ", decision.what));
  }
  return changed;
}

}  // namespace

PassInfo PreprocessPass() {
  return {.name = "preprocess",
          .doc = "gives nests of convolution, matmul and padding the form of instructions",
          .run = RunPreprocess};
}

}  // namespace polynao
