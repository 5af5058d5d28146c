#include "compiler/passes/loop_partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"

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

// Where guards stand below a loop: under which branches of which ifs, whose conditions are facts
// there. Place 0 is under none of them. One node may be a guard at several places, and be constant
// at one of them only:
//
//   if (i + j < 14) { if (i + j < 20) { A } }  if (i + j < 20) { B }
class Places {
 public:
  static constexpr int kUnknown = -1;

  struct Place {
    int outside;              // the place around it
    std::vector<Expr> facts;  // of the branch alone
  };

  // Adds the place in a branch of `s`; the place around it if the branch tells nothing.
  int Add(int place, Stmt s, bool branch, std::vector<Expr> facts) {
    int inside = place;
    if (!facts.empty()) {
      inside = static_cast<int>(places_.size());
      places_.push_back({place, std::move(facts)});
    }
    branches_[{place, s, branch}] = inside;
    return inside;
  }

  // kUnknown in what nobody looked into.
  int Find(int place, Stmt s, bool branch) const {
    const auto it = branches_.find({place, s, branch});
    return it == branches_.end() ? kUnknown : it->second;
  }

  // All facts at `place`, inner ones first.
  std::vector<Expr> FactsAt(int place) const {
    std::vector<Expr> facts;
    for (; place > 0; place = places_[place].outside) {
      facts.insert(facts.end(), places_[place].facts.begin(), places_[place].facts.end());
    }
    return facts;
  }

 private:
  std::vector<Place> places_ = {{kUnknown, {}}};
  absl::flat_hash_map<std::tuple<int, Stmt, bool>, int> branches_;
};

// Truth of conditions, by place and node; for an integer min or max, of "the first operand is <= the
// second".
using PlacedExpr = std::pair<int, Expr>;
using Truths = absl::flat_hash_map<PlacedExpr, bool>;

// EliminateCondition of Algorithm 2.
class Eliminator {
 public:
  Eliminator(const Truths& truths, const Places& places, Analyzer& analyzer, ir::Context& context)
      : truths_(truths), places_(places), analyzer_(analyzer), context_(context) {}

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
    const int outside = std::exchange(place_, places_.Find(place_, s, branch));
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
      const bool first = it->second == e.Is(ExprKind::kMin);
      const Expr dropped = e.operand(first ? 1 : 0);
      result = analyzer_.CanTrap(dropped) ? RewriteOperands(e) : Rewrite(e.operand(first ? 0 : 1));
    } else {
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
  const Places& places_;
  Analyzer& analyzer_;
  ir::Context& context_;
  int place_ = 0;
  absl::flat_hash_map<PlacedExpr, Expr> done_;
};

// ---- planning and rewriting ---------------------------------------------------------------------

class Partitioner {
 public:
  Partitioner(const ir::Function& function, const LoopPartitionOptions& options,
              LoopPartitionStats* stats)
      : context_(*function.context),
        options_(options),
        stats_(stats),
        analyzer_(context_),
        sets_({.max_intervals = options.max_pieces}) {
    // What holds throughout.
    for (Expr fact : ParameterFacts(function)) Assume(fact, true);
  }

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
    int place;
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
  struct Pieces {
    std::vector<Piece> list;
    Places places;
    std::vector<Guard> guards;
  };
  // Guards below a loop, in the order of the program, as they are found.
  struct Collection {
    Var var;
    std::vector<Guard> guards;
    Places places;
    absl::flat_hash_set<PlacedExpr> seen;
    absl::flat_hash_set<Var> inner;  // what is bound below the loop
  };
  // A piece of a loop whose bounds are not constant: start <= variable < end, of which the loop may
  // have none.
  struct Part {
    Expr start, end;
    Truths truths;
    std::vector<Expr> facts;  // of the variable, besides its bounds
  };
  // A comparison that is constant below `low`, the opposite from `high` on.
  struct Cut {
    PlacedExpr guard;
    Expr condition;
    Expr low, high;
    bool truth_below;
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
    const size_t outside = facts_.size();
    Assume(Expand(s.cond()), truth);
    const Stmt result = Visit(branch);
    facts_.resize(outside);
    return result;
  }

  // What `condition` being `truth` says of values that nothing changes, one comparison each.
  void AddFacts(Expr condition, bool truth, std::vector<Expr>& facts) {
    if (condition.Is(ExprKind::kNot)) return AddFacts(condition.operand(0), !truth, facts);
    if (condition.Is(truth ? ExprKind::kAnd : ExprKind::kOr)) {
      AddFacts(condition.operand(0), truth, facts);
      AddFacts(condition.operand(1), truth, facts);
      return;
    }
    if (condition.IsConst() || analyzer_.CanTrap(condition)) return;
    facts.push_back(truth ? condition : Negated(condition));
  }

  Expr Negated(Expr condition) {
    if (condition.Is(ExprKind::kLt)) return condition.operand(1) <= condition.operand(0);
    if (condition.Is(ExprKind::kLe)) return condition.operand(1) < condition.operand(0);
    return context_.Not(condition);
  }

  void Assume(Expr condition, bool truth) {
    analyzer_.Assume(condition, truth);
    AddFacts(condition, truth, facts_);
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
      const Pieces pieces = Plan(s, s.body(), *range);
      Record(s.var(), *range, pieces);
      return SplitLoop(s, pieces);
    }
    if (!range && HasGuard(s.body()) && !HasThreadLoop(s.body())) {
      if (const std::optional<Stmt> split = SplitSymbolicLoop(s)) return *split;
    }
    Analyzer::Scope scope(analyzer_);
    Enter(s, range);
    const Stmt body = Visit(s.body());
    bounds_.pop_back();
    return WithChildren(s, {body});
  }

  Stmt Eliminate(Stmt s, const Truths& truths, const Places& places) {
    return truths.empty() ? s : Eliminator(truths, places, analyzer_, context_).Rewrite(s);
  }

  Stmt SplitLoop(Stmt s, const Pieces& pieces) {
    std::vector<Stmt> loops;
    for (const Piece& piece : pieces.list) {
      const Stmt body = Eliminate(s.body(), piece.truths, pieces.places);
      if (body.IsEmpty() && !s.body().IsEmpty()) continue;
      Stmt loop =
          pieces.list.size() == 1
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

  // ---- loops of bounds that are not constant ----

  // `e` in the shortest form that cannot leave its type; a bound must not stop the program where the
  // original did not, not even that of a piece without iterations.
  std::optional<Expr> Safe(Expr e) {
    const Expr simple = analyzer_.Simplify(e);
    if (!analyzer_.CanOverflow(simple)) return simple;
    if (!analyzer_.CanOverflow(e)) return e;
    return std::nullopt;
  }

  std::optional<Expr> ExtentOf(const Part& part) {
    if (const auto extent = Safe(part.end - part.start)) return extent;
    return Safe(ir::Max(part.end, part.start) - part.start);
  }

  bool IsEmptyPart(const Part& part) { return analyzer_.CanProve(part.end <= part.start); }

  // `part` below `border`, and from there on; nothing where there is provably no iteration. False if
  // bounds cannot be written.
  bool SplitPart(Var var, const Part& part, Expr border, std::optional<Part>& below,
                 std::optional<Part>& above) {
    const auto end = Safe(ir::Min(part.end, border)), start = Safe(ir::Max(part.start, border));
    if (!start || !end) return false;
    below = part;
    below->end = *end;
    below->facts.push_back(var < border);
    above = part;
    above->start = *start;
    above->facts.push_back(border <= var);
    if (IsEmptyPart(*below)) below.reset();
    if (IsEmptyPart(*above)) above.reset();
    return (!below || ExtentOf(*below)) && (!above || ExtentOf(*above));
  }

  // Like a loop of constant bounds, first at constants, over all values the variable might have:
  //
  //   for (i, 0, n) if (i < 14) A  -->  for (i, 0, min(n, 14)) A
  //
  // then each piece where a comparison changes at a value that is known before the loop. Nothing if
  // the bounds read memory or cannot be written so that they never overflow.
  std::optional<Stmt> SplitSymbolicLoop(Stmt s) {
    const Var var = s.var();
    const Expr min = Expand(s.min()), extent = Expand(s.extent());
    if (analyzer_.CanTrap(min) || analyzer_.CanTrap(extent)) return std::nullopt;
    Analyzer::Scope bounds_scope(analyzer_);
    AssumeFits(min);
    AssumeFits(extent);
    const auto start = Safe(min), end = Safe(min + extent);
    if (!start || !end) return std::nullopt;
    const Part whole = {*start, *end, {}, {}};
    std::vector<Part> parts = {whole};
    Pieces pieces;
    {
      Analyzer::Scope scope(analyzer_);
      const size_t outside = facts_.size();
      analyzer_.BindLoop(var, min, extent);
      Assume(*start <= var, true);
      Assume(var < *end, true);
      if (const ConstRange range = analyzer_.Range(var); range.IsBounded() && !range.IsEmpty()) {
        pieces = Plan(s, s.body(), {range.min, range.max}, /*is_symbolic=*/true);
      }
      facts_.resize(outside);
    }
    for (const Piece& piece : pieces.list) {
      std::optional<Part> below, above;
      if (piece.range.first != pieces.list.front().range.first) {
        const Expr border = context_.Int(var.type(), piece.range.first);
        if (!SplitPart(var, parts.back(), border, below, above) || !below || !above) {
          // All or nothing.
          nest_pieces_ -= static_cast<int>(pieces.list.size()) - 1;
          pieces = {};
          parts = {whole};
          break;
        }
        parts.back() = *below;
        parts.push_back(*above);
      }
      parts.back().truths = piece.truths;
    }
    if (!pieces.list.empty()) {
      Record(var, {pieces.list.front().range.first, pieces.list.back().range.last}, pieces, whole,
             parts);
    }

    std::vector<Stmt> loops;
    int limit = options_.max_pieces - static_cast<int>(parts.size()) + 1;
    for (const Part& part : parts) {
      const Stmt body = Eliminate(s.body(), part.truths, pieces.places);
      if (body.IsEmpty() && !s.body().IsEmpty()) continue;
      Collection found;
      const std::vector<Part> smaller = PlanSymbolic(s, body, part, limit, found);
      limit -= static_cast<int>(smaller.size()) - 1;
      for (const Part& small : smaller) {
        const Stmt inner = Eliminate(body, small.truths, found.places);
        if (inner.IsEmpty() && !body.IsEmpty()) continue;
        const bool is_whole = parts.size() == 1 && smaller.size() == 1;
        Stmt loop = is_whole ? context_.Rebuild(s, s.operands(), {inner})
                             : context_.For(var, small.start, *ExtentOf(small), inner, s.for_kind(),
                                            s.name());
        const Stmt visited = VisitPart(loop, small, !loops.empty());
        if (!visited.IsEmpty()) loops.push_back(visited);
      }
    }
    return context_.Seq(loops);
  }

  // The program has got past the evaluation of the bound `e`, so nothing in it wrapped:
  // (n + 3) / 4 says n <= 2^31 - 4. Only from sums of one variable.
  void AssumeFits(Expr e) {
    ir::ForEachExpr(e, [&](Expr x) {
      if (!x.Is(ExprKind::kAdd) && !x.Is(ExprKind::kSub)) return;
      const ConstRange fits = ConstRange::OfType(x.type());
      const arith::LinearForm form = analyzer_.Form(x);
      if (x.type() != ir::Type::kI32 || form.terms().size() != 1) return;
      const arith::LinearForm::Term term = form.terms()[0];
      if (!term.atom.Is(ExprKind::kVar) || term.coefficient != 1) return;
      const ConstRange shifted = fits - ConstRange::Point(form.constant());
      analyzer_.BindRange(term.atom, Intersect(analyzer_.Range(term.atom), shifted));
    });
  }

  // What is inside of a piece, with new bindings if `again`.
  Stmt VisitPart(Stmt loop, const Part& part, bool again) {
    const Var var = loop.var();
    if (again) loop = ir::CloneWithFreshBindings(loop);
    Analyzer::Scope scope(analyzer_);
    const size_t outside = facts_.size();
    Enter(loop, std::nullopt);
    for (Expr fact : part.facts) Assume(ir::Substitute(fact, {{var, loop.var()}}), true);
    const Stmt inner = Visit(loop.body());
    facts_.resize(outside);
    bounds_.pop_back();
    return WithChildren(loop, {inner});
  }

  // The pieces of `whole` by the comparisons in `body`, at most `limit`.
  std::vector<Part> PlanSymbolic(Stmt loop, Stmt body, const Part& whole, int limit,
                                 Collection& found) {
    const Var var = loop.var();
    found.var = var;
    std::vector<Part> parts = {whole};
    if (!HasGuard(body)) return parts;
    const size_t outer_bounds = bounds_.size();
    const ir::VarMap outer_lets = lets_;
    std::vector<Cut> cuts;
    {
      Analyzer::Scope scope(analyzer_);
      analyzer_.BindLoop(var, Expand(loop.min()), Expand(loop.extent()));
      for (Expr fact : whole.facts) analyzer_.Assume(fact);
      Collect(body, 0, pragmas_ > 0 || !options_.only_in_pragmas, found);
      FindCuts(found, cuts);
    }
    bounds_.resize(outer_bounds);
    lets_ = outer_lets;
    triangular_.clear();

    limit = std::min(limit, std::max(0, options_.max_nest_pieces - nest_pieces_) + 1);
    LoopPartitionStats::Loop record = {.variable = std::string(var.name()),
                                       .bounds = RangeText(whole.start, whole.end)};
    for (const Cut& cut : cuts) {
      std::vector<Part> with;
      bool can_write = !analyzer_.CanOverflow(cut.low) && !analyzer_.CanOverflow(cut.high);
      for (size_t i = 0; i < parts.size() && can_write; ++i) {
        std::optional<Part> below, middle, above;
        can_write = SplitPart(var, parts[i], cut.low, below, above);
        if (can_write && above && cut.low != cut.high) {
          const Part rest = *above;
          can_write = SplitPart(var, rest, cut.high, middle, above);
        }
        if (below) below->truths[cut.guard] = cut.truth_below;
        if (above) above->truths[cut.guard] = !cut.truth_below;
        for (const std::optional<Part>& part : {below, middle, above}) {
          if (part) with.push_back(*part);
        }
      }
      if (!can_write || with.empty()) continue;
      const bool taken = static_cast<int>(with.size()) <= limit;
      if (taken) parts = std::move(with);
      const std::string low = ir::Print(cut.low), high = ir::Print(cut.high);
      const std::string below = StrCat("[.., ", low, ")"), above = StrCat("[", high, ", ..)");
      record.guards.push_back({.condition = ir::Print(cut.condition),
                               .true_set = cut.truth_below ? below : above,
                               .false_set = cut.truth_below ? above : below,
                               .both_set = low == high ? "none" : StrCat("[", low, ", ", high, ")"),
                               .taken = taken});
    }
    nest_pieces_ += static_cast<int>(parts.size()) - 1;
    if (stats_ != nullptr && !record.guards.empty()) {
      for (const Part& part : parts) {
        record.piece_bounds.push_back(RangeText(part.start, part.end));
      }
      stats_->loops.push_back(std::move(record));
    }
    return parts;
  }

  static std::string RangeText(Expr start, Expr end) {
    return StrCat("[", ir::Print(start), ", ", ir::Print(end), ")");
  }

  // The comparisons of the guards, and of their parts, that change at values known before the loop.
  void FindCuts(const Collection& found, std::vector<Cut>& cuts) {
    absl::flat_hash_set<PlacedExpr> seen;
    for (const Guard& guard : found.guards) {
      std::vector<Expr> parts = {guard.node};
      while (!parts.empty()) {
        const Expr part = parts.back();
        parts.pop_back();
        if (IsLogic(part)) {
          for (size_t i = part.operands().size(); i-- > 0;) parts.push_back(part.operand(i));
          continue;
        }
        if (!seen.insert({guard.place, part}).second) continue;
        // A min or max stands for its comparison.
        const Expr condition = part == guard.node ? guard.condition : Expand(part);
        if (auto cut = FindCut(condition, found)) {
          cut->guard = {guard.place, part};
          cuts.push_back(*cut);
        }
      }
    }
  }

  // coefficient * var + inner + outer < 0, where `inner` is a sum of variables of inner loops of
  // constant bounds, and `outer` is known before the loop.
  std::optional<Cut> FindCut(Expr condition, const Collection& found) {
    const bool is_le = condition.Is(ExprKind::kLe);
    const ir::Type type = found.var.type();
    if (!(is_le || condition.Is(ExprKind::kLt)) || condition.operand(0).type() != type ||
        analyzer_.CanTrap(condition)) {
      return std::nullopt;
    }
    arith::LinearForm form = analyzer_.Form(condition.operand(0));
    if (!form.Add(analyzer_.Form(condition.operand(1)), -1)) return std::nullopt;
    if (is_le && !form.AddConstant(-1)) return std::nullopt;
    const int64_t coefficient = form.CoefficientOf(found.var);
    if (coefficient == 0 || !form.AddTerm(found.var, -coefficient)) return std::nullopt;
    arith::LinearForm inner, outer = arith::LinearForm::Constant(form.constant());
    for (const arith::LinearForm::Term& term : form.terms()) {
      const bool is_inner = term.atom.Is(ExprKind::kVar) && found.inner.contains(term.atom);
      if (is_inner && !HasConstantBounds(term.atom)) return std::nullopt;
      if (!is_inner) {
        for (Var x : ir::FreeVars(term.atom)) {
          if (x == found.var || found.inner.contains(x)) return std::nullopt;
        }
        if (term.atom.type() != type) return std::nullopt;
      }
      if (!(is_inner ? inner : outer).AddTerm(term.atom, term.coefficient)) return std::nullopt;
    }
    const ConstRange range = analyzer_.Range(inner);
    if (outer.IsConstant() || !range.IsBounded()) return std::nullopt;
    // True where coefficient * var < -outer - range.max, false where it is not even below
    // -outer - range.min.
    const auto where_true = Border(outer, range.max, coefficient, type);
    const auto where_false = Border(outer, range.min, coefficient, type);
    if (!where_true || !where_false) return std::nullopt;
    Cut cut = {.guard = {}, .condition = condition, .low = {}, .high = {}, .truth_below = {}};
    cut.truth_below = coefficient > 0;
    cut.low = cut.truth_below ? *where_true : *where_false;
    cut.high = cut.truth_below ? *where_false : *where_true;
    return cut;
  }

  // The first x with coefficient * x + outer + inner >= 0, or with < 0 for a negative coefficient.
  std::optional<Expr> Border(const arith::LinearForm& outer, int64_t inner, int64_t coefficient,
                             ir::Type type) {
    // floor((-outer - inner - 1) / coefficient) + 1, and floor((outer + inner) / -coefficient) + 1.
    const int64_t sign = coefficient > 0 ? -1 : 1;
    const int64_t divisor = coefficient > 0 ? coefficient : -coefficient;
    arith::LinearForm numerator;
    if (!numerator.Add(outer, sign) || !numerator.AddConstant(sign * inner) ||
        !numerator.AddConstant((sign - 1) / 2 + (divisor == 1 ? 1 : 0))) {
      return std::nullopt;
    }
    const ConstRange fits = ConstRange::OfType(type);
    if (!fits.Contains(numerator.constant()) || !fits.Contains(divisor)) return std::nullopt;
    for (const arith::LinearForm::Term& term : numerator.terms()) {
      if (!fits.Contains(term.coefficient)) return std::nullopt;
    }
    const Expr sum = arith::SumExpr(
        context_, type, arith::InPrintingOrder(numerator, [](Expr) { return uint64_t{0}; }),
        numerator.constant());
    if (divisor == 1) return sum;
    return sum / context_.Int(type, divisor) + context_.Int(type, 1);
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
          const size_t outside = facts_.size();
          Assume(Expand(s.cond()), truth);
          branches.push_back(Descend(truth ? s.then_case() : s.else_case()));
          facts_.resize(outside);
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
    const Pieces plan = Plan(loop, s, range);
    Record(loop.var(), range, plan);
    const std::vector<Piece>& pieces = plan.list;
    std::vector<Stmt> bodies;
    bool first = true;
    for (const Piece& piece : pieces) {
      Stmt body = Eliminate(s, piece.truths, plan.places);
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

  void AddGuard(Expr node, Expr condition, int place, Collection& found) {
    if (!DependsOn(condition, found.var) || !found.seen.insert({place, node}).second) return;
    found.guards.push_back({place, node, condition, true, {}, {}});
  }

  void AddGuardsIn(Expr e, bool in_bound, int place, Collection& found) {
    if (!MayGuard(e)) return;
    ir::ForEachExpr(e, [&](Expr x) {
      if (x.Is(ExprKind::kSelect)) {
        AddGuard(x.operand(0), Expand(x.operand(0)), place, found);
      } else if (in_bound && IsMinMax(x)) {
        AddGuard(x, Expand(x.operand(0) <= x.operand(1)), place, found);
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

  // Finds the guards on the variable in `s`. Binds the loops and lets inside on the way, so that the
  // guards' other variables have bounds.
  void Collect(Stmt s, int place, bool eligible, Collection& found) {
    if (!HasGuard(s)) return;
    if (eligible) {
      if (s.Is(StmtKind::kIf)) AddGuard(s.cond(), Expand(s.cond()), place, found);
      for (Expr e : s.operands()) AddGuardsIn(e, s.Is(StmtKind::kFor), place, found);
    }
    if (s.Is(StmtKind::kIf)) {
      const Expr condition = Expand(s.cond());
      for (bool truth : {true, false}) {
        const Stmt branch = truth ? s.then_case() : s.else_case();
        if (!HasGuard(branch)) continue;
        std::vector<Expr> facts;
        AddFacts(condition, truth, facts);
        Collect(branch, found.places.Add(place, s, truth, std::move(facts)), eligible, found);
      }
      return;
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
      found.inner.insert(s.var());
      if (DependsOn(bound.min, found.var) || DependsOn(bound.extent, found.var)) {
        triangular_.push_back(s.var());
      }
    }
    if (s.Is(StmtKind::kLet)) {
      found.inner.insert(s.var());
      BindLet(s);
    }
    for (Stmt child : s.children()) {
      Collect(child, place, eligible || s.Is(StmtKind::kPragma), found);
    }
  }

  // `i < n - 7` is false from 2^31 - 8 on because n has 32 bits; such a piece serves nobody.
  static void DropFarIntervals(Intervals& intervals, Interval range) {
    constexpr int64_t kFar = int64_t{1} << 24;
    auto is_far = [](int64_t value) { return value < -kFar || value > kFar; };
    std::erase_if(intervals, [&](const Interval& interval) {
      return (interval.first > range.first && is_far(interval.first)) ||
             (interval.last < range.last && is_far(interval.last));
    });
  }

  // FindPartition of Algorithm 2: the pieces of `range`, the values of the variable of `loop`, by
  // the guards in `body`.
  Pieces Plan(Stmt loop, Stmt body, Interval range, bool is_symbolic = false) {
    const Var var = loop.var();
    if (!HasGuard(body)) return {{{range, {}}}, {}, {}};
    Collection found;
    found.var = var;
    const size_t outer_bounds = bounds_.size();
    const ir::VarMap outer_lets = lets_;
    {
      Analyzer::Scope scope(analyzer_);
      // The loop's own range; a thread loop has one from outside already.
      analyzer_.BindRange(var, {range.first, range.last});
      Collect(body, 0, pragmas_ > 0 || !options_.only_in_pragmas, found);
      Solve(var, range, found);
    }
    bounds_.resize(outer_bounds);
    lets_ = outer_lets;
    triangular_.clear();
    std::vector<Guard>& guards = found.guards;
    if (is_symbolic) {
      for (Guard& guard : guards) {
        DropFarIntervals(guard.always, range);
        DropFarIntervals(guard.never, range);
      }
    }

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
          piece.truths[{guard.place, guard.node}] = true;
        } else if (all_in(guard.never)) {
          piece.truths[{guard.place, guard.node}] = false;
        }
      }
      pieces.push_back(std::move(piece));
    }
    nest_pieces_ += static_cast<int>(pieces.size()) - 1;
    return {std::move(pieces), std::move(found.places), std::move(guards)};
  }

  // `whole` and `parts`: the loop and the pieces where the bounds of the loop are not constant.
  void Record(Var var, Interval range, const Pieces& pieces, std::optional<Part> whole = {},
              absl::Span<const Part> parts = {}) {
    if (stats_ == nullptr) return;
    LoopPartitionStats::Loop loop = {
        .variable = std::string(var.name()),
        .bounds = whole ? RangeText(whole->start, whole->end) : arith::ToString({range})};
    // The ends of the range are then those of the type.
    auto text = [&](const Intervals& intervals) {
      if (!whole || intervals.empty()) return arith::ToString(intervals);
      std::string result;
      for (const Interval& interval : intervals) {
        StrAppend(&result, result.empty() ? "[" : " [",
                  interval.first == range.first ? ".." : StrCat(interval.first), ", ",
                  interval.last == range.last ? ".." : StrCat(interval.last), "]");
      }
      return result;
    };
    absl::flat_hash_set<std::string> seen;
    for (const Guard& guard : pieces.guards) {
      if (guard.always.empty() && guard.never.empty()) continue;
      const Intervals both = Complement(Union(guard.always, guard.never), range);
      LoopPartitionStats::Guard record = {.condition = ir::Print(guard.condition),
                                          .always = guard.always,
                                          .never = guard.never,
                                          .true_set = text(guard.always),
                                          .false_set = text(guard.never),
                                          .both_set = text(both),
                                          .taken = guard.taken};
      // At several places with the same result: once.
      if (!seen.insert(StrCat(record.condition, ":", record.true_set, ":", record.false_set))
               .second) {
        continue;
      }
      loop.guards.push_back(std::move(record));
    }
    if (loop.guards.empty()) return;
    for (const Piece& piece : pieces.list) {
      loop.pieces.push_back(piece.range);
      if (!whole) loop.piece_bounds.push_back(arith::ToString({piece.range}));
    }
    for (const Part& part : parts) loop.piece_bounds.push_back(RangeText(part.start, part.end));
    stats_->loops.push_back(std::move(loop));
  }

  // ---- truth of guards by intervals of the variable ----

  struct Solution {
    Intervals always, never;
    // Whether no more values could be in either.
    bool exact = false;
  };

  void Solve(Var var, Interval range, Collection& found) {
    std::vector<Guard>& guards = found.guards;
    const size_t whole_guards = guards.size();
    std::optional<Analyzer::Scope> scope;
    std::vector<Expr> facts = facts_;
    int place = 0;
    for (size_t i = 0; i < whole_guards; ++i) {
      if (guards[i].place != place) {
        place = guards[i].place;
        scope.reset();
        scope.emplace(analyzer_);
        facts = found.places.FactsAt(place);
        for (Expr fact : facts) analyzer_.Assume(fact);
        facts.insert(facts.end(), facts_.rbegin(), facts_.rend());
      }
      // What reads memory may be evaluated for its trap and stays; its parts may go.
      if (!analyzer_.CanTrap(guards[i].condition)) {
        Solution solution = SolveUnder(facts, guards[i].condition, var, range);
        guards[i].always = std::move(solution.always);
        guards[i].never = std::move(solution.never);
      }
      SolveParts(i, facts, var, range, guards);
    }
    for (Guard& guard : guards) ShareImpossible(guard, range);
  }

  // Values that no other loop reaches, or that contradict the facts, are in both sets: each interval
  // of them goes to the neighbour it has in one, so that it makes no cut.
  static void ShareImpossible(Guard& guard, Interval range) {
    const Intervals both = Intersect(guard.always, guard.never);
    if (both.empty()) return;
    const Intervals possible = Complement(both, range);
    Intervals always = Intersect(guard.always, possible);
    Intervals never = Intersect(guard.never, possible);
    for (const Interval& interval : both) {
      const bool is_never = interval.first > range.first ? Contains(never, interval.first - 1)
                            : interval.last < range.last ? Contains(never, interval.last + 1)
                                                         : false;
      Intervals& side = is_never ? never : always;
      side = Union(side, {interval});
    }
    guard.always = std::move(always);
    guard.never = std::move(never);
  }

  // `condition` where all of `facts` hold.
  Solution SolveUnder(const std::vector<Expr>& facts, Expr condition, Var var, Interval range) {
    const std::vector<Expr> relevant = RelevantFacts(facts, condition, var);
    // What repeats more often than there may be pieces is constant or makes too many cuts: one period
    // tells, and is a smaller question.
    const int64_t period = PeriodOf(condition, var);
    const bool repeats = period > 0 && (range.last - range.first) / period >= options_.max_pieces &&
                         std::none_of(relevant.begin(), relevant.end(),
                                      [&](Expr fact) { return DependsOn(fact, var); });
    if (!repeats) return SolveIn(relevant, condition, var, range);
    const Interval once = {range.first, range.first + period - 1};
    const Solution solution = SolveIn(relevant, condition, var, once);
    const bool always = Complement(solution.always, once).empty();
    const bool never = Complement(solution.never, once).empty();
    return {.always = always ? Intervals{range} : Intervals{},
            .never = never ? Intervals{range} : Intervals{}};
  }

  // `relevant`: facts that tell something about `condition`.
  Solution SolveIn(const std::vector<Expr>& relevant, Expr condition, Var var, Interval range) {
    Solution solution = Intervalwise(condition, var, range);
    for (Expr fact : relevant) {
      const absl::flat_hash_set<Var> used = ir::FreeVars(fact);
      if (used.size() == 1 && used.contains(var)) {
        const Solution impossible = Intervalwise(fact, var, range);
        solution.always = Union(solution.always, impossible.never);
        solution.never = Union(solution.never, impossible.never);
        solution.exact = solution.exact && impossible.exact;
      } else if (used.size() > 1 || !(fact.Is(ExprKind::kLt) || fact.Is(ExprKind::kLe))) {
        solution.exact = false;  // a bound of one other variable is in its range
      }
    }
    const Intervals rest = Complement(Union(solution.always, solution.never), range);
    if (!solution.exact && !rest.empty()) Exactly(condition, relevant, var, range, solution);
    return solution;
  }

  // A number after which the truth of `condition` repeats as `var` grows, whatever the other variables
  // are; 0 if none is found: 8 for `var % 8 * 16 + j < 120`, 24 for `var / 8 % 3 == 1`.
  int64_t PeriodOf(Expr condition, Var var) const {
    constexpr int64_t kTooLong = int64_t{1} << 30;
    for (Var inner : triangular_) {
      if (ir::UsesVar(condition, inner)) return 0;
    }
    // A multiple of the period, if there is one: of each part the product of the divisors around
    // another, of several parts what all of them divide.
    absl::flat_hash_map<Expr, int64_t> steps;
    ir::ForEachExpr(condition, [&](Expr e) {
      int64_t step = 1;
      for (Expr operand : e.operands())
        step = std::min(kTooLong, std::lcm(step, steps.at(operand)));
      if (HasConstantDivisor(e) && ir::UsesVar(e.operand(0), var)) {
        step = std::min(kTooLong, step) * std::min(kTooLong, e.operand(1).int_value());
      }
      steps[e] = std::min(kTooLong, step);
    });
    const int64_t period = steps.at(condition);
    if (period >= kTooLong) return 0;
    // By how much each part grows whenever `var` grows by that, if it is always the same.
    absl::flat_hash_map<Expr, std::optional<int64_t>> growth;
    ir::ForEachExpr(condition, [&](Expr e) {
      growth[e] =
          e == var ? period : GrowthOver(e, [&](size_t i) { return growth.at(e.operand(i)); });
    });
    return growth.at(condition) == 0 ? period : 0;
  }

  static bool HasConstantDivisor(Expr e) {
    return (e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && ir::IsInt(e.type()) &&
           e.operand(1).Is(ExprKind::kIntImm) && e.operand(1).int_value() > 0;
  }

  // The growth of `e`, whose operand i grows by `operand(i)`.
  template <typename Operand>
  static std::optional<int64_t> GrowthOver(Expr e, const Operand& operand) {
    bool constant = true;
    for (size_t i = 0; i < e.operands().size(); ++i) constant = constant && operand(i) == 0;
    if (constant) return 0;
    for (size_t i = 0; i < e.operands().size(); ++i) {
      if (!operand(i)) return std::nullopt;
    }
    // Narrower types may wrap in between.
    if (e.type() != ir::Type::kI32 && e.type() != ir::Type::kI64) return std::nullopt;
    int64_t growth = 0;
    bool overflow = true;
    if (e.Is(ExprKind::kAdd)) {
      overflow = __builtin_add_overflow(*operand(0), *operand(1), &growth);
    } else if (e.Is(ExprKind::kSub)) {
      overflow = __builtin_sub_overflow(*operand(0), *operand(1), &growth);
    } else if (e.Is(ExprKind::kMul)) {
      for (const size_t i : {0, 1}) {
        const Expr factor = e.operand(i);
        if (!factor.Is(ExprKind::kIntImm)) continue;
        overflow = __builtin_mul_overflow(*operand(1 - i), factor.int_value(), &growth);
      }
    } else if (HasConstantDivisor(e)) {
      const int64_t divisor = e.operand(1).int_value();
      overflow = *operand(0) % divisor != 0;
      growth = e.Is(ExprKind::kDiv) ? *operand(0) / divisor : 0;
    }
    return overflow ? std::nullopt : std::optional(growth);
  }

  // The facts about variables that `condition` uses, or that such a fact connects with them: at most
  // kMaxFacts, the first ones (the innermost).
  std::vector<Expr> RelevantFacts(const std::vector<Expr>& facts, Expr condition, Var var) {
    constexpr size_t kMaxFacts = 8;
    std::vector<Expr> relevant;
    if (facts.empty()) return relevant;
    absl::flat_hash_set<Var> used = ir::FreeVars(condition);
    used.insert(var);
    std::vector<bool> taken(facts.size());
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < facts.size() && relevant.size() < kMaxFacts; ++i) {
        if (taken[i]) continue;
        const absl::flat_hash_set<Var> of_fact = ir::FreeVars(facts[i]);
        if (std::none_of(of_fact.begin(), of_fact.end(), [&](Var x) { return used.contains(x); })) {
          continue;
        }
        taken[i] = more = true;
        relevant.push_back(facts[i]);
        used.insert(of_fact.begin(), of_fact.end());
      }
    }
    return relevant;
  }

  // Where the whole guard is not constant, its parts may be.
  void SolveParts(size_t whole, const std::vector<Expr>& facts, Var var, Interval range,
                  std::vector<Guard>& guards) {
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
      const int place = guards[whole].place;
      auto known = std::find_if(guards.begin(), guards.end(), [&](const Guard& guard) {
        return guard.node == part && guard.place == place;
      });
      if (known != guards.end() && known->whole) continue;
      const Solution solution = SolveUnder(facts, condition, var, range);
      // Of interest where the whole is open, or another condition with the same part.
      if (known == guards.end()) {
        guards.push_back({place, part, condition, false, {}, {}});
        known = std::prev(guards.end());
      }
      known->always = Union(known->always, Intersect(solution.always, rest));
      known->never = Union(known->never, Intersect(solution.never, rest));
    }
  }

  // By isl; keeps what is known if that gives up.
  void Exactly(Expr condition, const std::vector<Expr>& facts, Var var, Interval range,
               Solution& solution) {
    std::vector<BoundedVar> others;
    for (const BoundedVar& bound : bounds_) {
      if (bound.var != var) others.push_back(bound);
    }
    auto split = sets_.SplitByTruth(condition, var, range, others, facts);
    if (!split) return;
    solution.always = std::move(split->always);
    solution.never = std::move(split->never);
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
      const bool is_tight =
          term.atom.Is(ExprKind::kVar) ? HasConstantBounds(term.atom) : IsRemainder(form, term);
      if (!is_tight) solution.exact = false;
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

  // Whether `term` and that of a variable are together a multiple of `x % m`, written as x - m * (x / m),
  // which takes all values from 0 to m - 1, and nothing else in `form` depends on x.
  bool IsRemainder(const arith::LinearForm& form, const arith::LinearForm::Term& term) {
    if (!term.atom.Is(ExprKind::kDiv) || !HasConstantDivisor(term.atom)) return false;
    const Expr x = term.atom.operand(0);
    const int64_t m = term.atom.operand(1).int_value();
    int64_t of_quotient = 0;
    if (!x.Is(ExprKind::kVar) || !HasConstantBounds(x) ||
        __builtin_mul_overflow(form.CoefficientOf(x), -m, &of_quotient) ||
        of_quotient != term.coefficient) {
      return false;
    }
    const ConstRange range = analyzer_.Range(x);
    return range.IsBounded() && range.max - range.min >= m - 1 &&
           std::none_of(form.terms().begin(), form.terms().end(), [&](const auto& other) {
             return other.atom != x && other.atom != term.atom && ir::UsesVar(other.atom, x);
           });
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
  // What conditions of enclosing ifs, the function's attributes and its buffers say, outermost
  // first. Nothing in it reads memory.
  std::vector<Expr> facts_;
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
  Partitioner partitioner(function, options, stats);
  const Stmt body = partitioner.Visit(function.body);
  const bool changed = body != function.body;
  function.body = body;
  if (stats != nullptr) stats->isl_questions = partitioner.isl_questions();
  return changed;
}

}  // namespace polynao
