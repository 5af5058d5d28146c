// Method: one walk, inner loops first, so that an if that has left one loop can leave the next one, too.
// After a loop's body, the walk visits the ifs directly in it (behind lets and allocations) in order. The
// first if whose condition has an invariant part decides between two versions of the loop, and the walk
// visits both versions again. It skips statements that contain no loop with an if, usually most of a program.
//
// A condition is a list of operands of &&. An operand may be a variable that a let in the loop's body binds:
// then the operands of the let's value count, because licm and cse bind conditions whose parts vary in
// different loops. Once the invariant part is decided, the let keeps the other operands.
#include "compiler/passes/hoist_if.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::Mode;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

class Hoister {
 public:
  Hoister(const ir::Function& function, const Target& target, const HoistIfOptions& options,
          HoistIfStats& stats, bool wants_text)
      : context_(*function.context),
        options_(options),
        stats_(stats),
        wants_text_(wants_text),
        effects_(function, target.instructions ? &target.instructions->intrinsics() : nullptr),
        analyzer_(context_) {
    FindWork(function.body);
    if (!work_.empty()) copied_ = CopiedNodes(function.body);
    NotePlaces(function.body, 0);
    AssumeParameters(function, analyzer_);
  }

  // Whether some condition stayed in its loop only because a copy of the loop would be too large.
  bool lacked_nodes() const { return lacked_nodes_; }

  Stmt Walk(Stmt s) {
    if (!work_.contains(s)) return s;
    switch (s.kind()) {
      case StmtKind::kFor: {
        ++depth_;
        Stmt body;
        {
          Analyzer::Scope scope(analyzer_);
          analyzer_.BindLoop(s.var(), s.min(), s.extent());
          body = Walk(s.body());
        }
        --depth_;
        return Hoist(context_.Rebuild(s, s.operands(), {body}));
      }
      case StmtKind::kIf: {
        Stmt branches[2];
        for (const bool truth : {true, false}) {
          Analyzer::Scope scope(analyzer_);
          analyzer_.Assume(s.cond(), truth);
          branches[truth ? 0 : 1] = Walk(truth ? s.then_case() : s.else_case());
        }
        return context_.Rebuild(s, s.operands(), branches);
      }
      case StmtKind::kLet: {
        Analyzer::Scope scope(analyzer_);
        analyzer_.BindLet(s.var(), s.value());
        return context_.Rebuild(s, s.operands(), {Walk(s.body())});
      }
      case StmtKind::kAllocate:
      case StmtKind::kStore:
      case StmtKind::kPragma:
      case StmtKind::kEvaluate:
      case StmtKind::kSeq:
        return ir::MapChildren(s, [&](Stmt child) { return Walk(child); });
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

 private:
  // Fills work_ with the statements that have a loop with an if in it. Returns whether there is an if
  // in `s`.
  bool FindWork(Stmt s) {
    bool has_if = s.Is(StmtKind::kIf);
    bool has_work = false;
    for (Stmt child : s.children()) {
      has_if = FindWork(child) || has_if;
      has_work = has_work || work_.contains(child);
    }
    if (has_work || (has_if && s.Is(StmtKind::kFor))) work_.insert(s);
    return has_if;
  }

  // ---- the budget -------------------------------------------------------------------------------

  // The number of statements and expressions in `s`. Unlike ir::NodeCount, it counts shared parts once per
  // use, so that copies count in full.
  static int64_t Size(Stmt s) {
    int64_t size = 1;
    for (Expr e : s.operands()) ir::ForEachExpr(e, [&](Expr) { ++size; });
    for (Stmt child : s.children()) size += Size(child);
    return size;
  }

  static bool HasLoop(Stmt root) {
    return ir::AnyStmt(root, [](Stmt s) { return s.Is(StmtKind::kFor); });
  }

  // The size of the copies that the function contains already. Each copy leaves an if with loops in both
  // branches, so that a later run finds how much of the budget earlier runs have spent.
  static int64_t CopiedNodes(Stmt s) {
    if (s.Is(StmtKind::kIf) && HasLoop(s.then_case()) && HasLoop(s.else_case())) {
      return Size(s.else_case()) + CopiedNodes(s.then_case());
    }
    int64_t size = 0;
    for (Stmt child : s.children()) size += CopiedNodes(child);
    return size;
  }

  // ---- one loop ---------------------------------------------------------------------------------

  // Hoists out of `loop`, whose body is done, and returns the result. depth_ loops enclose it, and analyzer_
  // knows the facts in front of it.
  Stmt Hoist(Stmt loop) {
    if (loop.for_kind() == ForKind::kThread) return loop;
    std::vector<Stmt> ifs;
    ir::VarMap lets;
    Collect(loop.body(), ifs, lets);
    for (Stmt s : ifs) {
      const std::vector<Expr> invariant = InvariantPart(s.cond(), lets, loop);
      if (invariant.empty()) continue;
      Stmt without = With(loop, lets, invariant, false);
      if (!without.IsEmpty()) {
        const int64_t growth = Size(without);
        if (HasCall(loop)) continue;
        if (copied_ + growth > options_.max_growth) {
          lacked_nodes_ = true;
          continue;
        }
        copied_ += growth;
        stats_.nodes_copied += static_cast<int>(growth);
        without = ir::CloneWithFreshBindings(without);
        NotePlaces(without, depth_);
      }
      const Expr condition = arith::Conjunction(invariant);
      if (wants_text_) {
        stats_.hoisted.push_back(
            StrCat(ir::Print(condition), "  out of  ", ir::PrintFirstLine(loop)));
      }
      const Stmt with = With(loop, lets, invariant, true);
      return context_.If(condition, Again(with, condition, true), Again(without, condition, false));
    }
    return loop;
  }

  // A version of a loop, in the branch of `condition`.
  Stmt Again(Stmt loop, Expr condition, bool truth) {
    if (!loop.Is(StmtKind::kFor)) return loop;
    Analyzer::Scope scope(analyzer_);
    analyzer_.Assume(condition, truth);
    return Hoist(loop);
  }

  // Collects the ifs that each iteration reaches, in order, and the conditions that lets around them bind.
  static void Collect(Stmt s, std::vector<Stmt>& ifs, ir::VarMap& lets) {
    if (s.Is(StmtKind::kIf)) ifs.push_back(s);
    if (s.Is(StmtKind::kLet) && s.value().type() == ir::Type::kI1) lets[s.var()] = s.value();
    if (IsTransparent(s)) {
      for (Stmt child : s.children()) Collect(child, ifs, lets);
    }
  }

  static bool IsTransparent(Stmt s) {
    return s.Is(StmtKind::kSeq) || s.Is(StmtKind::kLet) || s.Is(StmtKind::kAllocate);
  }

  // ---- conditions -------------------------------------------------------------------------------

  struct Operand {
    Expr e;
    // Whether it stands in the value of a let, where arithmetic wraps.
    bool is_data = false;
  };

  // Adds the operands of `e` as a list of &&, each one once, with those of the variables in `lets`.
  static void Operands(Expr e, const ir::VarMap& lets, bool is_data,
                       absl::flat_hash_set<Expr>& seen, std::vector<Operand>& list) {
    if (!seen.insert(e).second) return;
    const auto let = lets.find(e);
    if (e.Is(ExprKind::kAnd)) {
      Operands(e.operand(0), lets, is_data, seen, list);
      Operands(e.operand(1), lets, is_data, seen, list);
    } else if (let != lets.end()) {
      Operands(let->second, lets, /*is_data=*/true, seen, list);
    } else {
      list.push_back({.e = e, .is_data = is_data});
    }
  }

  static std::vector<Operand> Operands(Expr e, const ir::VarMap& lets) {
    absl::flat_hash_set<Expr> seen;
    std::vector<Operand> list;
    Operands(e, lets, /*is_data=*/false, seen, list);
    return list;
  }

  // The operands in the condition of an if in the body of `loop` that can be decided in front of it.
  std::vector<Expr> InvariantPart(Expr cond, const ir::VarMap& lets, Stmt loop) {
    std::vector<Expr> invariant;
    // Whether the loop evaluates the next operand for certain.
    bool certain = Runs(loop);
    bool is_constant = true;
    Analyzer::Scope scope(analyzer_);
    for (const Operand& operand : Operands(cond, lets)) {
      const Expr e = operand.e;
      // Arithmetic that wraps in a let stops the program in the condition of an if.
      const bool is_safe = certain && !operand.is_data;
      if (IsInvariant(e, loop) && (is_safe || !effects_.MayTrap(e, analyzer_, Mode::kIndex))) {
        invariant.push_back(e);
        is_constant = is_constant && e.IsConst();
        analyzer_.Assume(e);
      } else {
        certain = false;
      }
    }
    // Constants are for simplify.
    if (is_constant) invariant.clear();
    return invariant;
  }

  bool Runs(Stmt loop) {
    return loop.extent().Is(ExprKind::kIntImm) ? loop.extent().int_value() > 0
                                               : analyzer_.Range(loop.extent()).min > 0;
  }

  bool IsInvariant(Expr e, Stmt loop) {
    if (effects_.MayChange(e, loop)) return false;
    for (ir::Var var : ir::FreeVars(e)) {
      auto it = places_.find(var);
      if (it != places_.end() && it->second > depth_) return false;
    }
    return true;
  }

  // ---- versions of a loop -----------------------------------------------------------------------

  // What is known in one version of a loop: that all of `known` are true, or that not all are.
  struct Decision {
    const ir::VarMap& lets;
    absl::flat_hash_set<Expr> known;
    bool truth;
    // What conditions are without the operands that are known; null: nothing is left.
    absl::flat_hash_map<Expr, Expr> rest = {};
  };

  // The loop under the assumption that the operands `known` are all true, or that one is false. Empty if the
  // body becomes empty.
  Stmt With(Stmt loop, const ir::VarMap& lets, absl::Span<const Expr> known, bool truth) {
    Decision decision{.lets = lets, .known = {known.begin(), known.end()}, .truth = truth};
    const Stmt body = Decided(loop.body(), decision);
    return body.IsEmpty() ? body : context_.Rebuild(loop, loop.operands(), {body});
  }

  // Whether condition `e` is false because some of `known` is.
  static bool IsFalse(Expr e, const Decision& decision) {
    if (decision.truth) return false;
    size_t found = 0;
    for (const Operand& operand : Operands(e, decision.lets)) {
      found += decision.known.contains(operand.e);
    }
    return found == decision.known.size();
  }

  // Condition `e` without the operands that are known to be true; null if nothing is left.
  Expr Rest(Expr e, Decision& decision) {
    if (const auto known = decision.rest.find(e); known != decision.rest.end()) {
      return known->second;
    }
    Expr rest = e;
    if (decision.known.contains(e)) {
      rest = Expr();
    } else if (e.Is(ExprKind::kAnd)) {
      const Expr a = Rest(e.operand(0), decision);
      const Expr b = Rest(e.operand(1), decision);
      rest = a && b ? context_.Rebuild(e, {a, b}) : (a ? a : b);
    } else if (const auto let = decision.lets.find(e); let != decision.lets.end()) {
      // The let itself keeps what is left.
      if (!Rest(let->second, decision)) rest = Expr();
    }
    decision.rest[e] = rest;
    return rest;
  }

  Stmt Decided(Stmt s, Decision& decision) {
    if (s.Is(StmtKind::kIf)) {
      if (IsFalse(s.cond(), decision)) return s.else_case();
      if (!decision.truth) return s;
      const Expr rest = Rest(s.cond(), decision);
      return rest ? context_.Rebuild(s, {rest}, s.children()) : s.then_case();
    }
    if (!IsTransparent(s)) return s;
    const Stmt result = ir::MapChildren(s, [&](Stmt child) { return Decided(child, decision); });
    if (s.Is(StmtKind::kSeq)) return result;
    if (result.body().IsEmpty()) return result.body();
    if (!s.Is(StmtKind::kLet) || s.value().type() != ir::Type::kI1) return result;
    // The ifs that used it may be decided.
    if (result != s && !ir::UsesVar(result.body(), s.var())) return result.body();
    Expr value = s.value();
    if (IsFalse(value, decision)) {
      value = context_.Const(ir::Type::kI1, 0);
    } else if (decision.truth) {
      if (const Expr rest = Rest(value, decision)) value = rest;
    }
    return context_.Rebuild(result, {value}, result.children());
  }

  static bool HasCall(Stmt root) {
    return ir::AnyStmt(root, [](Stmt s) { return s.Is(StmtKind::kEvaluate); });
  }

  // Fills places_ for what `s`, which stands in `depth` loops, binds.
  void NotePlaces(Stmt s, int depth) {
    if (s.Is(StmtKind::kFor)) ++depth;
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) places_[s.var()] = depth;
    for (Stmt child : s.children()) NotePlaces(child, depth);
  }

  ir::Context& context_;
  const HoistIfOptions& options_;
  HoistIfStats& stats_;
  const bool wants_text_;
  Effects effects_;
  Analyzer analyzer_;
  absl::flat_hash_set<Stmt> work_;
  int64_t copied_ = 0;  // nodes, by this run and by earlier ones
  bool lacked_nodes_ = false;
  int depth_ = 0;
  // How many loops stand around the binding of each variable, its own included.
  absl::flat_hash_map<ir::Var, int> places_;
};

}  // namespace

absl::StatusOr<bool> HoistIf(ir::Function& function, const Target& target,
                             const HoistIfOptions& options, HoistIfStats* stats) {
  const Stmt before = function.body;
  HoistIfStats local;
  while (true) {
    Hoister hoister(function, target, options, stats ? *stats : local, stats != nullptr);
    const Stmt body = hoister.Walk(function.body);
    const bool changed = body != function.body;
    function.body = body;
    // Deciding ifs may have made other loops smaller, so that their copies now fit the budget.
    if (!changed || !hoister.lacked_nodes()) break;
  }
  return function.body != before;
}

namespace {

absl::StatusOr<bool> RunHoistIf(ir::Function& function, const PassEnvironment& environment,
                                HoistIfOptions options) {
  HoistIfStats stats;
  ASSIGN_OR_RETURN(bool changed, HoistIf(function, environment.target, options,
                                         environment.stats ? &stats : nullptr));
  if (environment.stats != nullptr) {
    environment.stats->push_back(StrCat("hoisted ", stats.hoisted.size(), " conditions, copied ",
                                        stats.nodes_copied, " nodes"));
    for (std::string& line : stats.hoisted) environment.stats->push_back(std::move(line));
  }
  return changed;
}

}  // namespace

PassInfo HoistIfPass() {
  return WithOptions<HoistIfOptions>(
      {.name = "hoist_if", .doc = "moves branches that do not vary in a loop out of it"},
      {IntOption("max_growth", &HoistIfOptions::max_growth, 0, 1000000,
                 "nodes of the function that may be copies of loops")},
      FixedDefaults, RunHoistIf);
}

}  // namespace polynao
