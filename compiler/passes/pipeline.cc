#include "compiler/passes/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/late_loads.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/pipeline_body.h"
#include "compiler/passes/pipeline_emit.h"
#include "compiler/passes/pipeline_plan.h"
#include "compiler/target/control.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using pipelining::Index;
using pipelining::kDefaultCopies;
using pipelining::kMostCopies;
using pipelining::kStageNames;
using pipelining::kStages;
using pipelining::PipelinePlan;
using pipelining::Stage;
using pipelining::Unit;
using pipelining::Windows;

class Pipeliner {
 public:
  Pipeliner(const ir::Function& function, const Target& target, const ControlInstructions& control,
            std::vector<PipelineDecision>* decisions)
      : target_(target), control_(control), decisions_(decisions) {
    ir::ForEachStmt(function.body, [&](Stmt s) {
      if (!s.Is(StmtKind::kEvaluate)) return true;
      const isa::Instruction* instruction = target.instructions->Find(s.value().name());
      if (instruction != nullptr && instruction->queue != isa::Queue::kNone) {
        busy_.insert(instruction->queue);
      }
      return true;
    });
  }

  Stmt Walk(Stmt s) {
    if (s.Is(StmtKind::kPragma) && s.name() == pragma::kSlidingWindow &&
        s.body().Is(StmtKind::kAllocate)) {
      windows_[s.body().buffer()] = s.operands()[0].int_value();
    }
    // Allocations around a loop take their share of the memory.
    const bool allocates = s.Is(StmtKind::kAllocate) && IsOnChip(s.buffer()->scope);
    if (allocates) around_[s.buffer()->scope] += AlignedBytes(s.buffer());
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child));
    if (allocates) around_[s.buffer()->scope] -= AlignedBytes(s.buffer());
    s = s.context().Rebuild(s, s.operands(), children);
    if (!s.Is(StmtKind::kFor) || !HasDoubleBuffer(s.body())) return s;
    PipelineDecision decision;
    const std::optional<Stmt> pipelined = Pipelined(s, decision);
    if (decisions_ != nullptr) {
      decision.loop = ir::PrintFirstLine(s);
      decision.pipelined = pipelined.has_value();
      decisions_->push_back(std::move(decision));
    }
    return pipelined.value_or(s);
  }

 private:
  // Whether an allocation of the body, not of a loop inside, asks for copies.
  static bool HasDoubleBuffer(Stmt body) {
    bool found = false;
    ir::ForEachStmt(body, [&](Stmt s) {
      found = found || (s.Is(StmtKind::kPragma) && s.name() == pragma::kDoubleBuffer);
      return !found && !s.Is(StmtKind::kFor);
    });
    return found;
  }

  static int64_t AlignedBytes(Buffer buffer) {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      if (extent.Is(ExprKind::kIntImm)) bytes *= extent.int_value();
    }
    return RoundUp(bytes, kOnChipAlignment);
  }

  // Whether all buffers fit side by side, or those of the computation alone one after the other: then the plan says so.
  bool Fits(const pipelining::Body& body, PipelinePlan& plan, std::string& reason) const {
    if (FitsSideBySide(plan, 0, reason)) return true;
    int64_t most = 0;
    plan.inside = OfComputation(body, plan, most);
    std::string other;
    if (!plan.inside.empty() && FitsSideBySide(plan, most, other)) return true;
    plan.inside.clear();
    return false;
  }

  // Buffers that the computation alone uses, and the bytes that it needs at a time.
  static absl::flat_hash_set<Buffer> OfComputation(const pipelining::Body& body,
                                                   const PipelinePlan& plan, int64_t& most) {
    absl::flat_hash_set<Buffer> inside;
    std::vector<int64_t> changes(body.units.size() + 1);
    for (Buffer buffer : body.buffers) {
      if (plan.copies.at(buffer) != 1 || buffer->scope != isa::kNmem) continue;
      size_t first = body.units.size(), last = 0;
      bool is_own = true;
      for (size_t u = 0; u < body.units.size(); ++u) {
        const Unit& unit = body.units[u];
        const auto has = [&](const std::vector<Buffer>& of) {
          return std::find(of.begin(), of.end(), buffer) != of.end();
        };
        if (!has(unit.reads) && !has(unit.writes)) continue;
        is_own = is_own && unit.stage == Stage::kCompute && !unit.is_nest;
        first = std::min(first, u);
        last = u;
        // It may be needed through all of a loop that uses it.
        for (size_t v = 0; unit.inner_loop != 0 && v < body.units.size(); ++v) {
          if (body.units[v].inner_loop != unit.inner_loop) continue;
          first = std::min(first, v);
          last = std::max(last, v);
        }
      }
      if (!is_own || first > last) continue;
      inside.insert(buffer);
      changes[first] += AlignedBytes(buffer);
      changes[last + 1] -= AlignedBytes(buffer);
    }
    int64_t live = 0;
    for (const int64_t change : changes) most = std::max(most, live += change);
    return inside;
  }

  // `inside`: bytes for the plan's buffers of that name, which the pass `storage` finds with a few gaps.
  bool FitsSideBySide(const PipelinePlan& plan, int64_t inside, std::string& reason) const {
    constexpr int64_t kGaps = 10;  // percent
    std::map<std::string, int64_t> needed = around_;
    for (const auto& [buffer, copies] : plan.copies) {
      if (!plan.inside.contains(buffer)) needed[buffer->scope] += copies * AlignedBytes(buffer);
    }
    if (inside > 0) needed[std::string(isa::kNmem)] += inside + inside * kGaps / 100;
    for (const auto& [scope, bytes] : needed) {
      if (bytes <= target_.MemoryBytes(scope)) continue;
      reason = StrCat(plan.period == kMostCopies ? "three" : "two", " copies take ", bytes,
                      " bytes of ", scope, ", which has ", target_.MemoryBytes(scope));
      return false;
    }
    return true;
  }

  std::optional<Stmt> Pipelined(Stmt loop, PipelineDecision& decision) const {
    std::string& reason = decision.reason;
    const bool is_constant = loop.extent().Is(ExprKind::kIntImm);
    if (loop.for_kind() != ir::ForKind::kSerial || (is_constant && loop.extent().int_value() < 2)) {
      reason = StrCat("it has ", ir::Print(loop.extent()), " iterations");
      return std::nullopt;
    }
    std::optional<pipelining::Body> body = pipelining::ReadBody(loop.body(), target_, reason);
    if (!body) return std::nullopt;
    if (body->of_cluster && !is_constant) {
      reason = StrCat("it has ", ir::Print(loop.extent()), " iterations, and loops over cores");
      return std::nullopt;
    }
    if (std::all_of(body->units.begin(), body->units.end(),
                    [&](const Unit& unit) { return unit.queue == body->units[0].queue; })) {
      reason = "all that it runs is in one queue";
      return std::nullopt;
    }
    // Where three copies do not fit, two may.
    std::optional<PipelinePlan> plan;
    for (int copies = body->copies; copies >= kDefaultCopies && !plan; --copies) {
      plan = MakePlan(*body, windows_, copies, reason);
      if (plan && !Fits(*body, *plan, reason)) plan = std::nullopt;
    }
    // Where what is fetched does not fit twice, fetching is a part of the computation.
    if (!plan && pipelining::ComputeWhatIsFetched(*body)) {
      plan = MakePlan(*body, windows_, kDefaultCopies, reason);
      if (plan && !Fits(*body, *plan, reason)) plan = std::nullopt;
    }
    if (!plan) return std::nullopt;
    reason.clear();
    decision.form = Form(*body, *plan);
    return pipelining::Emit(loop, *body, *plan, busy_, control_);
  }

  static std::string Form(const pipelining::Body& body, const PipelinePlan& plan) {
    std::string form = "stages";
    for (Stage stage : kStages) {
      if (plan.has[Index(stage)]) StrAppend(&form, " ", kStageNames[Index(stage)], ",");
    }
    form.back() = ';';
    StrAppend(&form, " copies");
    for (Buffer buffer : body.buffers) {
      StrAppend(&form, " ", buffer->name, " ", plan.copies.at(buffer), ",");
    }
    form.pop_back();
    return form;
  }

  const Target& target_;
  const ControlInstructions& control_;
  std::vector<PipelineDecision>* const decisions_;
  Windows windows_;
  std::set<isa::Queue> busy_;              // queues that the function uses
  std::map<std::string, int64_t> around_;  // bytes of allocations outside, by memory
};

}  // namespace

absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("pipeline: target '", target.name, "' has no instruction queues");
  }
  ASSIGN_OR_RETURN(const ControlInstructions control, ControlInstructions::Find(target));
  Stmt body = Pipeliner(function, target, control, decisions).Walk(function.body);
  if (ir::Aliases(function).group_count() == 0) body = LoadLate(body, target);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

namespace {

absl::StatusOr<bool> RunPipeline(ir::Function& function, const PassEnvironment& environment,
                                 const OptionValues&) {
  std::vector<PipelineDecision> decisions;
  ASSIGN_OR_RETURN(bool changed, Pipeline(function, environment.target,
                                          environment.stats ? &decisions : nullptr));
  for (const PipelineDecision& decision : decisions) {
    environment.stats->push_back(StrCat(decision.loop, "  -->  ",
                                        decision.pipelined
                                            ? StrCat("pipelined: ", decision.form)
                                            : StrCat("not pipelined: ", decision.reason)));
  }
  return changed;
}

}  // namespace

PassInfo PipelinePass() {
  return {.name = "pipeline",
          .doc = "overlaps loads, computation and stores of loops with double buffers",
          .run = RunPipeline};
}

}  // namespace polynao
