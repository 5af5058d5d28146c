// Builds the nests that a plan of preprocess asks for.
#ifndef COMPILER_PASSES_NEST_BUILDER_H_
#define COMPILER_PASSES_NEST_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/guard_removal.h"
#include "compiler/passes/guarded_nest.h"
#include "compiler/passes/preprocess_facts.h"
#include "compiler/passes/preprocess_plan.h"

namespace polynao {

// Accesses of laid out buffers: [lane, group * pitch + the rest], where `indices` are those of the
// program.
std::vector<ir::Expr> LaidOutIndices(const BufferPlan& buffer, absl::Span<const ir::Expr> indices,
                                     ir::Expr lane, ir::Expr group);

class NestBuilder {
 public:
  NestBuilder(const PreprocessFacts& facts, const PreprocessPlan& plan, GuardRemoval& guards,
              arith::Analyzer& analyzer, std::vector<PreprocessDecision>* decisions)
      : facts_(facts),
        plan_(plan),
        guards_(guards),
        analyzer_(analyzer),
        c_(analyzer.context()),
        decisions_(decisions) {}

  // Nest number `n` as planned; its pragma itself if nothing changes.
  ir::Stmt Build(size_t n);

  // pragma "fill" { all of `buffer` = `value` }, with the extents of its replacement.
  ir::Stmt FillAll(ir::Buffer buffer, ir::Expr value);

 private:
  class AccessRewriter;
  // A nest with what was decided about it.
  struct Task {
    const GuardedNest& nest;
    const NestPlan& plan;
    bool Stays(size_t g) const { return plan.guards[g] == GuardFate::kStays; }
  };
  ir::Stmt BuildComputing(const Task& task);
  ir::Stmt BuildCopy(const Task& task);
  bool KeepsConditions(const Task& task) const;
  bool IsUnchangedCopy(const Task& task, const BufferPlan* target) const;
  std::optional<std::string> FillPadding(const Task& task, ir::Stmt& fill);
  std::vector<ir::Stmt> Copies(const Task& task, const BufferPlan* target);
  ir::Expr RemainingGuards(const Task& task, const GuardedStore& store, AccessRewriter& rewriter);
  ir::Stmt Guarded(const Task& task, const GuardedStore& store, ir::Expr value,
                   AccessRewriter& rewriter);
  ir::Stmt Around(absl::Span<const GuardedLoop> loops, ir::Stmt body);
  ir::Stmt NewLoop(ir::Var var, int64_t extent, ir::Stmt body);

  const PreprocessFacts& facts_;
  const PreprocessPlan& plan_;
  GuardRemoval& guards_;
  arith::Analyzer& analyzer_;
  ir::Context& c_;
  std::vector<PreprocessDecision>* const decisions_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_NEST_BUILDER_H_
