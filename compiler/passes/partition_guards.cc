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

namespace {

// How operand `i` of the statement is evaluated.
arith::Mode OperandMode(Stmt s, size_t i) {
  const bool is_value = s.Is(StmtKind::kLet) || s.Is(StmtKind::kEvaluate) ||
                        (s.Is(StmtKind::kStore) && s.operands()[i] == s.value());
  return is_value ? arith::Mode::kData : arith::Mode::kIndex;
}

}  // namespace

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

std::vector<Expr> GuardsBelow::PartsOf(Expr condition) const {
  std::vector<Expr> parts, open = {condition};
  while (!open.empty()) {
    const Expr e = open.back();
    open.pop_back();
    if (IsLogic(e)) {
      for (size_t i = e.operands().size(); i-- > 0;) open.push_back(e.operand(i));
    } else if (HasParts(e)) {
      open.push_back(conditions.at(ir::Var(e)));
    } else {
      parts.push_back(e);
    }
  }
  return parts;
}

bool GuardsBelow::HasParts(Expr condition) const {
  return IsLogic(condition) ||
         (condition.Is(ExprKind::kVar) && conditions.contains(ir::Var(condition)));
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

struct GuardFinder::Search {
  GuardsBelow found;
  absl::flat_hash_set<PlacedExpr> seen;
  // What is no guard because its comparison may wrap at one of the positions
  // where it stands.
  absl::flat_hash_set<PlacedExpr> barred;
};

GuardsBelow GuardFinder::Find(Stmt s, Var var, bool eligible) {
  Search search;
  search.found.var = var;
  Collect(s, 0, eligible, search);
  std::erase_if(search.found.guards, [&](const LoopGuard& guard) {
    return search.barred.contains({guard.place, guard.node});
  });
  return std::move(search.found);
}

void GuardFinder::AddGuard(Expr node, Expr condition, int place, Search& search) {
  if (!search.found.DependsOnVar(condition)) return;
  if (!search.seen.insert({place, node}).second) return;
  search.found.guards.push_back({place, node, condition, true});
}

// The min or max `e` is the first operand if that compares so with the second
// one. Equal operands go to the one that makes fewer pieces: in an index to the
// one that varies, so that only what a clamp changes is cut off (`max(i - 1,
// 0)` is i - 1 from i = 1 on), in the bound of a loop to the constant one
// (`min(64 - i * 16, 16)` is 16 up to i = 3).
void GuardFinder::AddClamp(Expr e, bool in_bound, arith::Mode mode, int place, Search& search) {
  if (e.type() != ir::Type::kI32 && e.type() != ir::Type::kI64) return;
  const Expr a = around_.Expand(e.operand(0)), b = around_.Expand(e.operand(1));
  const bool a_varies = search.found.DependsOnVar(a), b_varies = search.found.DependsOnVar(b);
  if (!a_varies && !b_varies) return;
  const Expr low = e.Is(ExprKind::kMin) ? a : b, high = e.Is(ExprKind::kMin) ? b : a;
  const bool is_first = a_varies == b_varies ? e.Is(ExprKind::kMin) : a_varies != in_bound;
  const Expr condition = is_first ? low <= high : low < high;
  if (mode == arith::Mode::kData && around_.analyzer().CanOverflow(condition)) {
    search.barred.insert({place, e});
  }
  AddGuard(e, condition, place, search);
}

// The selects, mins and maxes in the operands of `s`, outer ones first. A min
// or max that is compared is no guard by itself: what counts is where the
// comparison is constant.
void GuardFinder::AddGuardsIn(Stmt s, int place, Search& search) {
  absl::flat_hash_set<std::tuple<Expr, arith::Mode, bool>> done;
  const auto add = [&](const auto& self, Expr e, arith::Mode mode, bool is_compared) -> void {
    if (!MayGuard(e) || !done.insert({e, mode, is_compared}).second) return;
    if (e.Is(ExprKind::kSelect)) {
      AddGuard(e.operand(0), around_.Expand(e.operand(0)), place, search);
    } else if (IsMinMax(e) && !is_compared) {
      AddClamp(e, s.Is(StmtKind::kFor), mode, place, search);
    } else if (e.Is(ExprKind::kLoad)) {
      is_compared = false;
    }
    for (size_t i = 0; i < e.operands().size(); ++i) {
      self(self, e.operand(i), arith::OperandMode(e, i, mode),
           is_compared || (e.type() == ir::Type::kI1 && !e.Is(ExprKind::kSelect)) ||
               (e.Is(ExprKind::kSelect) && i == 0));
    }
  };
  for (size_t i = 0; i < s.operands().size(); ++i) {
    add(add, s.operands()[i], OperandMode(s, i), s.Is(StmtKind::kIf));
  }
}

void GuardFinder::Collect(Stmt s, int place, bool eligible, Search& search) {
  if (!HasGuard(s)) return;
  GuardsBelow& found = search.found;
  if (eligible) {
    if (s.Is(StmtKind::kIf)) AddGuard(s.cond(), around_.Expand(s.cond()), place, search);
    AddGuardsIn(s, place, search);
  }
  if (s.Is(StmtKind::kIf)) {
    const Expr condition = around_.Expand(s.cond());
    for (bool truth : {true, false}) {
      const Stmt branch = truth ? s.then_case() : s.else_case();
      if (!HasGuard(branch)) continue;
      std::vector<Expr> facts;
      around_.AddFacts(condition, truth, facts);
      Collect(branch, found.places.Add(place, s, truth, std::move(facts)), eligible, search);
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
    if (around_.BindLet(s) && s.var().type() == ir::Type::kI1) {
      found.conditions[s.var()] = s.value();
    }
  }
  for (Stmt child : s.children()) {
    Collect(child, place, eligible || s.Is(StmtKind::kPragma), search);
  }
}

}  // namespace polynao
