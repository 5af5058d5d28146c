// Method: one walk, inner loops first, so that what left one loop is at hand for the next. When a
// loop's body is done, the ifs directly in it (behind lets and allocations) are looked at in order;
// the first with an invariant part of its condition decides between two versions of the loop, which
// are looked at again. Statements without a loop that has an if in it are passed by, facts and all:
// most of a program usually.
#include "compiler/passes/hoist_if.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
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
    NotePlaces(function.body, 0);
    AssumeParameters(function, analyzer_);
  }

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

  // `loop`, whose body is done, or what it became. depth_ loops stand around it, and analyzer_ knows
  // what holds in front of it.
  Stmt Hoist(Stmt loop) {
    if (loop.for_kind() == ForKind::kThread) return loop;
    std::vector<Stmt> ifs;
    CollectIfs(loop.body(), ifs);
    for (Stmt s : ifs) {
      const Expr invariant = InvariantPart(s.cond(), loop);
      if (!invariant) continue;
      Stmt without = With(loop, invariant, false);
      if (!without.IsEmpty()) {
        const int growth = static_cast<int>(ir::NodeCount(without));
        if (stats_.nodes_copied + growth > options_.max_growth || HasCall(loop)) continue;
        stats_.nodes_copied += growth;
        without = ir::CloneWithFreshBindings(without);
        NotePlaces(without, depth_);
      }
      if (wants_text_) {
        stats_.hoisted.push_back(
            StrCat(ir::Print(invariant), "  out of  ", ir::PrintFirstLine(loop)));
      }
      const Stmt with = With(loop, invariant, true);
      return context_.If(invariant, Again(with, invariant, true), Again(without, invariant, false));
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

  // The ifs that each iteration reaches, in order.
  static void CollectIfs(Stmt s, std::vector<Stmt>& ifs) {
    if (s.Is(StmtKind::kIf)) ifs.push_back(s);
    if (IsTransparent(s)) {
      for (Stmt child : s.children()) CollectIfs(child, ifs);
    }
  }

  static bool IsTransparent(Stmt s) {
    return s.Is(StmtKind::kSeq) || s.Is(StmtKind::kLet) || s.Is(StmtKind::kAllocate);
  }

  static void Conjuncts(Expr e, std::vector<Expr>& list) {
    if (e.Is(ExprKind::kAnd)) {
      Conjuncts(e.operand(0), list);
      Conjuncts(e.operand(1), list);
    } else {
      list.push_back(e);
    }
  }

  Expr Conjunction(absl::Span<const Expr> list) {
    Expr all;
    for (Expr e : list) all = all ? ir::And(all, e) : e;
    return all;
  }

  // What of the condition of an if that `loop` reaches can be decided in front of it; null if
  // nothing.
  Expr InvariantPart(Expr cond, Stmt loop) {
    std::vector<Expr> list, invariant;
    Conjuncts(cond, list);
    // Whether the next operand is evaluated in front of the loop only if the loop does so, too.
    bool certain = Runs(loop);
    Analyzer::Scope scope(analyzer_);
    for (Expr e : list) {
      if (IsInvariant(e, loop) && (certain || !effects_.MayTrap(e, analyzer_, Mode::kIndex))) {
        invariant.push_back(e);
        analyzer_.Assume(e);
      } else {
        certain = false;
      }
    }
    // Constants are for simplify.
    const Expr all = Conjunction(invariant);
    return all && all.IsConst() ? Expr() : all;
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

  // The loop where the part `invariant` of its ifs' conditions is `truth`; nothing if nothing is left.
  Stmt With(Stmt loop, Expr invariant, bool truth) {
    const Stmt body = Decided(loop.body(), invariant, truth);
    return body.IsEmpty() ? body : context_.Rebuild(loop, loop.operands(), {body});
  }

  // `s`, in which the part `invariant` of the conditions of ifs is `truth`.
  Stmt Decided(Stmt s, Expr invariant, bool truth) {
    if (s.Is(StmtKind::kIf)) {
      std::vector<Expr> known, list, rest;
      Conjuncts(invariant, known);
      Conjuncts(s.cond(), list);
      size_t found = 0;
      for (Expr e : list) {
        if (found < known.size() && e == known[found]) {
          ++found;
        } else {
          rest.push_back(e);
        }
      }
      if (found < known.size()) return s;
      if (!truth) return s.else_case();
      if (rest.empty()) return s.then_case();
      return context_.If(Conjunction(rest), s.then_case(), s.else_case());
    }
    if (!IsTransparent(s)) return s;
    const Stmt result =
        ir::MapChildren(s, [&](Stmt child) { return Decided(child, invariant, truth); });
    return !s.Is(StmtKind::kSeq) && result.body().IsEmpty() ? result.body() : result;
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
  int depth_ = 0;
  // How many loops stand around the binding of each variable, its own included.
  absl::flat_hash_map<ir::Var, int> places_;
};

}  // namespace

absl::StatusOr<bool> HoistIf(ir::Function& function, const Target& target,
                             const HoistIfOptions& options, HoistIfStats* stats) {
  HoistIfStats local;
  const Stmt body = Hoister(function, target, options, stats ? *stats : local, stats != nullptr)
                        .Walk(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
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
      {.name = "hoist_if",
       .doc = "moves branches that do not vary in a loop out of it",
       .second_run_changes = "max_growth counts from the start of each run"},
      {IntOption("max_growth", &HoistIfOptions::max_growth, 0, 1000000,
                 "nodes by which copies of loops may make the function longer")},
      FixedDefaults, RunHoistIf);
}

}  // namespace polynao
