#include "compiler/passes/loop_partition.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {

using arith::Analyzer;
using arith::BoundedVar;
using arith::ConstRange;
using arith::Interval;
using arith::Intervals;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

namespace {

bool IsLogic(Expr e) { return e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr) || e.Is(ExprKind::kNot); }

bool IsMinMax(Expr e) {
  return (e.Is(ExprKind::kMin) || e.Is(ExprKind::kMax)) && ir::IsInt(e.type());
}

// ---- elimination of conditions whose truth is known --------------------------------------------

// Truth of conditions, by node; for an integer min or max, of "the first operand is <= the second".
using Truths = absl::flat_hash_map<Expr, bool>;

// EliminateCondition of Algorithm 2.
class Eliminator {
 public:
  Eliminator(const Truths& truths, Analyzer& analyzer, ir::Context& context)
      : truths_(truths), analyzer_(analyzer), context_(context) {}

  Stmt Rewrite(Stmt s) {
    if (s.Is(StmtKind::kIf)) {
      const Expr cond = Condition(s.cond());
      if (cond.IsConst()) return Rewrite(cond.int_value() != 0 ? s.then_case() : s.else_case());
      const Stmt then_case = Rewrite(s.then_case()), else_case = Rewrite(s.else_case());
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
  Expr Rewrite(Expr e) {
    if (e.operands().empty()) return e;
    if (auto it = done_.find(e); it != done_.end()) return it->second;
    Expr result;
    if (e.Is(ExprKind::kSelect)) {
      const Expr cond = Condition(e.operand(0));
      result = cond.IsConst() ? Rewrite(e.operand(cond.int_value() != 0 ? 1 : 2))
                              : context_.Select(cond, Rewrite(e.operand(1)), Rewrite(e.operand(2)));
    } else if (auto it = truths_.find(e); it != truths_.end() && IsMinMax(e)) {
      const bool first = it->second == e.Is(ExprKind::kMin);
      const Expr dropped = e.operand(first ? 1 : 0);
      result = analyzer_.CanTrap(dropped) ? RewriteOperands(e) : Rewrite(e.operand(first ? 0 : 1));
    } else {
      result = RewriteOperands(e);
    }
    done_.emplace(e, result);
    return result;
  }

  Expr RewriteOperands(Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(Rewrite(operand));
    return context_.Rebuild(e, operands);
  }

  // `e` where its value decides a branch. Parts that may trap are not dropped.
  Expr Condition(Expr e) {
    if (auto it = truths_.find(e); it != truths_.end() && !analyzer_.CanTrap(e)) {
      return context_.Bool(it->second);
    }
    if (!IsLogic(e)) return Rewrite(e);
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
  Analyzer& analyzer_;
  ir::Context& context_;
  absl::flat_hash_map<Expr, Expr> done_;
};

// ---- planning and rewriting ---------------------------------------------------------------------

class Partitioner {
 public:
  Partitioner(ir::Context& context, const LoopPartitionOptions& options, LoopPartitionStats* stats)
      : context_(context),
        options_(options),
        stats_(stats),
        analyzer_(context),
        sets_({.max_intervals = options.max_pieces}) {}

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
        Analyzer::Scope scope(analyzer_);
        BindLet(s);
        const Stmt body = Visit(s.body());
        lets_.erase(s.var());
        return WithChildren(s, {body});
      }
      case StmtKind::kPragma: {
        if (s.name() == kNoPartitionPragma) return s.body();
        ++pragmas_;
        const Stmt body = Visit(s.body());
        --pragmas_;
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

  int64_t isl_questions() const { return sets_.questions(); }

 private:
  // A condition below a loop, and the values of the loop's variable that decide it.
  struct Guard {
    Expr node;       // as it stands in the program; an integer min or max stands for its comparison
    Expr condition;  // with lets put in
    bool whole;      // of an if, select, min or max, not a part of such a condition
    Intervals always, never;
    bool taken = true;
  };
  struct Piece {
    Interval range;
    Truths truths;
  };

  // `s` over other children; nothing if nothing is left in it.
  Stmt WithChildren(Stmt s, absl::Span<const Stmt> children) {
    if (s.children() == children) return s;
    const bool empty =
        std::all_of(children.begin(), children.end(), [](Stmt child) { return child.IsEmpty(); });
    const bool total = std::none_of(s.operands().begin(), s.operands().end(),
                                    [&](Expr e) { return analyzer_.CanTrap(e); });
    return empty && total ? context_.Nop() : context_.Rebuild(s, s.operands(), children);
  }

  Stmt VisitBranch(Stmt s, bool truth) {
    const Stmt branch = truth ? s.then_case() : s.else_case();
    if (branch.IsEmpty()) return branch;
    Analyzer::Scope scope(analyzer_);
    analyzer_.Assume(Expand(s.cond()), truth);
    return Visit(branch);
  }

  Expr Expand(Expr e) { return lets_.empty() ? e : ir::Substitute(e, lets_); }

  // Integer lets that do not wrap are seen through.
  void BindLet(Stmt s) {
    analyzer_.BindLet(s.var(), s.value());
    const Expr value = Expand(s.value());
    const bool is_index = s.var().type() == ir::Type::kI32 || s.var().type() == ir::Type::kI64;
    if (is_index && !analyzer_.CanTrap(value) && !analyzer_.CanOverflow(value)) {
      lets_[s.var()] = value;
    }
  }

  std::optional<Interval> ConstantRange(Stmt loop) {
    const Expr min = analyzer_.Simplify(Expand(loop.min()));
    const Expr extent = analyzer_.Simplify(Expand(loop.extent()));
    if (!min.IsConst() || !extent.IsConst() || extent.int_value() <= 0) return std::nullopt;
    return Interval{min.int_value(), min.int_value() + extent.int_value() - 1};
  }

  bool HasThreadLoop(Stmt s) {
    if (auto it = has_thread_loop_.find(s); it != has_thread_loop_.end()) return it->second;
    bool found = s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread;
    for (Stmt child : s.children()) found = HasThreadLoop(child) || found;
    has_thread_loop_.emplace(s, found);
    return found;
  }

  // Enters the loop with its variable in `range`, or between its own bounds.
  void Enter(Stmt loop, std::optional<Interval> range) {
    BoundedVar bound = {loop.var(), Expand(loop.min()), Expand(loop.extent())};
    if (range) {
      bound.min = context_.Int(loop.var().type(), range->first);
      bound.extent = context_.Int(loop.var().type(), range->last - range->first + 1);
    }
    analyzer_.BindLoop(bound.var, bound.min, bound.extent);
    bounds_.push_back(bound);
  }

  Stmt VisitFor(Stmt s) {
    const bool outermost = bounds_.empty();
    if (outermost) nest_pieces_ = 0;
    if (s.for_kind() == ForKind::kThread) return VisitThreadLoop(s);
    const std::optional<Interval> range = ConstantRange(s);
    if (range && !HasThreadLoop(s.body())) {
      std::vector<Piece> pieces = Plan(s, s.body(), *range);
      return SplitLoop(s, std::move(pieces));
    }
    Analyzer::Scope scope(analyzer_);
    Enter(s, range);
    const Stmt body = Visit(s.body());
    bounds_.pop_back();
    return WithChildren(s, {body});
  }

  Stmt Eliminate(Stmt s, const Truths& truths) {
    return truths.empty() ? s : Eliminator(truths, analyzer_, context_).Rewrite(s);
  }

  Stmt SplitLoop(Stmt s, std::vector<Piece> pieces) {
    std::vector<Stmt> loops;
    for (const Piece& piece : pieces) {
      const Stmt body = Eliminate(s.body(), piece.truths);
      if (body.IsEmpty() && !s.body().IsEmpty()) continue;
      Stmt loop =
          pieces.size() == 1
              ? context_.Rebuild(s, s.operands(), {body})
              : context_.For(s.var(), context_.Int(s.var().type(), piece.range.first),
                             context_.Int(s.var().type(), piece.range.last - piece.range.first + 1),
                             body, s.for_kind(), s.name());
      // The first loop keeps the bindings.
      if (!loops.empty()) loop = ir::CloneWithFreshBindings(loop);
      Analyzer::Scope scope(analyzer_);
      Enter(loop, piece.range);
      const Stmt inner = Visit(loop.body());
      bounds_.pop_back();
      const Stmt whole = WithChildren(loop, {inner});
      if (!whole.IsEmpty()) loops.push_back(whole);
    }
    return context_.Seq(loops);
  }

  // ---- thread loops ----

  Stmt VisitThreadLoop(Stmt s) {
    const std::optional<Interval> range = ConstantRange(s);
    Analyzer::Scope scope(analyzer_);
    Enter(s, range);
    if (range) threads_.push_back({s, *range});
    const Stmt body = Descend(s.body());
    if (range) threads_.pop_back();
    bounds_.pop_back();
    return WithChildren(s, {body});
  }

  // Goes through what all threads do alike, down to the loop nests inside.
  Stmt Descend(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        if (s.for_kind() == ForKind::kThread) return VisitThreadLoop(s);
        break;
      case StmtKind::kLet: {
        Analyzer::Scope scope(analyzer_);
        BindLet(s);
        const Stmt body = Descend(s.body());
        lets_.erase(s.var());
        return WithChildren(s, {body});
      }
      case StmtKind::kIf: {
        std::vector<Stmt> branches;
        for (bool truth : {true, false}) {
          Analyzer::Scope scope(analyzer_);
          analyzer_.Assume(Expand(s.cond()), truth);
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

  static bool HasBarrier(Stmt s) {
    bool found = false;
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kEvaluate)) {
        const std::string_view name = x.value().name();
        found = found || name.find("sync") != std::string_view::npos ||
                name.find("barrier") != std::string_view::npos;
      }
      return !found;
    });
    return found;
  }

  // `s` for the threads of threads_[next] and further ones in their current ranges.
  Stmt SplitByThreads(Stmt s, size_t next) {
    if (next == threads_.size()) return Visit(s);
    const Stmt loop = threads_[next].first;
    const Interval range = threads_[next].second;
    if (HasBarrier(s)) return SplitByThreads(s, next + 1);
    const std::vector<Piece> pieces = Plan(loop, s, range);
    std::vector<Stmt> bodies;
    bool first = true;
    for (const Piece& piece : pieces) {
      Stmt body = Eliminate(s, piece.truths);
      if (!body.IsEmpty()) {
        if (!first) body = ir::CloneWithFreshBindings(body);
        first = false;
        Analyzer::Scope scope(analyzer_);
        const BoundedVar bound = {
            loop.var(), context_.Int(loop.var().type(), piece.range.first),
            context_.Int(loop.var().type(), piece.range.last - piece.range.first + 1)};
        analyzer_.BindLoop(bound.var, bound.min, bound.extent);
        auto whole = std::find_if(bounds_.begin(), bounds_.end(),
                                  [&](const BoundedVar& b) { return b.var == loop.var(); });
        const BoundedVar saved = std::exchange(*whole, bound);
        const size_t at = whole - bounds_.begin();
        body = SplitByThreads(body, next + 1);
        bounds_[at] = saved;
      }
      bodies.push_back(body);
    }
    Stmt result = bodies.back();
    for (size_t i = bodies.size() - 1; i-- > 0;) {
      if (bodies[i].IsEmpty() && result.IsEmpty()) continue;
      const Expr border = context_.Int(loop.var().type(), pieces[i + 1].range.first);
      result = bodies[i].IsEmpty() ? context_.If(border <= loop.var(), result)
                                   : context_.If(loop.var() < border, bodies[i], result);
    }
    return result;
  }

  // ---- planning ----

  // Whether a select stands in `e`, or a min or max if `in_bound`.
  bool MayGuard(Expr e) {
    if (e.operands().empty()) return false;
    if (auto it = may_guard_.find(e); it != may_guard_.end()) return it->second;
    bool found = e.Is(ExprKind::kSelect) || IsMinMax(e);
    for (Expr operand : e.operands()) found = MayGuard(operand) || found;
    may_guard_.emplace(e, found);
    return found;
  }

  // Whether `e` uses `var` or a variable whose loop's bounds do.
  bool DependsOn(Expr e, Var var) {
    if (ir::UsesVar(e, var)) return true;
    return std::any_of(triangular_.begin(), triangular_.end(),
                       [&](Var x) { return ir::UsesVar(e, x); });
  }

  void AddGuard(Expr node, Expr condition, Var var, std::vector<Guard>& guards,
                absl::flat_hash_set<Expr>& seen) {
    if (!DependsOn(condition, var) || !seen.insert(node).second) return;
    guards.push_back({node, condition, true, {}, {}});
  }

  void AddGuardsIn(Expr e, bool in_bound, Var var, std::vector<Guard>& guards,
                   absl::flat_hash_set<Expr>& seen) {
    if (!MayGuard(e)) return;
    ir::ForEachExpr(e, [&](Expr x) {
      if (x.Is(ExprKind::kSelect)) {
        AddGuard(x.operand(0), Expand(x.operand(0)), var, guards, seen);
      } else if (in_bound && IsMinMax(x)) {
        AddGuard(x, Expand(x.operand(0) <= x.operand(1)), var, guards, seen);
      }
    });
  }

  bool HasGuard(Stmt s) {
    if (auto it = has_guard_.find(s); it != has_guard_.end()) return it->second;
    if (s.Is(StmtKind::kPragma) && s.name() == kNoPartitionPragma) return false;
    bool found = s.Is(StmtKind::kIf);
    for (Expr e : s.operands()) found = found || MayGuard(e);
    for (Stmt child : s.children()) found = found || HasGuard(child);
    has_guard_.emplace(s, found);
    return found;
  }

  // Finds the guards on `var` in `s`. Binds the loops and lets inside on the way, so that the
  // guards' other variables have bounds.
  void Collect(Stmt s, Var var, bool eligible, std::vector<Guard>& guards,
               absl::flat_hash_set<Expr>& seen) {
    if (!HasGuard(s)) return;
    if (eligible) {
      if (s.Is(StmtKind::kIf)) AddGuard(s.cond(), Expand(s.cond()), var, guards, seen);
      for (Expr e : s.operands()) AddGuardsIn(e, s.Is(StmtKind::kFor), var, guards, seen);
    }
    if (s.Is(StmtKind::kFor)) {
      // Only the variable's range: what else a loop's bounds say holds in its body, if there is an
      // iteration at all, and not in the loops beside it.
      const BoundedVar bound = {s.var(), Expand(s.min()), Expand(s.extent())};
      const ConstRange extent = analyzer_.Range(bound.extent);
      analyzer_.BindRange(s.var(),
                          Intersect(ConstRange::OfType(s.var().type()),
                                    analyzer_.Range(bound.min) +
                                        ConstRange{0, (extent - ConstRange::Point(1)).max}));
      bounds_.push_back(bound);
      if (DependsOn(bound.min, var) || DependsOn(bound.extent, var)) triangular_.push_back(s.var());
    }
    if (s.Is(StmtKind::kLet)) BindLet(s);
    for (Stmt child : s.children()) {
      Collect(child, var, eligible || s.Is(StmtKind::kPragma), guards, seen);
    }
  }

  // FindPartition of Algorithm 2: the pieces of `range`, the values of the variable of `loop`, by
  // the guards in `body`.
  std::vector<Piece> Plan(Stmt loop, Stmt body, Interval range) {
    const Var var = loop.var();
    if (!HasGuard(body)) return {{range, {}}};
    std::vector<Guard> guards;
    const size_t outer_bounds = bounds_.size();
    const ir::VarMap outer_lets = lets_;
    {
      Analyzer::Scope scope(analyzer_);
      // The loop's own range; a thread loop has one from outside already.
      const Expr min = context_.Int(var.type(), range.first);
      const Expr extent = context_.Int(var.type(), range.last - range.first + 1);
      analyzer_.BindLoop(var, min, extent);
      absl::flat_hash_set<Expr> seen;
      Collect(body, var, pragmas_ > 0 || !options_.only_in_pragmas, guards, seen);
      Solve(var, range, guards);
    }
    bounds_.resize(outer_bounds);
    lets_ = outer_lets;
    triangular_.clear();

    // Cuts in the order of guards, while they fit.
    std::set<int64_t> cuts = {range.first};
    const size_t room = std::max(0, options_.max_nest_pieces - nest_pieces_);
    const size_t limit = std::min<size_t>(options_.max_pieces, room + 1);
    for (Guard& guard : guards) {
      std::set<int64_t> with = cuts;
      for (const Intervals* intervals : {&guard.always, &guard.never}) {
        for (const Interval& interval : *intervals) {
          with.insert(interval.first);
          if (interval.last < range.last) with.insert(interval.last + 1);
        }
      }
      guard.taken = with.size() <= limit;
      if (guard.taken) cuts = std::move(with);
    }
    std::vector<Piece> pieces;
    for (auto it = cuts.begin(); it != cuts.end(); ++it) {
      const auto next = std::next(it);
      Piece piece = {{*it, next == cuts.end() ? range.last : *next - 1}, {}};
      auto all_in = [&](const Intervals& intervals) {
        return Complement(intervals, piece.range).empty();
      };
      for (const Guard& guard : guards) {
        if (all_in(guard.always)) {
          piece.truths[guard.node] = true;
        } else if (all_in(guard.never)) {
          piece.truths[guard.node] = false;
        }
      }
      pieces.push_back(std::move(piece));
    }
    nest_pieces_ += static_cast<int>(pieces.size()) - 1;
    Record(var, range, guards, pieces);
    return pieces;
  }

  void Record(Var var, Interval range, const std::vector<Guard>& guards,
              const std::vector<Piece>& pieces) {
    if (stats_ == nullptr) return;
    LoopPartitionStats::Loop loop = {std::string(var.name()), range, {}, {}};
    for (const Guard& guard : guards) {
      if (guard.always.empty() && guard.never.empty()) continue;
      loop.guards.push_back({ir::Print(guard.condition), guard.always, guard.never, guard.taken});
    }
    if (loop.guards.empty()) return;
    for (const Piece& piece : pieces) loop.pieces.push_back(piece.range);
    stats_->loops.push_back(std::move(loop));
  }

  // ---- truth of guards by intervals of the variable ----

  struct Solution {
    Intervals always, never;
    // Whether no more values could be in either.
    bool exact = false;
  };

  void Solve(Var var, Interval range, std::vector<Guard>& guards) {
    const size_t whole_guards = guards.size();
    for (size_t i = 0; i < whole_guards; ++i) {
      // What reads memory may be evaluated for its trap and stays; its parts may go.
      if (!analyzer_.CanTrap(guards[i].condition)) {
        Solution solution = Intervalwise(guards[i].condition, var, range);
        const Intervals rest = Complement(Union(solution.always, solution.never), range);
        if (!solution.exact && !rest.empty()) Exactly(guards[i].condition, var, range, solution);
        guards[i].always = std::move(solution.always);
        guards[i].never = std::move(solution.never);
      }
      SolveParts(i, var, range, guards);
    }
  }

  // Where the whole guard is not constant, its parts may be.
  void SolveParts(size_t whole, Var var, Interval range, std::vector<Guard>& guards) {
    if (!IsLogic(guards[whole].node)) return;
    const Intervals rest = Complement(Union(guards[whole].always, guards[whole].never), range);
    if (rest.empty()) return;
    std::vector<Expr> parts = {guards[whole].node};
    while (!parts.empty()) {
      const Expr part = parts.back();
      parts.pop_back();
      if (IsLogic(part)) {
        for (size_t i = part.operands().size(); i-- > 0;) parts.push_back(part.operand(i));
        continue;
      }
      const Expr condition = Expand(part);
      if (!DependsOn(condition, var) || analyzer_.CanTrap(condition)) continue;
      auto known = std::find_if(guards.begin(), guards.end(),
                                [&](const Guard& guard) { return guard.node == part; });
      if (known != guards.end() && known->whole) continue;
      Solution solution = Intervalwise(condition, var, range);
      const Intervals open = Complement(Union(solution.always, solution.never), range);
      if (!solution.exact && !open.empty()) Exactly(condition, var, range, solution);
      // Of interest where the whole is open, or another condition with the same part.
      if (known == guards.end()) {
        guards.push_back({part, condition, false, {}, {}});
        known = std::prev(guards.end());
      }
      known->always = Union(known->always, Intersect(solution.always, rest));
      known->never = Union(known->never, Intersect(solution.never, rest));
    }
  }

  // By isl; keeps what is known if that gives up.
  void Exactly(Expr condition, Var var, Interval range, Solution& solution) {
    std::vector<BoundedVar> others;
    for (const BoundedVar& bound : bounds_) {
      if (bound.var != var) others.push_back(bound);
    }
    auto split = sets_.SplitByTruth(condition, var, range, others);
    if (!split) return;
    solution.always = std::move(split->always);
    // Values that the other loops do not reach are in both.
    solution.never = Intersect(split->never, Complement(solution.always, range));
  }

  // By intervals: exact for a linear comparison over a box.
  Solution Intervalwise(Expr condition, Var var, Interval range) {
    const Intervals all = {range};
    switch (condition.kind()) {
      case ExprKind::kIntImm:
        return condition.int_value() != 0 ? Solution{all, {}, true} : Solution{{}, all, true};
      case ExprKind::kNot: {
        Solution solution = Intervalwise(condition.operand(0), var, range);
        std::swap(solution.always, solution.never);
        return solution;
      }
      case ExprKind::kAnd:
      case ExprKind::kOr: {
        const Solution a = Intervalwise(condition.operand(0), var, range);
        const Solution b = Intervalwise(condition.operand(1), var, range);
        Solution both;
        const bool is_and = condition.Is(ExprKind::kAnd);
        both.always = is_and ? Intersect(a.always, b.always) : Union(a.always, b.always);
        both.never = is_and ? Union(a.never, b.never) : Intersect(a.never, b.never);
        // Two conditions may exclude each other without either being constant, unless they are
        // about different variables.
        both.exact =
            a.exact && b.exact && Independent(condition.operand(0), condition.operand(1), var);
        return both;
      }
      case ExprKind::kLt:
      case ExprKind::kLe:
        break;
      default:
        return {};
    }
    if (condition.operand(0).type() != ir::Type::kI32 &&
        condition.operand(0).type() != ir::Type::kI64) {
      return {};
    }
    // coefficient * var + rest < 0
    arith::LinearForm form = analyzer_.Form(condition.operand(0));
    if (!form.Add(analyzer_.Form(condition.operand(1)), -1)) return {};
    if (condition.Is(ExprKind::kLe) && !form.AddConstant(-1)) return {};
    Solution solution;
    solution.exact = true;
    for (const arith::LinearForm::Term& term : form.terms()) {
      if (term.atom == var) continue;
      if (!term.atom.Is(ExprKind::kVar) || !HasConstantBounds(term.atom)) solution.exact = false;
      // `var` in another atom: that one's range covers all values of `var`.
      if (!term.atom.Is(ExprKind::kVar) && ir::UsesVar(term.atom, var)) solution.exact = false;
    }
    int64_t coefficient = form.CoefficientOf(var);
    // A range of one value is a constant in forms.
    if (!form.AddTerm(var, -coefficient)) return {};
    const ConstRange rest = analyzer_.Range(form);
    if (!rest.IsBounded()) return solution;
    solution.always = HalfLine(coefficient, rest.max, range);
    // Not (coefficient * var + min < 0): -coefficient * var - min - 1 < 0.
    solution.never = HalfLine(-coefficient, -rest.min - 1, range);
    return solution;
  }

  // The x in `range` with coefficient * x + constant < 0.
  static Intervals HalfLine(int64_t coefficient, int64_t constant, Interval range) {
    if (coefficient == 0) return constant < 0 ? Intervals{range} : Intervals{};
    Interval part = range;
    if (coefficient > 0) {  // x <= (-constant - 1) / coefficient
      part.last = std::min(part.last, arith::FloorDiv(-constant - 1, coefficient));
    } else {  // x >= (constant + 1) / -coefficient, rounded up
      part.first = std::max(part.first, -arith::FloorDiv(-constant - 1, -coefficient));
    }
    return part.first <= part.last ? Intervals{part} : Intervals{};
  }

  // Loop variables between constants may have any of their values together with any of the others'.
  bool HasConstantBounds(Var var) {
    for (const BoundedVar& bound : bounds_) {
      if (bound.var == var) return bound.min.IsConst() && bound.extent.IsConst();
    }
    return true;  // a parameter
  }

  bool Independent(Expr a, Expr b, Var var) {
    const absl::flat_hash_set<Var> in_a = ir::FreeVars(a);
    for (Var x : ir::FreeVars(b)) {
      if (x != var && in_a.contains(x)) return false;
    }
    return true;
  }

  ir::Context& context_;
  const LoopPartitionOptions options_;
  LoopPartitionStats* const stats_;
  Analyzer analyzer_;
  arith::IntegerSets sets_;
  // Enclosing loops, with the range of the piece that is worked on.
  std::vector<BoundedVar> bounds_;
  // Thread loops of constant range with nothing but lets, ifs and allocations in between.
  std::vector<std::pair<Stmt, Interval>> threads_;
  ir::VarMap lets_;
  // While a loop is planned: inner loops whose bounds depend on its variable.
  std::vector<Var> triangular_;
  int pragmas_ = 0;
  int nest_pieces_ = 0;
  absl::flat_hash_map<Stmt, bool> has_thread_loop_;
  absl::flat_hash_map<Stmt, bool> has_guard_;
  absl::flat_hash_map<Expr, bool> may_guard_;
};

}  // namespace

std::string LoopPartitionStats::ToString() const {
  std::string text;
  for (const Loop& loop : loops) {
    for (const Guard& guard : loop.guards) {
      StrAppend(&text, loop.variable, " in ", arith::ToString({loop.range}), ": ", guard.condition,
                ": always ", arith::ToString(guard.always), ", never ",
                arith::ToString(guard.never), guard.taken ? "" : " (over the limit)", "\n");
    }
    StrAppend(&text, "  pieces");
    for (const Interval& piece : loop.pieces) StrAppend(&text, " ", arith::ToString({piece}));
    StrAppend(&text, "\n");
  }
  return text;
}

absl::StatusOr<bool> LoopPartition(ir::Function& function, const LoopPartitionOptions& options,
                                   LoopPartitionStats* stats) {
  Partitioner partitioner(*function.context, options, stats);
  const Stmt body = partitioner.Visit(function.body);
  const bool changed = body != function.body;
  function.body = body;
  if (stats != nullptr) stats->isl_questions = partitioner.isl_questions();
  return changed;
}

}  // namespace polynao
