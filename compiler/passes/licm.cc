// Method: one walk with a stack of the loops around. Places are counted by loops: place p is in front
// of loops_[p], inside of all before it. An expression at place d can move to place p if
//   - its variables are bound at p: Info::depths, the places of bindings;
//   - loops p .. d-1 write no memory that it loads, and none of them is a wall (thread loops);
//   - it does not trap where it was not evaluated before: certain_from_.
// It goes to the first such place. Operands of what moves are looked at again from there, and may
// move further. loops_[p].lifted collects the lets, which are put around the loop when it is left.
#include "compiler/passes/licm.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr_map.h"
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

// Most programs need one run, and none that was written by hand more than three.
constexpr int kMaxRuns = 4;
constexpr int kNowhere = std::numeric_limits<int>::max();

// Of a loop out of which more could move than may be alive: what each value spares, what it must
// spare to leave, and how many leave that spare just that.
struct Crowd {
  absl::flat_hash_map<Expr, double> spared;
  double bar = 0;
  int at_bar = 0;
};
using Crowds = absl::flat_hash_map<Stmt, Crowd>;

class Mover {
 public:
  Mover(const ir::Function& function, const Target& target, const LicmOptions& options,
        Crowds crowds, LicmStats& stats, bool wants_text)
      : function_(function),
        context_(*function.context),
        options_(options),
        crowds_(std::move(crowds)),
        stats_(stats),
        wants_text_(wants_text),
        effects_(function, target.instructions ? &target.instructions->intrinsics() : nullptr) {
    effects_.Writes(function.body);  // of all loops, in one walk
  }

  // Loops without room for all that could leave them, for another walk of the same function.
  Crowds TakeCrowds() { return std::move(found_crowds_); }

  Stmt Walk(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return For(s);
      case StmtKind::kIf: {
        const Expr cond = Moved(s.cond(), /*strict=*/true);
        const int certain = std::exchange(certain_from_, kNowhere);
        Stmt branches[2];
        for (const bool truth : {true, false}) {
          facts_.push_back({s, truth});
          branches[truth ? 0 : 1] = Walk(truth ? s.then_case() : s.else_case());
          facts_.pop_back();
        }
        certain_from_ = certain;
        return context_.Rebuild(s, {cond}, branches);
      }
      case StmtKind::kLet:
        return Let(s);
      case StmtKind::kAllocate:
        places_[s.buffer().node()] = Here();
        allocations_.insert(s.buffer().node());
        return context_.Rebuild(s, {}, {Walk(s.body())});
      case StmtKind::kStore: {
        std::vector<Expr> operands;
        for (Expr index : s.indices()) operands.push_back(Moved(index, /*strict=*/true));
        const bool strict = !allocations_.contains(s.buffer().node());
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
  struct Loop {
    Stmt s;
    // Whether it runs its body at least once.
    bool runs = false;
    // Whether what happens in it costs nothing.
    bool unrolled = false;
    // Whether nothing may leave it.
    bool wall = false;
    // What is known in front of it: the first so many facts.
    size_t facts = 0;
    std::unique_ptr<Analyzer> analyzer = nullptr;
    // What moved to in front of it, in order, and by expression.
    std::vector<std::pair<ir::Var, Expr>> lifted = {};
    absl::flat_hash_map<Expr, ir::Var> known = {};
    // How many moved values are alive in it, and what those spare that could be.
    int live = 0;
    absl::flat_hash_map<Expr, double> spared = {};
    bool has_no_room = false;
    int at_bar = 0;  // how many have left that spare just what they must
  };

  struct Fact {
    Stmt s;  // a loop or let around, or an if whose condition is `truth`
    bool truth = true;
  };

  // What does not depend on where an expression stands.
  struct Info {
    // Bit p: it uses a variable or buffer bound at place p (63: there or deeper).
    uint64_t depths = 0;
    // Whether it makes sense by itself: uses no variable of a let expression around it.
    bool closed = true;
    bool loads_allocation = false;
  };

  // Where an expression can move to from the innermost loop, and what that spares.
  struct Plan {
    int place = 0;
    int cost = 0;
  };

  // What an expression became, evaluated at `place` after the members of these names.
  struct Done {
    int place;
    int certain_from;
    bool strict;
    Expr result;
  };

  static uint64_t DepthBit(int place) { return uint64_t{1} << std::min(place, 63); }

  int Here() const { return static_cast<int>(loops_.size()); }

  int PlaceOf(const void* node) const {
    auto it = places_.find(node);
    return it == places_.end() ? 0 : it->second;  // parameters are bound in front of everything
  }

  // ---- statements -------------------------------------------------------------------------------

  Stmt For(Stmt s) {
    const Expr min = Moved(s.min(), /*strict=*/true);
    const Expr extent = Moved(s.extent(), /*strict=*/true);
    const int place = Here();
    Loop loop{.s = s, .facts = facts_.size()};
    const bool constant = s.extent().Is(ExprKind::kIntImm);
    loop.runs = constant ? s.extent().int_value() > 0 : RunsAtLeastOnce(s.extent());
    if (s.for_kind() == ForKind::kThread) {
      loop.wall = threads_ == 0 || !options_.leave_inner_threads;
      loop.unrolled = true;
      ++threads_;
    } else {
      loop.unrolled = constant && (s.for_kind() == ForKind::kUnroll ||
                                   s.extent().int_value() <= options_.unrolled_extent);
    }
    const int certain = certain_from_;
    if (!loop.runs) certain_from_ = std::max(certain_from_, place + 1);
    loops_.push_back(std::move(loop));
    facts_.push_back({s});
    places_[s.var().node()] = place + 1;
    plans_.Clear();

    Stmt result = context_.Rebuild(s, {min, extent}, {Walk(s.body())});

    plans_.Clear();
    facts_.pop_back();
    loop = std::move(loops_.back());
    loops_.pop_back();
    if (loop.has_no_room) found_crowds_[s] = MakeCrowd(std::move(loop.spared));
    certain_from_ = certain;
    threads_ -= s.for_kind() == ForKind::kThread;
    if (loop.runs && !loop.unrolled && s.for_kind() != ForKind::kParallel) {
      result = WithoutInvariantStatements(result);
    }
    for (size_t i = loop.lifted.size(); i-- > 0;) {
      result = context_.LetStmt(loop.lifted[i].first, loop.lifted[i].second, result);
    }
    return result;
  }

  bool RunsAtLeastOnce(Expr extent) {
    Analyzer analyzer(context_);
    AddFacts(facts_.size(), analyzer);
    return analyzer.Range(extent).min >= 1 || analyzer.CanProve(1 <= extent);
  }

  void AddFacts(size_t count, Analyzer& analyzer) const {
    AssumeParameters(function_, analyzer);
    for (size_t i = 0; i < count; ++i) {
      const Stmt s = facts_[i].s;
      if (s.Is(StmtKind::kFor)) {
        analyzer.BindLoop(s.var(), s.min(), s.extent());
      } else if (s.Is(StmtKind::kLet)) {
        analyzer.BindLet(s.var(), s.value());
      } else {
        analyzer.Assume(s.cond(), facts_[i].truth);
      }
    }
  }

  // What is known in front of loops_[place].
  Analyzer& FactsAt(int place) {
    Loop& loop = loops_[place];
    if (!loop.analyzer) {
      loop.analyzer = std::make_unique<Analyzer>(context_);
      AddFacts(loop.facts, *loop.analyzer);
      for (int p = 0; p <= place; ++p) {
        for (const auto& [var, value] : loops_[p].lifted) loop.analyzer->BindLet(var, value);
      }
    }
    return *loop.analyzer;
  }

  Stmt Let(Stmt s) {
    // With its variable, so that what uses it can follow.
    const Expr value = s.value();
    strict_ = true;
    done_.Clear();
    for (int place = FirstPlace(value); place < Here() && Spares(place, Here()); ++place) {
      if (!CanEvaluate(value, place)) continue;
      Loop& loop = loops_[place];
      auto known = loop.known.find(value);
      const Expr moved =
          known != loop.known.end() ? known->second : Rewritten(value, place, /*whole=*/false);
      Put(s.var(), moved, place);
      loops_[place].known.emplace(value, s.var());
      ++stats_.lets;
      Note(moved, place, Here());
      return Walk(s.body());
    }
    places_[s.var().node()] = Here();
    const Expr moved = Moved(value, /*strict=*/true);
    facts_.push_back({s});
    const Stmt body = Walk(s.body());
    facts_.pop_back();
    return context_.Rebuild(s, {moved}, {body});
  }

  // ---- expressions ------------------------------------------------------------------------------

  const Info& InfoOf(Expr e) {
    if (const Info* known = infos_.Find(e)) return *known;
    Info info;
    if (e.Is(ExprKind::kVar)) {
      info.closed = !bound_inside_.contains(e);
      info.depths = info.closed ? DepthBit(PlaceOf(e.node())) : 0;
    }
    if (e.buffer() != nullptr) {
      info.depths |= DepthBit(PlaceOf(e.buffer()));
      info.loads_allocation = allocations_.contains(e.buffer());
    }
    if (e.Is(ExprKind::kLet)) bound_inside_.insert(e.var());
    for (Expr operand : e.operands()) {
      const Info& inner = InfoOf(operand);
      info.depths |= inner.depths;
      info.closed = info.closed && inner.closed;
      info.loads_allocation = info.loads_allocation || inner.loads_allocation;
    }
    if (e.Is(ExprKind::kLet)) {
      info.closed = true;
      for (Expr var : ir::FreeVars(e)) info.closed = info.closed && !bound_inside_.contains(var);
    }
    return infos_.Set(e, info);
  }

  // The outermost place where `e` has the value that it has here; Here() if there is none further
  // out.
  int FirstPlace(Expr e) {
    const Info& info = InfoOf(e);
    int place = Here();
    if (!info.closed || !effects_.IsPure(e)) return place;
    const int bound = std::bit_width(info.depths | 1) - 1;
    const bool loads = !effects_.Loads(e).empty();
    while (place > bound && !loops_[place - 1].wall &&
           !(loads && effects_.MayChange(e, loops_[place - 1].s))) {
      --place;
    }
    // Leaving a thread loop spares nothing by itself.
    while (place < Here() && loops_[place].s.for_kind() == ForKind::kThread) ++place;
    return place;
  }

  // Whether evaluating something at place `to` costs less than at `from`, inside.
  bool Spares(int to, int from) const {
    for (int p = to; p < from; ++p) {
      if (!loops_[p].unrolled) return true;
    }
    return false;
  }

  bool IsWorth(int cost, int to, int from) const {
    return cost >= options_.threshold && Spares(to, from);
  }

  // As long as the loops around stay the same.
  const Plan& PlanOf(Expr e) {
    if (const Plan* known = plans_.Find(e)) return *known;
    // What is constant is folded behind us.
    const bool constant = InfoOf(e).depths == 0;
    Plan plan{.place = FirstPlace(e), .cost = constant ? 0 : OperationCost(e)};
    for (Expr operand : e.operands()) {
      const Plan& inner = PlanOf(operand);
      const bool moves_on =
          inner.place < plan.place && IsWorth(inner.cost, inner.place, plan.place);
      // Costs of shared operands may add up to more than any int.
      if (!moves_on) plan.cost = std::min(plan.cost + inner.cost, kMaxCost);
    }
    return plans_.Set(e, plan);
  }

  int OperationCost(Expr e) const {
    switch (e.kind()) {
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kVar:
      case ExprKind::kLet:
      case ExprKind::kAddress:
        return 0;
      case ExprKind::kMul:
        return options_.multiply;
      case ExprKind::kDiv:
      case ExprKind::kMod: {
        const Expr divisor = e.operand(1);
        if (ir::IsFloat(e.type())) return options_.divide;
        if (!divisor.Is(ExprKind::kIntImm)) return options_.divide_variable;
        const int64_t value = divisor.int_value();
        return value > 0 && (value & (value - 1)) == 0 ? options_.simple : options_.divide;
      }
      case ExprKind::kLoad:
        return options_.load;
      case ExprKind::kCall:
        return options_.intrinsic;
      default:
        return options_.simple;
    }
  }

  // An operand of a statement, after moving out what can. `strict`: using a value that was never
  // stored for it stops the program.
  Expr Moved(Expr e, bool strict) {
    if (loops_.empty()) return e;
    strict_ = strict;
    done_.Clear();
    return Rewritten(e, Here(), /*whole=*/true);
  }

  // `e`, evaluated at `place`, after moving out further what can: if `whole`, all of it.
  Expr Rewritten(Expr e, int place, bool whole) {
    if (e.operands().empty() && !e.Is(ExprKind::kLoad)) return e;
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
      // More can be proven about variables than about what they stand for, and a condition that is
      // a let can not overflow any more.
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
    if (e.Is(ExprKind::kAddress) || (e.Is(ExprKind::kCall) && !effects_.IsPure(e))) return {};
    const Plan plan = PlanOf(e);
    for (int place = plan.place; place < from && IsWorth(plan.cost, place, from); ++place) {
      if (auto it = loops_[place].known.find(e); it != loops_[place].known.end()) {
        NoteSpared(e, plan.cost, place, from);
        return it->second;
      }
      if (!CanEvaluate(e, place)) continue;
      NoteSpared(e, plan.cost, place, from);
      if (!HasRoom(e, plan.cost, place, from)) {
        lacked_room_ = true;
        continue;
      }
      const Expr value = Rewritten(e, place, /*whole=*/false);
      if (const Expr further = value == e ? Expr() : Lifted(value, place)) {
        loops_[place].known.emplace(e, further);
        return further;
      }
      const ir::Var var = context_.NewVar("inv", e.type());
      Put(var, value, place);
      loops_[place].known.emplace(e, var);
      ++stats_.expressions;
      Note(value, place, from);
      return var;
    }
    return {};
  }

  // let var = value in front of loops_[place].
  void Put(ir::Var var, Expr value, int place) {
    places_[var.node()] = place;
    loops_[place].lifted.emplace_back(var, value);
    for (int p = place; p < Here(); ++p) {
      if (loops_[p].analyzer) loops_[p].analyzer->BindLet(var, value);
    }
  }

  // What `cost` at place `from` comes to in one iteration of loops_[p].
  double SparedIn(int p, int cost, int from) const {
    constexpr double kUnknownExtent = 8;
    double spared = cost;
    for (int q = p + 1; q < from; ++q) {
      const Expr extent = loops_[q].s.extent();
      spared *=
          extent.Is(ExprKind::kIntImm) ? static_cast<double>(extent.int_value()) : kUnknownExtent;
    }
    return spared;
  }

  void NoteSpared(Expr e, int cost, int to, int from) {
    if (!counts_) return;
    for (int p = to; p < from; ++p) loops_[p].spared[e] += SparedIn(p, cost, from);
  }

  // Whether `e`, which costs `cost`, may be alive in loops to .. from - 1. If so, it is taken to be.
  bool HasRoom(Expr e, int cost, int to, int from) {
    bool has_room = true;
    std::vector<Loop*> at_bar;
    for (int p = to; p < from; ++p) {
      Loop& loop = loops_[p];
      if (loop.live >= options_.max_live) {
        loop.has_no_room = true;
        has_room = false;
      }
      const auto it = crowds_.find(loop.s);
      if (it == crowds_.end()) continue;
      const Crowd& crowd = it->second;
      const auto known = crowd.spared.find(e);
      const double spared = known != crowd.spared.end() ? known->second : SparedIn(p, cost, from);
      if (spared < crowd.bar) has_room = false;
      if (spared > crowd.bar) continue;
      if (loop.at_bar >= crowd.at_bar) has_room = false;
      at_bar.push_back(&loop);
    }
    if (!has_room) return false;
    for (Loop* loop : at_bar) ++loop->at_bar;
    for (int p = to; p < from; ++p) ++loops_[p].live;
    return true;
  }

  Crowd MakeCrowd(absl::flat_hash_map<Expr, double> spared) const {
    Crowd crowd{.spared = std::move(spared)};
    std::vector<double> most;
    for (const auto& [e, value] : crowd.spared) most.push_back(value);
    std::sort(most.begin(), most.end(), std::greater<double>());
    const size_t room = static_cast<size_t>(options_.max_live);
    // The least for which there is room.
    if (0 < room && room < most.size()) crowd.bar = most[room - 1];
    for (size_t i = 0; i < std::min(room, most.size()); ++i) crowd.at_bar += most[i] == crowd.bar;
    return crowd;
  }

  // Whether evaluating `e` at `place` does not stop the program, or only where it stops anyway.
  bool CanEvaluate(Expr e, int place) {
    if (effects_.NeverTraps(e, Mode::kData)) return true;
    // Here it is evaluated in the first iteration. A value never stored may be copied there, but not
    // be bound by a let.
    if (place >= certain_from_ && (strict_ || !InfoOf(e).loads_allocation)) return true;
    return !effects_.MayTrap(e, FactsAt(place), Mode::kData);
  }

  // `value` went from one place to another.
  void Note(Expr value, int to, int from) {
    if (!wants_text_) return;
    std::string text = StrCat(ir::Print(value), "  out of");
    for (int p = to; p < from; ++p) StrAppend(&text, "  ", ir::PrintFirstLine(loops_[p].s));
    stats_.moved.push_back(std::move(text));
  }

  // ---- invariant statements ---------------------------------------------------------------------

  // What is bound outside of `s` and used in it, by place; of what is bound in it, at least what is
  // not deeper than `s` itself.
  uint64_t DepthsOf(Stmt s) {
    if (auto it = stmt_depths_.find(s); it != stmt_depths_.end()) return it->second;
    uint64_t depths = 0;
    for (Expr e : s.operands()) depths |= InfoOf(e).depths;
    if (s.buffer()) {
      depths |= DepthBit(PlaceOf(s.buffer().node()));
      for (Expr extent : s.buffer()->extents) depths |= InfoOf(extent).depths;
    }
    for (Stmt child : s.children()) depths |= DepthsOf(child);
    return stmt_depths_[s] = depths;
  }

  // The statements of a body, in order, each without its lets; and values of lets, as reads.
  struct Item {
    Stmt s;
    BufferSet reads, writes;
  };

  void Collect(Stmt s, std::vector<Item>& items) {
    if (s.Is(StmtKind::kSeq)) {
      for (Stmt child : s.children()) Collect(child, items);
    } else if (s.Is(StmtKind::kLet)) {
      items.push_back({.s = s, .reads = effects_.Loads(s.value()), .writes = {}});
      Collect(s.body(), items);
    } else {
      items.push_back({.s = s, .reads = effects_.Reads(s), .writes = effects_.Writes(s)});
    }
  }

  static bool HasCall(Stmt root) {
    return ir::AnyStmt(root, [](Stmt s) { return s.Is(StmtKind::kEvaluate); });
  }

  // `loop`, which runs at least once, behind those statements of its body that write the same in
  // each iteration.
  Stmt WithoutInvariantStatements(Stmt loop) {
    const int inside = Here() + 1;
    if (inside >= 63) return loop;
    // Statements that use nothing bound in the loop, first, as most loops have none.
    std::vector<Item> items;
    Collect(loop.body(), items);
    const auto is_invariant = [&](const Item& item) {
      return !item.writes.empty() && (DepthsOf(item.s) & DepthBit(inside)) == 0 && !HasCall(item.s);
    };
    if (std::none_of(items.begin(), items.end(), is_invariant)) return loop;
    // What stands behind each item writes.
    std::vector<BufferSet> later_writes(items.size() + 1);
    for (size_t i = items.size(); i-- > 0;) {
      later_writes[i] = later_writes[i + 1];
      later_writes[i].Add(items[i].writes);
    }
    BufferSet earlier_reads, earlier_writes;
    std::vector<Stmt> moved;
    absl::flat_hash_set<Stmt> gone;
    for (size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      BufferSet other_writes = earlier_writes;
      other_writes.Add(later_writes[i + 1]);
      if (is_invariant(item) && !item.writes.Intersects(other_writes) &&
          !item.writes.Intersects(earlier_reads) && !item.reads.Intersects(item.writes) &&
          !item.reads.Intersects(other_writes)) {
        moved.push_back(item.s);
        gone.insert(item.s);
        ++stats_.statements;
        if (wants_text_) {
          stats_.moved.push_back(
              StrCat(ir::PrintFirstLine(item.s), "  out of  ", ir::PrintFirstLine(loop)));
        }
        continue;
      }
      earlier_reads.Add(item.reads);
      earlier_writes.Add(item.writes);
    }
    if (moved.empty()) return loop;
    const Stmt rest = Without(loop.body(), gone);
    if (!rest.IsEmpty()) moved.push_back(context_.Rebuild(loop, loop.operands(), {rest}));
    return context_.Seq(moved);
  }

  Stmt Without(Stmt s, const absl::flat_hash_set<Stmt>& gone) {
    if (gone.contains(s)) return context_.Nop();
    if (!s.Is(StmtKind::kSeq) && !s.Is(StmtKind::kLet)) return s;
    const Stmt result = ir::MapChildren(s, [&](Stmt child) { return Without(child, gone); });
    return s.Is(StmtKind::kLet) && result.body().IsEmpty() ? result.body() : result;
  }

  static constexpr int kMaxCost = 1 << 20;

  const ir::Function& function_;
  ir::Context& context_;
  const LicmOptions& options_;
  const Crowds crowds_;
  LicmStats& stats_;
  const bool wants_text_;
  Effects effects_;
  Crowds found_crowds_;
  // Whether what could move is counted for crowds: not parts of what had no room.
  bool counts_ = true;
  bool lacked_room_ = false;
  std::vector<Loop> loops_;
  std::vector<Fact> facts_;
  int threads_ = 0;  // thread loops around
  // The first place from which on this one is reached for certain.
  int certain_from_ = 0;
  // Whether using a value never stored for what is looked at stops the program.
  bool strict_ = true;
  // Where variables and buffers are bound.
  absl::flat_hash_map<const void*, int> places_;
  absl::flat_hash_set<const ir::BufferNode*> allocations_;
  // Variables of let expressions.
  absl::flat_hash_set<Expr> bound_inside_;
  ir::ExprMap<Info> infos_;
  ir::ExprMap<Plan> plans_;
  absl::flat_hash_map<Stmt, uint64_t> stmt_depths_;
  // Of the operand that is being looked at.
  ir::ExprMap<absl::InlinedVector<Done, 1>> done_;
};

}  // namespace

LicmOptions LicmOptionsFor(const Target& target) {
  LicmOptions options;
  if (target.name == "cuda") {
    options.unrolled_extent = 8;
    options.max_live = 32;
    options.divide = 6;
    options.divide_variable = 30;
    options.leave_inner_threads = true;
  } else if (target.name == "diannao") {
    options.threshold = 1;
    options.unrolled_extent = 0;
  } else if (target.name == "cpu" || target.name == "c") {
    // Single additions leave their loops behind us, too, whatever is done here. (With 1 or 2, 102
    // functions of licm511 have as many instructions in all, within 0.02 %.)
    options.threshold = 1;
  } else {
    options = {.multiply = 1,
               .divide = 1,
               .divide_variable = 1,
               .intrinsic = 1,
               .load = 1,
               .threshold = 1,
               .unrolled_extent = 0};
  }
  return options;
}

absl::StatusOr<bool> Licm(ir::Function& function, const Target& target, const LicmOptions& options,
                          LicmStats* stats) {
  POLYNAO_CHECK(options.threshold >= 1) << options.threshold;
  const Stmt before = function.body;
  // Stores that have left a loop may let loads leave it, too.
  for (int run = 0; run < kMaxRuns; ++run) {
    LicmStats moved;
    Mover first_come(function, target, options, {}, moved, stats != nullptr);
    Stmt body = first_come.Walk(function.body);
    if (Crowds crowds = first_come.TakeCrowds(); !crowds.empty()) {
      moved = {};
      body = Mover(function, target, options, std::move(crowds), moved, stats != nullptr)
                 .Walk(function.body);
    }
    function.body = body;
    if (stats != nullptr) {
      stats->expressions += moved.expressions;
      stats->lets += moved.lets;
      stats->statements += moved.statements;
      stats->moved.insert(stats->moved.end(), moved.moved.begin(), moved.moved.end());
    }
    if (moved.statements == 0) break;
  }
  return function.body != before;
}

namespace {

absl::StatusOr<bool> RunLicm(ir::Function& function, const PassEnvironment& environment,
                             LicmOptions options) {
  LicmStats stats;
  ASSIGN_OR_RETURN(bool changed, Licm(function, environment.target, options,
                                      environment.stats ? &stats : nullptr));
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
      {.name = "licm",
       .doc = "evaluates in front of loops what does not vary in them",
       .second_run_changes = "what max_live kept inside may move in another run"},
      {IntOption("k", &LicmOptions::threshold, 1, 1000, "the cost from which an expression moves"),
       IntOption("max_live", &LicmOptions::max_live, 0, 100000,
                 "moved values that are alive in one loop"),
       IntOption("unrolled", &LicmOptions::unrolled_extent, 0, 1000000,
                 "iterations of loops that the compiler behind unrolls")},
      LicmOptionsFor, RunLicm);
}

}  // namespace polynao
