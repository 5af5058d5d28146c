// COM of preprocess: which guards of computing nests go.
#ifndef COMPILER_PASSES_GUARD_REMOVAL_H_
#define COMPILER_PASSES_GUARD_REMOVAL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/guarded_nest.h"
#include "compiler/passes/preprocess_facts.h"
#include "compiler/passes/preprocess_plan.h"

namespace polynao {

// A guard as a condition on the elements of a buffer: `form >= 0`, with the nest's loop variables
// replaced by variables that stand for the buffer's indices.
using ElementGuard = arith::LinearForm;

// Decides which guards go, by the argument in preprocess.h.
class GuardRemoval {
 public:
  GuardRemoval(const PreprocessFacts& facts, arith::Analyzer& analyzer)
      : facts_(facts), analyzer_(analyzer) {}

  // Plans the guards of all computing nests, after PlanChannels.
  void Run(PreprocessPlan& plan, std::vector<PreprocessDecision>* decisions);

  // Returns true if every execution of a padding nest stores to the same elements, and no other
  // statement stores to its buffer.
  bool IsOnlyStore(const GuardedNest& nest);

 private:
  // Describes a buffer's elements; it is made when it is first needed.
  struct Elements {
    std::vector<ir::Var> dimensions;  // stand for the indices in ElementGuards
    // By writer: the conditions on the elements that it stores to.
    std::vector<std::vector<ElementGuard>> writer_guards;
  };
  std::string TryGuards(const GuardedNest& nest, NestPlan& nest_plan, PreprocessPlan& plan);
  std::string CheckNeeds(const GuardedNest& nest, const NestPlan& nest_plan,
                         PreprocessPlan& plan) const;
  std::optional<std::vector<ElementGuard>> OnElements(const GuardedNest& nest, const Guard& guard);
  std::vector<ElementGuard> ElementGuards(const GuardedNest& nest);

  const PreprocessFacts& facts_;
  arith::Analyzer& analyzer_;
  absl::flat_hash_map<ir::Buffer, Elements> elements_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_GUARD_REMOVAL_H_
