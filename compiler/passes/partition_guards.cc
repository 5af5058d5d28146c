#include "compiler/passes/partition_guards.h"

#include <algorithm>

#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/loop_partition.h"

namespace polynao {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

bool IsLogic(Expr e) { return e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr) || e.Is(ExprKind::kNot); }

bool IsMinMax(Expr e) {
  return (e.Is(ExprKind::kMin) || e.Is(ExprKind::kMax)) && ir::IsInt(e.type());
}

int GuardPlaces::Add(int place, Stmt s, bool branch, std::vector<Expr> facts) {
  int inside = place;
  if (!facts.empty()) {
    inside = static_cast<int>(places_.size());
    places_.push_back({place, std::move(facts)});
  }
  branches_[{place, s, branch}] = inside;
  return inside;
}

int GuardPlaces::Find(int place, Stmt s, bool branch) const {
  const auto it = branches_.find({place, s, branch});
  return it == branches_.end() ? kUnknown : it->second;
}

std::vector<Expr> GuardPlaces::FactsAt(int place) const {
  std::vector<Expr> facts;
  for (; place > 0; place = places_[place].outside) {
    facts.insert(facts.end(), places_[place].facts.begin(), places_[place].facts.end());
  }
  return facts;
}

bool GuardsBelow::DependsOnVar(Expr e) const {
  return ir::UsesVar(e, var) || std::any_of(triangular.begin(), triangular.end(),
                                            [&](Var x) { return ir::UsesVar(e, x); });
}

// Whether a select stands in `e`, or a min or max.
bool GuardFinder::MayGuard(Expr e) {
  if (e.operands().empty()) return false;
  if (auto it = may_guard_.find(e); it != may_guard_.end()) return it->second;
  bool found = e.Is(ExprKind::kSelect) || IsMinMax(e);
  for (Expr operand : e.operands()) found = MayGuard(operand) || found;
  may_guard_.emplace(e, found);
  return found;
}

bool GuardFinder::HasGuard(Stmt s) {
  if (auto it = has_guard_.find(s); it != has_guard_.end()) return it->second;
  if (s.Is(StmtKind::kPragma) && s.name() == pragma::kNoPartition) return false;
  bool found = s.Is(StmtKind::kIf);
  for (Expr e : s.operands()) found = found || MayGuard(e);
  for (Stmt child : s.children()) found = found || HasGuard(child);
  has_guard_.emplace(s, found);
  return found;
}

GuardsBelow GuardFinder::Find(Stmt s, Var var, bool eligible) {
  GuardsBelow found;
  found.var = var;
  Collect(s, 0, eligible, found);
  return found;
}

void GuardFinder::AddGuard(Expr node, Expr condition, int place, GuardsBelow& found) {
  if (!found.DependsOnVar(condition) || !found.seen.insert({place, node}).second) return;
  found.guards.push_back({place, node, condition, true, {}, {}});
}

void GuardFinder::AddGuardsIn(Expr e, bool in_bound, int place, GuardsBelow& found) {
  if (!MayGuard(e)) return;
  ir::ForEachExpr(e, [&](Expr x) {
    if (x.Is(ExprKind::kSelect)) {
      AddGuard(x.operand(0), around_.Expand(x.operand(0)), place, found);
    } else if (in_bound && IsMinMax(x)) {
      AddGuard(x, around_.Expand(x.operand(0) <= x.operand(1)), place, found);
    }
  });
}

void GuardFinder::Collect(Stmt s, int place, bool eligible, GuardsBelow& found) {
  if (!HasGuard(s)) return;
  if (eligible) {
    if (s.Is(StmtKind::kIf)) AddGuard(s.cond(), around_.Expand(s.cond()), place, found);
    for (Expr e : s.operands()) AddGuardsIn(e, s.Is(StmtKind::kFor), place, found);
  }
  if (s.Is(StmtKind::kIf)) {
    const Expr condition = around_.Expand(s.cond());
    for (bool truth : {true, false}) {
      const Stmt branch = truth ? s.then_case() : s.else_case();
      if (!HasGuard(branch)) continue;
      std::vector<Expr> facts;
      around_.AddFacts(condition, truth, facts);
      Collect(branch, found.places.Add(place, s, truth, std::move(facts)), eligible, found);
    }
    return;
  }
  if (s.Is(StmtKind::kFor)) {
    around_.EnterBeside(s);
    found.inner.insert(s.var());
    const arith::BoundedVar& bound = around_.loops().back();
    if (found.DependsOnVar(bound.min) || found.DependsOnVar(bound.extent)) {
      found.triangular.push_back(s.var());
    }
  }
  if (s.Is(StmtKind::kLet)) {
    found.inner.insert(s.var());
    around_.BindLet(s);
  }
  for (Stmt child : s.children()) {
    Collect(child, place, eligible || s.Is(StmtKind::kPragma), found);
  }
}

}  // namespace polynao
