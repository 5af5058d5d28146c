// The walk and the rewriting; licm_places.h plans. The walk keeps a stack of the enclosing loops: place p is
// in front of loop p and inside loops 0 .. p - 1. An expression at place d can move to place p if
//   - its variables are bound at p;
//   - loops p .. d - 1 write no memory that it loads, and none of them is a wall (thread loops);
//   - it cannot trap, or place p is certain to evaluate it (certain_from_).
// It goes to the first such place, and its operands may move further from there. Loop::lifted collects the
// lets, which the walk puts around the loop when it leaves it.
#include "compiler/passes/licm.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/invariant_statements.h"
#include "compiler/passes/let_names.h"
#include "compiler/passes/licm_places.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using Crowds = LicmPlaces::Crowds;

constexpr int kNowhere = LicmPlaces::kNowhere;

class Mover {
 public:
  Mover(const ir::Function& function, const Target& target, const LicmOptions& options,
        Crowds crowds, LicmStats& stats, bool wants_text)
      : function_(function),
        context_(*function.context),
        options_(options),
        places_(function, target, options, std::move(crowds)),
        stats_(stats),
        wants_text_(wants_text) {}

  // The loops that lacked room for some values, for another walk of the same function.
  Crowds TakeCrowds() { return places_.TakeCrowds(); }

  Stmt Walk(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return For(s);
      case StmtKind::kIf: {
        const Expr cond = Moved(s.cond(), /*strict=*/true);
        const int certain = std::exchange(certain_from_, kNowhere);
        Stmt branches[2];
        for (const bool truth : {true, false}) {
          places_.EnterScope(s, truth);
          branches[truth ? 0 : 1] = Walk(truth ? s.then_case() : s.else_case());
          places_.LeaveScope();
        }
        certain_from_ = certain;
        return context_.Rebuild(s, {cond}, branches);
      }
      case StmtKind::kLet:
        return Let(s);
      case StmtKind::kAllocate:
        places_.BindAllocation(s.buffer());
        return context_.Rebuild(s, {}, {Walk(s.body())});
      case StmtKind::kStore: {
        std::vector<Expr> operands;
        for (Expr index : s.indices()) operands.push_back(Moved(index, /*strict=*/true));
        const bool strict = !places_.IsAllocation(s.buffer());
        operands.push_back(Moved(s.value(), strict));
        return context_.Rebuild(s, operands, {});
      }
      case StmtKind::kEvaluate:
        return context_.Rebuild(s, {Moved(s.value(), /*strict=*/true)}, {});
      case StmtKind::kPragma:  // its operands are words for later passes
      case StmtKind::kSeq:
        return ir::MapChildren(s, [&](Stmt child) { return Walk(child); });
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

 private:
  // The result for an expression at `place`, when certain_from_ and strict_ were these.
  struct Done {
    int place;
    int certain_from;
    bool strict;
    Expr result;
  };

  int Here() const { return places_.Here(); }

  // ---- statements -------------------------------------------------------------------------------

  Stmt For(Stmt s) {
    const Expr min = Moved(s.min(), /*strict=*/true);
    const Expr extent = Moved(s.extent(), /*strict=*/true);
    const int certain = certain_from_;
    if (!places_.Enter(s).runs) certain_from_ = std::max(certain_from_, Here());

    Stmt result = context_.Rebuild(s, {min, extent}, {Walk(s.body())});

    const LicmPlaces::Loop loop = places_.Leave();
    certain_from_ = certain;
    if (loop.runs && !loop.unrolled && s.for_kind() != ForKind::kParallel) {
      result = WithoutInvariantStatements(result);
    }
    for (size_t i = loop.lifted.size(); i-- > 0;) {
      result = context_.LetStmt(loop.lifted[i].first, loop.lifted[i].second, result);
    }
    return result;
  }

  Stmt Let(Stmt s) {
    // The variable moves with its value, so that expressions that use it can follow.
    const Expr value = s.value();
    strict_ = true;
    done_.Clear();
    for (int place = places_.FirstPlace(value); place < Here() && places_.Spares(place, Here());
         ++place) {
      if (!CanEvaluate(value, place)) continue;
      LicmPlaces::Loop& loop = places_.loop(place);
      auto known = loop.known.find(value);
      const Expr moved =
          known != loop.known.end() ? known->second : Rewritten(value, place, /*whole=*/false);
      places_.Put(s.var(), moved, place);
      for (int p = place; p < Here(); ++p) {
        ++places_.loop(p).live;
        ++places_.loop(p).live_lets;
      }
      loop.known.emplace(value, s.var());
      ++stats_.lets;
      Note(s.var(), moved, place, Here());
      return Walk(s.body());
    }
    places_.Bind(s.var());
    const Expr moved = Moved(value, /*strict=*/true);
    places_.EnterScope(s);
    const Stmt body = Walk(s.body());
    places_.LeaveScope();
    return context_.Rebuild(s, {moved}, {body});
  }

  // ---- expressions ------------------------------------------------------------------------------

  // An operand of a statement, with variables for the parts that moved. `strict`: the program stops if
  // the operand uses a value that was never stored.
  Expr Moved(Expr e, bool strict) {
    if (Here() == 0) return e;
    strict_ = strict;
    done_.Clear();
    return Rewritten(e, Here(), /*whole=*/true);
  }

  // `e`, evaluated at `place`, with variables for the parts that move further; if `whole`, all of it
  // may.
  Expr Rewritten(Expr e, int place, bool whole) {
    if (e.operands().empty() && !e.Is(ExprKind::kLoad) && !e.Is(ExprKind::kCall)) return e;
    if (!whole) return RewrittenOperands(e, place);
    const auto is_same = [&](const Done& done) {
      return done.place == place && done.certain_from == certain_from_ && done.strict == strict_;
    };
    if (const auto* known = done_.Find(e)) {
      const auto it = std::find_if(known->begin(), known->end(), is_same);
      if (it != known->end()) return it->result;
    }
    Expr result = Lifted(e, place);
    if (!result) {
      const bool counts = std::exchange(counts_, counts_ && !lacked_room_);
      result = RewrittenOperands(e, place);
      // With its parts moved, it may be safe to move: a variable cannot trap, and neither can a
      // condition that became a let overflow.
      if (const Expr lifted = result == e ? Expr() : Lifted(result, place)) result = lifted;
      counts_ = counts;
    }
    done_.TryAdd(e, {}).first.push_back({place, certain_from_, strict_, result});
    return result;
  }

  Expr RewrittenOperands(Expr e, int place) {
    const int certain = certain_from_;
    const bool strict = strict_;
    std::vector<Expr> operands;
    operands.reserve(e.operands().size());
    for (size_t i = 0; i < e.operands().size(); ++i) {
      const bool guarded =
          (e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr)) && i > 0;
      const bool is_index = e.buffer() != nullptr || e.Is(ExprKind::kCall);
      const bool decides = (e.Is(ExprKind::kSelect) || e.Is(ExprKind::kLet)) && i == 0;
      certain_from_ = guarded ? kNowhere : certain;
      strict_ = strict || is_index || decides;
      operands.push_back(Rewritten(e.operand(i), place, /*whole=*/true));
    }
    certain_from_ = certain;
    strict_ = strict;
    return context_.Rebuild(e, operands);
  }

  // The variable that holds `e` further out than `from`, if it moves. Sets lacked_room_.
  Expr Lifted(Expr e, int from) {
    lacked_room_ = false;
    if (e.Is(ExprKind::kAddress) || (e.Is(ExprKind::kCall) && !places_.effects().IsPure(e)))
      return {};
    const LicmPlaces::HoistPlan plan = places_.PlanOf(e);
    for (int place = plan.place; place < from && places_.IsWorth(plan.cost, place, from); ++place) {
      auto& known = places_.loop(place).known;
      if (const auto it = known.find(e); it != known.end()) {
        if (counts_) places_.NoteSpared(e, plan.cost, place, from);
        return it->second;
      }
      if (!CanEvaluate(e, place)) continue;
      if (counts_) places_.NoteSpared(e, plan.cost, place, from);
      if (!places_.HasRoom(e, plan.cost, place, from)) {
        lacked_room_ = true;
        continue;
      }
      const Expr value = Rewritten(e, place, /*whole=*/false);
      if (const Expr further = value == e ? Expr() : Lifted(value, place)) {
        known.emplace(e, further);
        return further;
      }
      if (!names_) names_.emplace(function_, "inv");
      const ir::Var var = names_->NewVar(value);
      places_.Put(var, value, place);
      known.emplace(e, var);
      ++stats_.expressions;
      Note(var, value, place, from);
      return var;
    }
    if (wants_text_ && from == Here() && plan.place < from) NoteStays(e, plan);
    return {};
  }

  // Records why `e`, which could move to `plan.place`, stays in the innermost loop. What it is made of
  // is not told apart.
  void NoteStays(Expr e, const LicmPlaces::HoistPlan& plan) {
    if (e.IsConst() || !stays_.insert({e, Here()}).second) return;
    ir::ForEachExpr(e, [&](Expr part) { stays_.insert({part, Here()}); });
    const int cost = places_.WholeCost(e);
    std::string why;
    if (!places_.Spares(plan.place, Here())) {
      why = "the compiler behind unrolls the loop";
    } else if (cost < options_.threshold) {
      why = StrCat("it costs ", cost, ", less than k = ", options_.threshold);
    } else if (plan.cost < options_.threshold) {
      why = "left to the compiler behind, which moves arithmetic by itself";
    } else if (lacked_room_) {
      why = StrCat("in front of it ", options_.max_live, " values are alive already");
    } else {
      why = "there it could stop a program that goes on";
    }
    stats_.stayed.push_back(StrCat(ir::Print(e), "  stays in  ",
                                   ir::PrintFirstLine(places_.loop(Here() - 1).s), ": ", why));
  }

  bool CanEvaluate(Expr e, int place) {
    return places_.CanEvaluate(e, place, certain_from_, strict_);
  }

  // Records that `value`, now held by `var`, moved from place `from` to `to`.
  void Note(ir::Var var, Expr value, int to, int from) {
    if (!wants_text_) return;
    std::string text = StrCat(var.name(), " = ", ir::Print(value), "  out of");
    for (int p = to; p < from; ++p) StrAppend(&text, "  ", ir::PrintFirstLine(places_.loop(p).s));
    stats_.moved.push_back(std::move(text));
  }

  // ---- invariant statements ---------------------------------------------------------------------

  // `loop`, which runs at least once, preceded by the statements of its body that store the same values in
  // each iteration.
  Stmt WithoutInvariantStatements(Stmt loop) {
    const int inside = Here() + 1;
    if (inside >= 63) return loop;
    InvariantStatements invariant = FindInvariantStatements(
        loop, places_.effects(), [&](Stmt s) { return places_.IsBoundAt(s, inside); });
    if (invariant.statements.empty()) return loop;
    stats_.statements += static_cast<int>(invariant.statements.size());
    if (wants_text_) {
      for (Stmt s : invariant.statements) {
        stats_.moved.push_back(
            StrCat(ir::PrintFirstLine(s), "  out of  ", ir::PrintFirstLine(loop)));
      }
    }
    if (!invariant.loop.IsEmpty()) invariant.statements.push_back(invariant.loop);
    return context_.Seq(invariant.statements);
  }

  const ir::Function& function_;
  ir::Context& context_;
  const LicmOptions& options_;
  LicmPlaces places_;
  LicmStats& stats_;
  const bool wants_text_;
  std::optional<LetNames> names_;
  // Expressions that NoteStays has told of, and in how many loops they stand.
  absl::flat_hash_set<std::pair<Expr, int>> stays_;
  // Whether values count for crowds. Parts of a value that had no room do not.
  bool counts_ = true;
  bool lacked_room_ = false;
  // The first place that is certain to be followed by an evaluation here.
  int certain_from_ = 0;
  // Whether the program stops if the current operand uses a value that was never stored.
  bool strict_ = true;
  // For the current operand.
  ir::ExprMap<absl::InlinedVector<Done, 1>> done_;
};

}  // namespace

LicmOptions LicmOptionsFor(const Target& target) { return {target.facts().motion}; }

absl::StatusOr<bool> Licm(ir::Function& function, const Target& target, const LicmOptions& options,
                          LicmStats* stats) {
  POLYNAO_CHECK(options.threshold >= 1) << options.threshold;
  const Stmt before = function.body;
  while (true) {
    LicmStats moved;
    Mover first_come(function, target, options, {}, moved, stats != nullptr);
    Stmt body = first_come.Walk(function.body);
    Crowds crowds = first_come.TakeCrowds();
    const bool is_crowded = !crowds.empty();
    if (is_crowded) {
      moved = {};
      body = Mover(function, target, options, std::move(crowds), moved, stats != nullptr)
                 .Walk(function.body);
    }
    const bool changed = body != function.body;
    function.body = body;
    if (stats != nullptr) {
      stats->expressions += moved.expressions;
      stats->lets += moved.lets;
      stats->statements += moved.statements;
      stats->moved.insert(stats->moved.end(), moved.moved.begin(), moved.moved.end());
      stats->stayed = std::move(moved.stayed);  // of the last walk
    }
    // Moving a store out of a loop may free its loads to move. Moving a value may remove the last use of
    // another value, which makes room.
    if (!changed || (moved.statements == 0 && !is_crowded)) break;
  }
  return function.body != before;
}

namespace {

absl::StatusOr<bool> RunLicm(ir::Function& function, const PassEnvironment& environment,
                             LicmOptions options) {
  LicmStats stats;
  const bool wants_stats = environment.stats != nullptr || environment.explanations != nullptr;
  ASSIGN_OR_RETURN(bool changed,
                   Licm(function, environment.target, options, wants_stats ? &stats : nullptr));
  if (environment.explanations != nullptr) {
    for (const std::string& line : stats.stayed) {
      environment.explanations->push_back(StrCat(line, "\n"));
    }
  }
  if (environment.stats != nullptr) {
    environment.stats->push_back(StrCat("moved ", stats.expressions, " expressions, ", stats.lets,
                                        " lets, ", stats.statements, " statements"));
    for (std::string& line : stats.moved) environment.stats->push_back(std::move(line));
  }
  return changed;
}

}  // namespace

PassInfo LicmPass() {
  return WithOptions<LicmOptions>(
      {.name = "licm", .doc = "evaluates in front of loops what does not vary in them"},
      {IntOption<LicmOptions>("k", &LicmOptions::threshold, 1, 1000,
                              "the cost from which an expression moves"),
       IntOption<LicmOptions>("max_live", &LicmOptions::max_live, 0, 100000,
                              "moved values that are alive in one loop"),
       IntOption<LicmOptions>("unrolled", &LicmOptions::unrolled_extent, 0, 1000000,
                              "iterations of loops that the compiler behind unrolls"),
       BoolOption("leave", &LicmOptions::leave,
                  "leave arithmetic to the compiler behind, which moves it too"),
       BoolOption<LicmOptions>("beside_instructions", &LicmOptions::beside_instructions,
                               "values may leave loops that call instructions")},
      LicmOptionsFor, RunLicm);
}

}  // namespace polynao
