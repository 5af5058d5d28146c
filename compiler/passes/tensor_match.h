// Matches a nest with the patterns of instructions: values first, then loops, then conditions.
#ifndef COMPILER_PASSES_TENSOR_MATCH_H_
#define COMPILER_PASSES_TENSOR_MATCH_H_

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/tensor_attempt.h"
#include "compiler/passes/tensor_conditions.h"
#include "compiler/passes/tensor_pattern.h"
#include "compiler/target/target.h"
#include "isa/instruction_set.h"

namespace polynao {

class TensorMatcher {
 public:
  // `analyzer` and `surroundings` are those of the nest at hand whenever Best is called.
  TensorMatcher(const Target& target, std::shared_ptr<ir::Context> context,
                arith::Analyzer& analyzer, const NestSurroundings& surroundings);

  // The best match of `nest` with an instruction that a pragma of key `key` allows (empty: none
  // stands around). If `explains`, closest() then describes the pattern that came closest.
  std::optional<TensorMatch> Best(const TensorNest& nest, std::string_view key);

  // Forgets the closest pattern; `wanted`: whether to look for one.
  void Begin(bool wanted) { closest_ = {.wanted = wanted, .difference = {}}; }
  const ClosestPattern::Difference& closest() const { return closest_.difference; }

 private:
  // An instruction that a compiler may choose, with what its meaning stores: enough to reject most
  // instructions before anything is copied.
  struct Candidate {
    const isa::Instruction* instruction;
    ir::Buffer store_buffer;  // of the meaning, in its own context
    ir::ExprKind value_kind;  // kVar matches any value
    bool initialises;
    // Made when the first nest needs it; absent if the meaning is no pattern.
    bool made = false;
    std::optional<TensorPattern> pattern = {};
  };
  static std::vector<Candidate> MakeCandidates(const isa::InstructionSet& set);
  const TensorPattern* PatternFor(Candidate& candidate, const TensorNest& nest);
  std::optional<TensorMatch> TryPattern(const TensorNest& nest, const TensorPattern& pattern);
  // With the loops in the order of `nest`, the first `around` of them around the instruction.
  std::optional<TensorMatch> TryOrder(const TensorNest& nest, const TensorPattern& pattern,
                                      size_t around);
  bool MatchPattern(TensorAttempt& a);
  bool MatchBuffer(const TensorAttempt& a, TensorBinding& binding, ir::Buffer pattern,
                   const NestAccess& access, int progress);
  bool MatchValues(TensorAttempt& a, TensorBinding binding,
                   std::vector<std::pair<ir::Expr, ir::Expr>> pairs, int progress);
  bool MatchScalar(const TensorAttempt& a, TensorBinding& binding, ir::Var pattern, ir::Expr value,
                   int progress);
  bool Differs(const TensorAttempt& a, int progress, ir::Expr pattern, ir::Expr value,
               std::string_view what, std::string_view expected);
  bool AssignLoops(TensorAttempt& a, int j, size_t end);
  bool LoopFits(TensorAttempt& a, int j);

  const std::shared_ptr<ir::Context> context_;
  arith::Analyzer& analyzer_;
  std::vector<Candidate> candidates_;
  ClosestPattern closest_;
  TensorConditions conditions_;
  bool structure_differs_ = false;
  bool rewrites_ = false;  // values may get other operators that mean the same
};

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSOR_MATCH_H_
