// The driver: walks the program, asks for a plan at each loop (partition_plan.h, symbolic_loops.h) and
// rewrites the loop by it (guard_elimination.h), then goes on inside of the pieces.
#include "compiler/passes/loop_partition.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/guard_elimination.h"
#include "compiler/passes/partition_plan.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/surroundings.h"
#include "compiler/passes/symbolic_loops.h"
#include "compiler/target/control.h"

namespace polynao {
namespace {

using arith::Interval;
using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

class Partitioner {
 public:
  Partitioner(const ir::Function& function, const LoopPartitionOptions& options,
              LoopPartitionStats* stats)
      : target_(options.target),
        context_(*function.context),
        around_(function),
        planner_(around_, options, stats) {}

  // PartitionBranchLoop of Algorithm 2.
  Stmt Visit(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return VisitFor(s);
      case StmtKind::kIf: {
        const Stmt then_case = VisitBranch(s, true), else_case = VisitBranch(s, false);
        return WithChildren(s, {then_case, else_case});
      }
      case StmtKind::kLet: {
        Surroundings::Scope scope(around_);
        around_.BindLet(s);
        return WithChildren(s, {Visit(s.body())});
      }
      case StmtKind::kPragma: {
        if (s.name() == pragma::kNoPartition) return s.body();
        planner_.EnterPragma();
        const Stmt body = Visit(s.body());
        planner_.LeavePragma();
        return WithChildren(s, {body});
      }
      case StmtKind::kAllocate:
      case StmtKind::kSeq:
      case StmtKind::kStore:
      case StmtKind::kEvaluate:
        break;
    }
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Visit(child));
    return WithChildren(s, children);
  }

  int64_t isl_questions() const { return planner_.isl_questions(); }

 private:
  // `s` over other children; nothing if nothing is left in it.
  Stmt WithChildren(Stmt s, absl::Span<const Stmt> children) {
    if (s.children() == children) return s;
    const bool empty =
        std::all_of(children.begin(), children.end(), [](Stmt child) { return child.IsEmpty(); });
    const bool total = std::none_of(s.operands().begin(), s.operands().end(),
                                    [&](Expr e) { return around_.analyzer().CanTrap(e); });
    return empty && total ? context_.Nop() : context_.Rebuild(s, s.operands(), children);
  }

  Stmt VisitBranch(Stmt s, bool truth) {
    const Stmt branch = truth ? s.then_case() : s.else_case();
    if (branch.IsEmpty()) return branch;
    Surroundings::Scope scope(around_);
    around_.Assume(around_.Expand(s.cond()), truth);
    return Visit(branch);
  }

  bool HasThreadLoop(Stmt s) {
    if (auto it = has_thread_loop_.find(s); it != has_thread_loop_.end()) return it->second;
    bool found = s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread;
    for (Stmt child : s.children()) found = HasThreadLoop(child) || found;
    has_thread_loop_.emplace(s, found);
    return found;
  }

  Stmt VisitFor(Stmt s) {
    if (around_.loops().empty()) planner_.EnterNest();
    if (s.for_kind() == ForKind::kThread) return VisitThreadLoop(s);
    const std::optional<Interval> range = around_.ConstantRange(s);
    if (range && !HasThreadLoop(s.body())) {
      const PiecePlan plan = planner_.Plan(s, s.body(), *range);
      planner_.Record(s.var(), *range, plan);
      return SplitLoop(s, plan);
    }
    if (!range && planner_.HasGuard(s.body()) && !HasThreadLoop(s.body())) {
      if (const std::optional<Stmt> split = SplitSymbolicLoop(s)) return *split;
    }
    Surroundings::Scope scope(around_);
    around_.EnterLoop(s, range);
    return WithChildren(s, {Visit(s.body())});
  }

  Stmt SplitLoop(Stmt s, const PiecePlan& plan) {
    std::vector<Stmt> loops;
    for (const Piece& piece : plan.pieces) {
      const Stmt body = EliminateGuards(s.body(), piece.truths, plan.found, around_.analyzer());
      if (body.IsEmpty() && !s.body().IsEmpty()) continue;
      Stmt loop =
          plan.pieces.size() == 1
              ? context_.Rebuild(s, s.operands(), {body})
              : context_.For(s.var(), context_.Int(s.var().type(), piece.range.first),
                             context_.Int(s.var().type(), piece.range.last - piece.range.first + 1),
                             body, s.for_kind(), s.name());
      // The first loop keeps the bindings.
      if (!loops.empty()) loop = ir::CloneWithFreshBindings(loop);
      Surroundings::Scope scope(around_);
      around_.EnterLoop(loop, piece.range);
      const Stmt whole = WithChildren(loop, {Visit(loop.body())});
      if (!whole.IsEmpty()) loops.push_back(whole);
    }
    return context_.Seq(loops);
  }

  // Nothing if there is no plan.
  std::optional<Stmt> SplitSymbolicLoop(Stmt s) {
    Surroundings::Scope bounds_scope(around_);
    const auto pieces = PlanSymbolicLoop(s, planner_, around_);
    if (!pieces) return std::nullopt;
    std::vector<Stmt> loops;
    for (const SymbolicPiece& piece : *pieces) {
      Stmt loop = piece.is_whole ? context_.Rebuild(s, s.operands(), {piece.body})
                                 : context_.For(s.var(), piece.start, piece.extent, piece.body,
                                                s.for_kind(), s.name());
      if (!loops.empty()) loop = ir::CloneWithFreshBindings(loop);
      Surroundings::Scope scope(around_);
      around_.EnterLoop(loop, std::nullopt);
      for (Expr fact : piece.facts) {
        around_.Assume(ir::Substitute(fact, {{s.var(), loop.var()}}));
      }
      const Stmt whole = WithChildren(loop, {Visit(loop.body())});
      if (!whole.IsEmpty()) loops.push_back(whole);
    }
    return context_.Seq(loops);
  }

  // ---- thread loops ----

  Stmt VisitThreadLoop(Stmt s) {
    const std::optional<Interval> range = around_.ConstantRange(s);
    Surroundings::Scope scope(around_);
    around_.EnterLoop(s, range);
    if (range) threads_.push_back({s, *range});
    const Stmt body = Descend(s.body());
    if (range) threads_.pop_back();
    return WithChildren(s, {body});
  }

  // Goes through what all threads do alike, down to the loop nests inside.
  Stmt Descend(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        if (s.for_kind() == ForKind::kThread) return VisitThreadLoop(s);
        break;
      case StmtKind::kLet: {
        Surroundings::Scope scope(around_);
        around_.BindLet(s);
        return WithChildren(s, {Descend(s.body())});
      }
      case StmtKind::kIf: {
        std::vector<Stmt> branches;
        for (bool truth : {true, false}) {
          Surroundings::Scope scope(around_);
          around_.Assume(around_.Expand(s.cond()), truth);
          branches.push_back(Descend(truth ? s.then_case() : s.else_case()));
        }
        return WithChildren(s, branches);
      }
      case StmtKind::kAllocate:
      case StmtKind::kSeq: {
        std::vector<Stmt> children;
        for (Stmt child : s.children()) children.push_back(Descend(child));
        return WithChildren(s, children);
      }
      case StmtKind::kPragma:
        break;
      case StmtKind::kStore:
      case StmtKind::kEvaluate:
        return s;
    }
    if (HasThreadLoop(s)) {
      std::vector<std::pair<Stmt, Interval>> outside;
      std::swap(outside, threads_);  // serial loops stand between: their variables' threads differ
      const Stmt result = Visit(s);
      std::swap(outside, threads_);
      return result;
    }
    return SplitByThreads(s, 0);
  }

  bool HasWait(Stmt s) const {
    bool found = false;
    ir::ForEachStmt(s, [&](Stmt x) {
      found = found || (target_ != nullptr && IsWait(x, *target_));
      return !found;
    });
    return found;
  }

  // `s` for the threads of threads_[next] and further ones in their current ranges.
  Stmt SplitByThreads(Stmt s, size_t next) {
    if (next == threads_.size()) return Visit(s);
    const Stmt loop = threads_[next].first;
    const Interval range = threads_[next].second;
    if (HasWait(s)) return SplitByThreads(s, next + 1);
    const PiecePlan plan = planner_.Plan(loop, s, range);
    planner_.Record(loop.var(), range, plan);
    std::vector<Stmt> bodies;
    bool first = true;
    for (const Piece& piece : plan.pieces) {
      Stmt body = EliminateGuards(s, piece.truths, plan.found, around_.analyzer());
      if (!body.IsEmpty()) {
        if (!first) body = ir::CloneWithFreshBindings(body);
        first = false;
        Surroundings::Scope scope(around_);
        const arith::BoundedVar wide = around_.NarrowLoop(loop.var(), piece.range);
        body = SplitByThreads(body, next + 1);
        around_.RestoreLoop(wide);
      }
      bodies.push_back(body);
    }
    Stmt result = bodies.back();
    for (size_t i = bodies.size() - 1; i-- > 0;) {
      if (bodies[i].IsEmpty() && result.IsEmpty()) continue;
      const Expr border = context_.Int(loop.var().type(), plan.pieces[i + 1].range.first);
      result = bodies[i].IsEmpty() ? context_.If(border <= loop.var(), result)
                                   : context_.If(loop.var() < border, bodies[i], result);
    }
    return result;
  }

  const Target* const target_;
  ir::Context& context_;
  Surroundings around_;
  PartitionPlanner planner_;
  // Thread loops of constant range with nothing but lets, ifs and allocations in between.
  std::vector<std::pair<Stmt, Interval>> threads_;
  absl::flat_hash_map<Stmt, bool> has_thread_loop_;
};

// Whether a run with these options, or one that splits more, has split the function already.
bool IsPartitioned(const ir::Function& function, const LoopPartitionOptions& options) {
  const ir::Attribute* mark = function.FindAttribute(kPartitionedAttribute);
  return mark != nullptr && (mark->values.empty() || options.only_in_pragmas);
}

void MarkPartitioned(ir::Function& function, const LoopPartitionOptions& options) {
  std::erase_if(function.attributes,
                [](const ir::Attribute& a) { return a.key == kPartitionedAttribute; });
  ir::Attribute mark = {.key = std::string(kPartitionedAttribute), .values = {}};
  if (options.only_in_pragmas) mark.values.push_back(std::string("pragmas"));
  function.attributes.push_back(std::move(mark));
}

}  // namespace

std::string LoopPartitionStats::ToString() const {
  std::string text;
  for (const Loop& loop : loops) {
    for (const Guard& guard : loop.guards) {
      StrAppend(&text, loop.variable, " in ", loop.bounds, ": ", guard.condition, ": T ",
                guard.true_set, ", F ", guard.false_set, ", B ", guard.both_set,
                guard.taken ? "" : " (over the limit)", "; pieces");
      for (const std::string& piece : loop.piece_bounds) StrAppend(&text, " ", piece);
      StrAppend(&text, "\n");
    }
  }
  return text;
}

absl::StatusOr<bool> LoopPartition(ir::Function& function, const LoopPartitionOptions& options,
                                   LoopPartitionStats* stats) {
  if (IsPartitioned(function, options)) return false;
  Partitioner partitioner(function, options, stats);
  const Stmt body = partitioner.Visit(function.body);
  const bool changed = body != function.body;
  function.body = body;
  if (stats != nullptr) stats->isl_questions = partitioner.isl_questions();
  if (changed) MarkPartitioned(function, options);
  return changed;
}

namespace {

absl::StatusOr<bool> RunLoopPartition(ir::Function& function, const PassEnvironment& environment,
                                      LoopPartitionOptions options) {
  options.target = &environment.target;
  LoopPartitionStats stats;
  ASSIGN_OR_RETURN(bool changed,
                   LoopPartition(function, options, environment.stats ? &stats : nullptr));
  if (environment.stats != nullptr && !stats.loops.empty()) {
    std::string text = stats.ToString();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    environment.stats->push_back(text);
  }
  return changed;
}

}  // namespace

PassInfo LoopPartitionPass() {
  return WithOptions<LoopPartitionOptions>(
      {.name = "loop_partition",
       .doc = "splits loops so that guards on their variables become constant"},
      {IntOption("max_pieces", &LoopPartitionOptions::max_pieces, 1, 1000, "pieces of one loop"),
       IntOption("max_nest_pieces", &LoopPartitionOptions::max_nest_pieces, 0, 100000,
                 "pieces more than loops in one outermost nest"),
       BoolOption("only_in_pragmas", &LoopPartitionOptions::only_in_pragmas,
                  "split only for guards inside a pragma's body")},
      FixedDefaults, RunLoopPartition);
}

}  // namespace polynao
