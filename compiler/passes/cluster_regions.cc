#include "compiler/passes/cluster_regions.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/scalar_code.h"
#include "compiler/passes/turns.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

bool IsOfCluster(Stmt s) { return s.Is(StmtKind::kAllocate) && s.buffer()->scope == isa::kSmem; }

// One loop over cores.
class Regions {
 public:
  Regions(Stmt loop, const Target& target) : loop_(loop), c_(loop.context()), target_(target) {
    ir::ForEachStmt(loop.body(), [&](Stmt s) {
      if (IsOfCluster(s)) shared_.insert(s.buffer());
      return true;
    });
    Mark(loop.body());
  }

  absl::StatusOr<Stmt> Split() {
    const Stmt result = Walk(loop_.body());
    RETURN_IF_ERROR(status_);
    return result;
  }

 private:
  // What a statement is part of.
  enum class Part : uint8_t { kCluster, kFetch, kCore };

  // Whether an instruction writes memory of the cluster that is allocated in the loop, or reads it.
  bool Touches(Stmt call, bool writes) const {
    const std::vector<BufferOperand> operands = BufferOperands(call, target_);
    return std::any_of(operands.begin(), operands.end(), [&](const BufferOperand& operand) {
      return (writes ? operand.is_written : operand.is_read) && shared_.contains(operand.buffer);
    });
  }

  // Statements that allocate or fill memory of the cluster, and those around them.
  bool Mark(Stmt s) {
    bool is_for_cluster = IsOfCluster(s) || Touches(s, true);
    for (Stmt child : s.children()) is_for_cluster = Mark(child) || is_for_cluster;
    if (is_for_cluster) for_cluster_.insert(s);
    return is_for_cluster;
  }

  // What only copies out of memory of the cluster.
  bool OnlyFetches(Stmt s) const {
    bool fetches = false, other = false;
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kStore) || x.Is(StmtKind::kAllocate)) other = true;
      if (x.Is(StmtKind::kEvaluate)) (Touches(x, false) ? fetches : other) = true;
      return !other;
    });
    return fetches && !other;
  }

  Part PartOf(Stmt s) const {
    if (for_cluster_.contains(s)) return Part::kCluster;
    return OnlyFetches(s) ? Part::kFetch : Part::kCore;
  }

  Stmt Fail(Stmt s) {
    if (status_.ok()) {
      status_ =
          InvalidInput("cluster_regions: '", ir::PrintFirstLine(s),
                       "' is for all cores of a cluster, but depends on ", loop_.var().name());
    }
    return s;
  }
  bool DependsOnCore(Expr e) const {
    for (const ir::Var& var : varying_) {
      if (ir::UsesVar(e, var)) return true;
    }
    return ir::UsesVar(e, loop_.var());
  }

  // A loop over cores with this body.
  Stmt Cores(const std::vector<Stmt>& body) {
    Stmt all = c_.Seq(body);
    for (size_t i = lets_.size(); i-- > 0;) {
      if (ir::UsesVar(all, lets_[i].first)) all = c_.LetStmt(lets_[i].first, lets_[i].second, all);
    }
    return ir::CloneWithFreshBindings(
        c_.For(loop_.var(), loop_.min(), loop_.extent(), all, loop_.for_kind(), loop_.name()));
  }

  Stmt Walk(Stmt s) {
    if (s.Is(StmtKind::kAllocate)) {
      return c_.Rebuild(s, s.operands(), {Walk(s.body())});
    }
    if (s.Is(StmtKind::kSeq)) return WalkSequence(s);
    if (!for_cluster_.contains(s)) {
      // Allocations go outside, so that regions share them.
      if (s.Is(StmtKind::kPragma) && s.body().Is(StmtKind::kAllocate)) {
        return c_.Rebuild(s, s.operands(), {Walk(s.body())});
      }
      return Cores({s});
    }
    if (s.Is(StmtKind::kEvaluate)) {
      for (Expr e : s.value().operands()) {
        if (DependsOnCore(e)) return Fail(s);
      }
      return s;
    }
    if (s.Is(StmtKind::kLet) && DependsOnCore(s.value())) {
      varying_.push_back(s.var());
      lets_.emplace_back(s.var(), s.value());
      const Stmt body = Walk(s.body());
      lets_.pop_back();
      return body;
    }
    if (!s.Is(StmtKind::kPragma)) {
      for (Expr e : s.operands()) {
        if (DependsOnCore(e)) return Fail(s);
      }
    }
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(child.IsEmpty() ? child : Walk(child));
    return c_.Rebuild(s, s.operands(), children);
  }

  Stmt WalkSequence(Stmt s) {
    std::vector<Stmt> result, group;
    Part part = Part::kCluster;  // of the group
    const auto finish = [&] {
      if (!group.empty()) result.push_back(Cores(group));
      group.clear();
    };
    for (Stmt child : s.children()) {
      const bool allocates = child.Is(StmtKind::kAllocate) ||
                             (child.Is(StmtKind::kPragma) && child.body().Is(StmtKind::kAllocate));
      const Part next = PartOf(child);
      if (next != part || allocates) finish();
      part = next;
      if (next == Part::kCluster || allocates) {
        result.push_back(Walk(child));
      } else {
        group.push_back(child);
      }
    }
    finish();
    return c_.Seq(result);
  }

  const Stmt loop_;
  ir::Context& c_;
  const Target& target_;
  absl::flat_hash_set<Buffer> shared_;
  absl::flat_hash_set<Stmt> for_cluster_;
  std::vector<std::pair<ir::Var, Expr>> lets_;
  std::vector<ir::Var> varying_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<bool> ClusterRegions(ir::Function& function, const Target& target) {
  if (target.instructions == nullptr) {
    return InvalidInput("cluster_regions: target '", target.name, "' has no instructions");
  }
  absl::Status status;
  const std::function<Stmt(Stmt)> visit = [&](Stmt s) -> Stmt {
    if (!IsCoreLoop(s)) return ir::MapChildren(s, visit);
    if (!ir::AnyStmt(s, IsOfCluster)) return s;
    absl::StatusOr<Stmt> regions = Regions(s, target).Split();
    status.Update(regions.status());
    return regions.ok() ? *regions : s;
  };
  const Stmt body = ArrangeTurns(visit(DefineWhatScalarCodeReads(function.body, target)), target);
  RETURN_IF_ERROR(status);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo ClusterRegionsPass() {
  return {.name = "cluster_regions",
          .doc = "sets what fills a cluster's memory between loops over its cores",
          .run = [](ir::Function& function, const PassEnvironment& environment,
                    const OptionValues&) { return ClusterRegions(function, environment.target); }};
}

}  // namespace polynao
