#include "compiler/passes/guard_elimination.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace polynao {

using arith::Analyzer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

namespace {

class Eliminator {
 public:
  Eliminator(const Truths& truths, const GuardsBelow& found, Analyzer& analyzer,
             ir::Context& context, absl::flat_hash_set<PlacedExpr>* live)
      : truths_(truths), found_(found), analyzer_(analyzer), context_(context), live_(live) {}

  Stmt Rewrite(Stmt s) {
    if (s.Is(StmtKind::kIf)) {
      const Expr cond = Condition(s.cond());
      if (cond.IsConst()) return RewriteBranch(s, cond.int_value() != 0);
      const Stmt then_case = RewriteBranch(s, true), else_case = RewriteBranch(s, false);
      const bool was_empty = s.then_case().IsEmpty() && s.else_case().IsEmpty();
      if (then_case.IsEmpty() && else_case.IsEmpty() && !was_empty && !analyzer_.CanTrap(cond)) {
        return then_case;
      }
      return context_.Rebuild(s, {cond}, {then_case, else_case});
    }
    std::vector<Expr> operands;
    for (Expr e : s.operands()) operands.push_back(Rewrite(e));
    std::vector<Stmt> children;
    bool emptied = !s.children().empty() && !s.Is(StmtKind::kSeq);
    for (Stmt child : s.children()) {
      children.push_back(Rewrite(child));
      emptied = emptied && children.back().IsEmpty() && children.back() != child;
    }
    // A loop, let, pragma or allocation around what is gone goes with it, if nothing else can be
    // seen of it.
    if (emptied && std::none_of(operands.begin(), operands.end(),
                                [&](Expr e) { return analyzer_.CanTrap(e); })) {
      return context_.Nop();
    }
    return context_.Rebuild(s, operands, children);
  }

 private:
  Stmt RewriteBranch(Stmt s, bool branch) {
    const int outside = std::exchange(place_, found_.places.Find(place_, s, branch));
    const Stmt result = Rewrite(branch ? s.then_case() : s.else_case());
    place_ = outside;
    return result;
  }

  Expr Rewrite(Expr e) {
    if (e.operands().empty()) return e;
    if (auto it = done_.find({place_, e}); it != done_.end()) return it->second;
    Expr result;
    if (e.Is(ExprKind::kSelect)) {
      const Expr cond = Condition(e.operand(0));
      result = cond.IsConst() ? Rewrite(e.operand(cond.int_value() != 0 ? 1 : 2))
                              : context_.Select(cond, Rewrite(e.operand(1)), Rewrite(e.operand(2)));
    } else if (auto it = truths_.find({place_, e}); it != truths_.end() && IsMinMax(e)) {
      const bool first = it->second;
      const Expr dropped = e.operand(first ? 1 : 0);
      result = analyzer_.CanTrap(dropped) ? RewriteOperands(e) : Rewrite(e.operand(first ? 0 : 1));
    } else {
      if (live_ != nullptr && IsMinMax(e)) live_->insert({place_, e});
      result = RewriteOperands(e);
    }
    done_.emplace(PlacedExpr(place_, e), result);
    return result;
  }

  Expr RewriteOperands(Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(Rewrite(operand));
    return context_.Rebuild(e, operands);
  }

  // `e` where its value decides a branch. Parts that may trap are not dropped.
  Expr Condition(Expr e) {
    if (auto it = truths_.find({place_, e}); it != truths_.end() && !analyzer_.CanTrap(e)) {
      return context_.Bool(it->second);
    }
    if (!IsLogic(e)) {
      if (found_.HasParts(e)) {
        // The variable of a let, in whose place the parts of its value stand
        // that are not known.
        const Expr value = found_.conditions.at(ir::Var(e));
        const Expr rest = Condition(value);
        return rest == value ? e : rest;
      }
      if (live_ != nullptr) live_->insert({place_, e});
      return Rewrite(e);
    }
    if (e.Is(ExprKind::kNot)) {
      const Expr operand = Condition(e.operand(0));
      return operand.IsConst() ? context_.Bool(operand.int_value() == 0) : context_.Not(operand);
    }
    const bool is_and = e.Is(ExprKind::kAnd);
    const Expr a = Condition(e.operand(0));
    if (a.IsInt(is_and ? 0 : 1)) return a;
    const Expr b = Condition(e.operand(1));
    if (a.IsConst()) return b;
    if (b.IsInt(is_and ? 1 : 0)) return a;
    if (b.IsConst() && !analyzer_.CanTrap(a)) return b;
    return context_.Binary(e.kind(), a, b);
  }

  const Truths& truths_;
  const GuardsBelow& found_;
  Analyzer& analyzer_;
  ir::Context& context_;
  absl::flat_hash_set<PlacedExpr>* const live_;
  int place_ = 0;
  absl::flat_hash_map<PlacedExpr, Expr> done_;
};

}  // namespace

Stmt EliminateGuards(Stmt s, const Truths& truths, const GuardsBelow& found, Analyzer& analyzer,
                     absl::flat_hash_set<PlacedExpr>* live) {
  if (truths.empty() && live == nullptr) return s;
  return Eliminator(truths, found, analyzer, s.context(), live).Rewrite(s);
}

}  // namespace polynao
