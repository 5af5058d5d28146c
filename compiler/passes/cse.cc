// Method: cse_plan.h decides what is bound where; the rewriter puts the bindings there and replaces the
// uses, operands before users.
#include "compiler/passes/cse.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/cse_plan.h"
#include "compiler/passes/cse_tables.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/unify.h"

namespace polynao {
namespace {

using cse::Binding;
using cse::Block;
using cse::CsePlan;
using cse::Item;
using cse::kNameStem;
using cse::Use;
using cse::Uses;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

class Rewriter {
 public:
  Rewriter(ir::Function& function, CsePlan plan)
      : function_(function), context_(*function.context), plan_(std::move(plan)) {}

  struct Result {
    bool changed = false;
    // Whether another run may find more: with variables for their parts, two expressions have become
    // equal; or one that was left alone, because of a load or a division in it, has changed.
    bool may_find_more = false;
  };

  Result Rewrite(std::vector<CseBinding>* report, std::vector<std::string>* tables) {
    Result result;
    if (plan_.bindings.empty()) return result;
    NameBindings();
    if (tables != nullptr) Explain(*tables);
    for (int e = 0; e < static_cast<int>(plan_.exprs.size()); ++e) Rewrite(e);
    function_.body = Rebuild(plan_.blocks[0]);
    if (report != nullptr) Report(*report);
    result.changed = true;
    result.may_find_more = may_find_more_ || std::any_of(plan_.refused.begin(), plan_.refused.end(),
                                                         [&](int e) { return HasChanged(e); });
    return result;
  }

 private:
  // Names follow the places; at one place the longest expression comes first.
  void NameBindings() {
    std::vector<int> order(plan_.bindings.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const Binding& x = plan_.bindings[a];
      const Binding& y = plan_.bindings[b];
      return std::make_tuple(plan_.nodes[x.node].item, x.node, -plan_.infos[x.expr].size, x.expr) <
             std::make_tuple(plan_.nodes[y.node].item, y.node, -plan_.infos[y.expr].size, y.expr);
    });
    for (int b : order) {
      Binding& binding = plan_.bindings[b];
      if (binding.is_existing) continue;
      binding.var =
          context_.NewVar(StrCat(kNameStem, ++plan_.last_name), plan_.exprs[binding.expr].type());
    }
    report_order_ = std::move(order);
    // Operands are bound around what uses them.
    for (auto& [node, list] : plan_.bindings_at) {
      std::sort(list.begin(), list.end(),
                [&](int a, int b) { return plan_.bindings[a].expr < plan_.bindings[b].expr; });
    }
  }

  // What expression e, evaluated at `node`, became.
  Expr ResultAt(Expr e, int node) const {
    if (e.Is(ExprKind::kVar)) {
      const auto copy = copies_.find(e);
      return copy == copies_.end() ? e : copy->second;
    }
    const Uses& uses = plan_.uses[plan_.numbers.At(e)];
    const auto it = std::lower_bound(uses.begin(), uses.end(), node,
                                     [](const Use& use, int wanted) { return use.node < wanted; });
    return it == uses.end() || it->node != node ? e : it->result;
  }

  // Expression e over what its operands became, evaluated at `node`.
  Expr RebuildAt(int e, int node) {
    const Expr expr = plan_.exprs[e];
    absl::InlinedVector<Expr, 4> operands;
    for (size_t i = 0; i < expr.operands().size(); ++i) {
      const int place = plan_.OperandNode(e, i, node);
      Expr operand = ResultAt(expr.operand(i), place);
      if (place != node) operand = WrapInLets(operand, place);
      operands.push_back(operand);
    }
    if (expr.Is(ExprKind::kLet) && copies_.contains(expr.var())) {
      // Its body may now be what others are, and need not stay together.
      may_find_more_ = true;
      return operands[1];
    }
    const Expr result = context_.Rebuild(expr, operands);
    const auto [other, added] = became_.TryAdd(result, e);
    may_find_more_ = may_find_more_ || (!added && other != e);
    return result;
  }

  // `let var = before` became `let var = after`: if that is a copy of a variable, it goes. All that
  // uses `var` has higher numbers than `before`, so it is rewritten later.
  void NoteCopy(Expr var, Expr before, Expr after) {
    if (!before.Is(ExprKind::kVar) && after.Is(ExprKind::kVar) && !plan_.kept_vars.contains(var)) {
      copies_[var] = after;
    }
  }

  Expr WrapInLets(Expr e, int side) {
    const auto it = plan_.bindings_at.find(side);
    if (it == plan_.bindings_at.end()) return e;
    for (size_t i = it->second.size(); i-- > 0;) {
      const Binding& binding = plan_.bindings[it->second[i]];
      e = context_.Let(binding.var, binding.value, e);
    }
    return e;
  }

  void Rewrite(int e) {
    for (int b : plan_.BindingsOf(e))
      plan_.bindings[b].value = RebuildAt(e, plan_.bindings[b].node);
    for (Use& use : plan_.uses[e]) {
      use.result = use.binding >= 0 ? plan_.bindings[use.binding].var : RebuildAt(e, use.node);
      const auto let = plan_.let_of_item.find(use.node);
      if (let != plan_.let_of_item.end() && let->second.value() == plan_.exprs[e] &&
          let->second.var() != use.result) {
        NoteCopy(let->second.var(), plan_.exprs[e], use.result);
      }
    }
    if (const auto it = plan_.lets_of_value.find(e); it != plan_.lets_of_value.end()) {
      for (int let : it->second) {
        const int node = OnlyPlaceOf(let);
        if (node >= 0)
          NoteCopy(plan_.exprs[let].var(), plan_.exprs[e], ResultAt(plan_.exprs[e], node));
      }
    }
  }

  // Where expression e is evaluated; -1 if that is at several places. (A let that stands in several
  // may be a copy of different variables.)
  int OnlyPlaceOf(int e) const {
    int node = -1;
    int places = 0;
    const auto add = [&](int place) {
      node = place;
      ++places;
    };
    for (const Use& use : plan_.uses[e]) {
      if (use.binding < 0) add(use.node);
    }
    for (int b : plan_.BindingsOf(e)) add(plan_.bindings[b].node);
    return places == 1 ? node : -1;
  }

  // Whether expression e became another one somewhere.
  bool HasChanged(int e) const {
    return std::any_of(plan_.uses[e].begin(), plan_.uses[e].end(),
                       [&](const Use& use) { return use.result != plan_.exprs[e]; });
  }

  // Whether the operands of the item's statement are evaluated there, and may be bound.
  static bool IsRewritten(const Item& item) {
    const Stmt s = item.stmt;
    if (s.Is(StmtKind::kFor)) return s.for_kind() != ForKind::kThread;
    return !s.Is(StmtKind::kPragma) && (!s.Is(StmtKind::kLet) || item.is_header);
  }

  Stmt Rebuild(const Block& block) {
    bool changed = false;
    std::vector<std::vector<Expr>> operands(block.items.size());
    std::vector<std::vector<Stmt>> children(block.items.size());
    for (size_t i = 0; i < block.items.size(); ++i) {
      const Item& item = block.items[i];
      const Stmt s = item.stmt;
      changed = changed || plan_.bindings_at.contains(item.node);
      operands[i].assign(s.operands().begin(), s.operands().end());
      if (IsRewritten(item)) {
        for (Expr& e : operands[i]) {
          const Expr result = ResultAt(e, item.node);
          changed = changed || result != e;
          e = result;
        }
      }
      for (size_t b = 0; b < item.blocks.size(); ++b) {
        const Block& inner = plan_.blocks[item.blocks[b]];
        children[i].push_back(Rebuild(inner));
        changed = changed || children[i].back() != inner.stmt;
      }
    }
    if (!changed) return block.stmt;
    // Backwards: what follows an item may be its body. The statements so far, the last one first.
    std::vector<Stmt> after;
    const auto rest = [&] {
      std::reverse(after.begin(), after.end());
      const Stmt seq = context_.Seq(after);
      after.clear();
      return seq;
    };
    for (size_t i = block.items.size(); i-- > 0;) {
      const Item& item = block.items[i];
      const Stmt s = item.stmt;
      const auto bound = plan_.bindings_at.find(item.node);
      const bool has_bindings = bound != plan_.bindings_at.end();
      if (item.is_header && s.Is(StmtKind::kLet)) {
        Expr value = operands[i][0];
        if (has_bindings) {
          for (int b : bound->second) {
            if (plan_.bindings[b].is_existing) value = plan_.bindings[b].value;
          }
        }
        if (!copies_.contains(s.var())) after.push_back(context_.LetStmt(s.var(), value, rest()));
      } else if (item.is_header) {
        after.push_back(context_.Allocate(s.buffer(), rest()));
      } else if (s.Is(StmtKind::kLet) || s.Is(StmtKind::kAllocate)) {
        after.push_back(children[i][0]);  // a block of its own
      } else {
        after.push_back(context_.Rebuild(s, operands[i], children[i]));
      }
      if (!has_bindings) continue;
      for (size_t b = bound->second.size(); b-- > 0;) {
        const Binding& binding = plan_.bindings[bound->second[b]];
        if (binding.is_existing) continue;
        after.push_back(context_.LetStmt(binding.var, binding.value, rest()));
      }
    }
    return rest();
  }

  // The statement of the item and all that follows it in its block.
  Stmt From(const Block& block, size_t i) const {
    std::vector<Stmt> rest;
    for (; i < block.items.size(); ++i) {
      rest.push_back(block.items[i].stmt);
      if (block.items[i].is_header) break;
    }
    return context_.Seq(rest);
  }

  void Explain(std::vector<std::string>& tables) const {
    const auto is_candidate = [&](Expr e) {
      const int* number = plan_.numbers.Find(e);
      if (number == nullptr) {
        // Made by an earlier step of the log.
        return !e.IsConst() && !e.Is(ExprKind::kVar) && !e.Is(ExprKind::kAddress) &&
               !e.Is(ExprKind::kCall);
      }
      return plan_.infos[*number].is_candidate;
    };
    for (const Block& block : plan_.blocks) {
      for (size_t i = 0; i < block.items.size(); ++i) {
        const auto bound = plan_.bindings_at.find(block.items[i].node);
        if (bound == plan_.bindings_at.end()) continue;
        std::vector<cse::NewVariable> variables;
        // Longer ones first: users have higher numbers than operands.
        for (size_t b = bound->second.size(); b-- > 0;) {
          const Binding& binding = plan_.bindings[bound->second[b]];
          if (!binding.is_existing) variables.push_back({binding.var, plan_.exprs[binding.expr]});
        }
        std::sort(variables.begin(), variables.end(), [&](const auto& a, const auto& b) {
          const auto key = [&](Expr e) {
            return std::pair(-plan_.infos[plan_.numbers.At(e)].size, e.id());
          };
          return key(a.value) < key(b.value);
        });
        if (!variables.empty())
          tables.push_back(cse::ScopeLog(From(block, i), variables, is_candidate));
      }
    }
  }

  void Report(std::vector<CseBinding>& report) const {
    for (int b : report_order_) {
      const Binding& binding = plan_.bindings[b];
      report.push_back({.variable = std::string(binding.var.name()),
                        .value = ir::Print(binding.value),
                        .uses = binding.uses});
    }
  }

  ir::Function& function_;
  ir::Context& context_;
  CsePlan plan_;
  std::vector<int> report_order_;
  // Lets that became copies of other variables.
  ir::VarMap copies_;
  // What expressions became, and which ones.
  ir::ExprMap<int> became_;
  bool may_find_more_ = false;
};

}  // namespace

CseOptions CseOptionsFor(const Target& target) {
  CseOptions options;
  if (target.instructions != nullptr) options.intrinsics = &target.instructions->intrinsics();
  return options;
}

absl::StatusOr<bool> Cse(ir::Function& function, const CseOptions& options,
                         std::vector<CseBinding>* bindings, std::vector<std::string>* tables) {
  bool changed = false;
  while (true) {
    const Stmt before = function.body;
    if (options.semantic) UnifyEqualIntegers(function);
    const Rewriter::Result result =
        Rewriter(function, cse::MakePlan(function, options)).Rewrite(bindings, tables);
    changed = changed || result.changed;
    if (!result.changed) function.body = before;
    // Such chains are short. (What is bound is data, where more is equal than in an index.)
    if (!result.changed || !(result.may_find_more || options.semantic)) return changed;
  }
}

namespace {

absl::StatusOr<bool> RunCse(ir::Function& function, const PassEnvironment& environment,
                            CseOptions options) {
  std::vector<CseBinding> bindings;
  ASSIGN_OR_RETURN(bool changed, Cse(function, options, environment.stats ? &bindings : nullptr,
                                     environment.explanations));
  if (environment.stats == nullptr) return changed;
  for (const CseBinding& binding : bindings) {
    environment.stats->push_back(
        StrCat(binding.variable, " = ", binding.value, "  for ", binding.uses, " uses"));
  }
  return changed;
}

}  // namespace

PassInfo CsePass() {
  return WithOptions<CseOptions>(
      {.name = "cse", .doc = "binds what is evaluated more than once"},
      {BoolOption("semantic", &CseOptions::semantic,
                  "take equal integers in other words for one expression"),
       BoolOption("leave", &CseOptions::leave,
                  "leave arithmetic to the compiler behind, which shares it too")},
      CseOptionsFor, RunCse);
}

}  // namespace polynao
