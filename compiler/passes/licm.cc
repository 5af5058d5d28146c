// Method: one walk with a stack of the enclosing loops. Place p is in front of loops_[p] and inside
// loops_[0] .. loops_[p - 1]. An expression at place d can move to place p if
//   - its variables are bound at p: Info::depths, the places of bindings;
//   - loops p .. d-1 write no memory that it loads, and none of them is a wall (thread loops);
//   - it cannot trap, or place p is certain to evaluate it: certain_from_.
// It goes to the first such place, and its operands may move further from there. loops_[p].lifted
// collects the lets, which the walk puts around the loop when it leaves it.
#include "compiler/passes/licm.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
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
#include "compiler/passes/invariant_statements.h"
#include "compiler/passes/let_names.h"
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

constexpr int kNowhere = std::numeric_limits<int>::max();

// A loop that more values could leave than there is room for: what moving each value spares, the least
// (`bar`) that a value must spare to leave, and how many values that spare just the least may leave.
struct Crowd {
  absl::flat_hash_map<Expr, double> spared;
  double bar = 0;
  int at_bar = 0;
};
using Crowds = absl::flat_hash_map<Stmt, Crowd>;

// For each loop: how many lets around it bind a value that is used in it. Such a value takes a
// register, as a value that moves out of the loop does. So a second run has no more room than the
// first one left.
absl::flat_hash_map<Stmt, int> LiveLets(Stmt body) {
  absl::flat_hash_map<Stmt, int> live;
  absl::flat_hash_map<ir::Var, size_t> depths;  // of variables of lets: how many loops are around
  std::vector<absl::flat_hash_set<ir::Var>> used;  // in the loops around
  const std::function<void(Stmt)> walk = [&](Stmt s) {
    for (Expr operand : s.operands()) {
      ir::ForEachExpr(operand, [&](Expr e) {
        const auto depth = depths.find(e);
        if (depth == depths.end()) return;
        for (size_t p = depth->second; p < used.size(); ++p) used[p].insert(e);
      });
    }
    if (s.Is(StmtKind::kLet)) depths[s.var()] = used.size();
    if (s.Is(StmtKind::kFor)) used.emplace_back();
    for (Stmt child : s.children()) walk(child);
    if (s.Is(StmtKind::kFor)) {
      live[s] = static_cast<int>(used.back().size());
      used.pop_back();
    }
  };
  walk(body);
  return live;
}

int OperationCost(Expr e, const LicmOptions& options) {
  if (IsLeft(e, options.left)) return 0;
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
    case ExprKind::kLet:
    case ExprKind::kAddress:
      return 0;
    case ExprKind::kMul:
      return options.multiply;
    case ExprKind::kDiv:
    case ExprKind::kMod: {
      const Expr divisor = e.operand(1);
      if (ir::IsFloat(e.type())) return options.divide;
      if (!divisor.Is(ExprKind::kIntImm)) return options.divide_variable;
      const int64_t value = divisor.int_value();
      return value > 0 && (value & (value - 1)) == 0 ? options.simple : options.divide;
    }
    case ExprKind::kLoad:
      return options.load;
    case ExprKind::kCall:
      return options.intrinsic;
    default:
      return options.simple;
  }
}

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
        effects_(function, target.instructions ? &target.instructions->intrinsics() : nullptr),
        live_lets_(LiveLets(function.body)) {
    effects_.Writes(function.body);  // of all loops, in one walk
  }

  // Loops without room for all values that could leave them, for another walk of the same function.
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
    // Whether its body runs at least once.
    bool runs = false;
    // Whether the compiler behind this one unrolls it, so that nothing in it is evaluated twice.
    bool unrolled = false;
    // Whether no value may leave it.
    bool wall = false;
    // How many of facts_ hold in front of it.
    size_t facts = 0;
    std::unique_ptr<Analyzer> analyzer = nullptr;
    // The lets that moved in front of it, in order, and by the expressions that they replace.
    std::vector<std::pair<ir::Var, Expr>> lifted = {};
    absl::flat_hash_map<Expr, ir::Var> known = {};
    // How many values of lets around it are live in it, with the values that moved there. Lets that
    // stood around it or move with their variable (`live_lets` of them) always have room.
    int live = 0;
    int live_lets = 0;
    // What moving spares, for each value that could move.
    absl::flat_hash_map<Expr, double> spared = {};
    bool has_no_room = false;
    int at_bar = 0;  // how many values have left that spare just Crowd::bar
  };

  struct Fact {
    Stmt s;  // an enclosing loop or let, or an if whose condition is `truth`
    bool truth = true;
  };

  // Properties of an expression that do not depend on its place.
  struct Info {
    // Bit p: it uses a variable or buffer bound at place p (63: there or deeper).
    uint64_t depths = 0;
    // Whether it uses no variable of an enclosing let expression.
    bool closed = true;
    bool loads_allocation = false;
  };

  // Where an expression can move to from the innermost loop, and what that spares.
  struct Plan {
    int place = 0;
    int cost = 0;
  };

  // The result for an expression at `place`, when certain_from_ and strict_ were these.
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
    const int live = live_lets_.at(s);
    Loop loop{.s = s, .facts = facts_.size(), .live = live, .live_lets = live};
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
    if (loop.has_no_room) {
      const int room = std::max(0, options_.max_live - loop.live_lets);
      found_crowds_[s] = MakeCrowd(std::move(loop.spared), static_cast<size_t>(room));
    }
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
      for (int p = place; p < Here(); ++p) {
        ++loops_[p].live;
        ++loops_[p].live_lets;
      }
      loops_[place].known.emplace(value, s.var());
      ++stats_.lets;
      Note(s.var(), moved, place, Here());
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

  // The outermost place where `e` has the same value as here; Here() if it varies in the innermost
  // loop.
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

  // Whether an expression at place `to` is evaluated less often than at the inner place `from`.
  bool Spares(int to, int from) const {
    for (int p = to; p < from; ++p) {
      if (!loops_[p].unrolled) return true;
    }
    return false;
  }

  bool IsWorth(int cost, int to, int from) const {
    return cost >= options_.threshold && Spares(to, from);
  }

  // Valid as long as the enclosing loops stay the same.
  const Plan& PlanOf(Expr e) {
    if (const Plan* known = plans_.Find(e)) return *known;
    // The compiler behind this one folds constants.
    const bool constant = InfoOf(e).depths == 0;
    Plan plan{.place = FirstPlace(e), .cost = constant ? 0 : OperationCost(e, options_)};
    for (Expr operand : e.operands()) {
      const Plan& inner = PlanOf(operand);
      const bool moves_on =
          inner.place < plan.place && IsWorth(inner.cost, inner.place, plan.place);
      // The sum counts shared operands several times and may exceed any int.
      if (!moves_on) plan.cost = std::min(plan.cost + inner.cost, kMaxCost);
    }
    return plans_.Set(e, plan);
  }

  // An operand of a statement, with variables for the parts that moved. `strict`: the program stops if
  // the operand uses a value that was never stored.
  Expr Moved(Expr e, bool strict) {
    if (loops_.empty()) return e;
    strict_ = strict;
    done_.Clear();
    return Rewritten(e, Here(), /*whole=*/true);
  }

  // `e`, evaluated at `place`, with variables for the parts that move further; if `whole`, all of it
  // may.
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
      if (!names_) names_.emplace(function_, "inv");
      const ir::Var var = names_->NewVar(value);
      Put(var, value, place);
      loops_[place].known.emplace(e, var);
      ++stats_.expressions;
      Note(var, value, place, from);
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

  // What moving spares in one iteration of loops_[p], if one evaluation at place `from` costs `cost`.
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

  // Whether loops `to` .. `from - 1` have room for `e`, which costs `cost`. If so, takes the room.
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

  static Crowd MakeCrowd(absl::flat_hash_map<Expr, double> spared, size_t room) {
    Crowd crowd{.spared = std::move(spared)};
    std::vector<double> most;
    for (const auto& [e, value] : crowd.spared) most.push_back(value);
    std::sort(most.begin(), most.end(), std::greater<double>());
    // The least that one of the `room` best values spares.
    if (room == 0) crowd.bar = std::numeric_limits<double>::infinity();
    if (0 < room && room < most.size()) crowd.bar = most[room - 1];
    for (size_t i = 0; i < std::min(room, most.size()); ++i) crowd.at_bar += most[i] == crowd.bar;
    return crowd;
  }

  // Whether evaluating `e` at `place` stops no program that would not stop anyway.
  bool CanEvaluate(Expr e, int place) {
    if (effects_.NeverTraps(e, Mode::kData)) return true;
    // The first iteration is certain to evaluate it. A value that was never stored may be copied
    // there, but a let of it stops the program.
    if (place >= certain_from_ && (strict_ || !InfoOf(e).loads_allocation)) return true;
    return !effects_.MayTrap(e, FactsAt(place), Mode::kData);
  }

  // `value`, which `var` holds now, went from one place to another.
  void Note(ir::Var var, Expr value, int to, int from) {
    if (!wants_text_) return;
    std::string text = StrCat(var.name(), " = ", ir::Print(value), "  out of");
    for (int p = to; p < from; ++p) StrAppend(&text, "  ", ir::PrintFirstLine(loops_[p].s));
    stats_.moved.push_back(std::move(text));
  }

  // ---- invariant statements ---------------------------------------------------------------------

  // The places of variables and buffers that `s` uses and does not bind itself, as Info::depths. May
  // have those that it binds deeper inside.
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

  // `loop`, which runs at least once, behind the statements of its body that store the same in each
  // iteration.
  Stmt WithoutInvariantStatements(Stmt loop) {
    const int inside = Here() + 1;
    if (inside >= 63) return loop;
    InvariantStatements invariant = FindInvariantStatements(
        loop, effects_, [&](Stmt s) { return (DepthsOf(s) & DepthBit(inside)) != 0; });
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

  static constexpr int kMaxCost = 1 << 20;

  const ir::Function& function_;
  ir::Context& context_;
  const LicmOptions& options_;
  const Crowds crowds_;
  LicmStats& stats_;
  const bool wants_text_;
  Effects effects_;
  // Of each loop of the function: how many lets around it bind a value that it uses.
  const absl::flat_hash_map<Stmt, int> live_lets_;
  std::optional<LetNames> names_;
  Crowds found_crowds_;
  // Whether values count for crowds: not parts of a value that had no room.
  bool counts_ = true;
  bool lacked_room_ = false;
  std::vector<Loop> loops_;
  std::vector<Fact> facts_;
  int threads_ = 0;  // thread loops around
  // The first place that is certain to be followed by an evaluation here.
  int certain_from_ = 0;
  // Whether the program stops if the current operand uses a value that was never stored.
  bool strict_ = true;
  // Where variables and buffers are bound.
  absl::flat_hash_map<const void*, int> places_;
  absl::flat_hash_set<const ir::BufferNode*> allocations_;
  // Variables of let expressions.
  absl::flat_hash_set<Expr> bound_inside_;
  ir::ExprMap<Info> infos_;
  ir::ExprMap<Plan> plans_;
  absl::flat_hash_map<Stmt, uint64_t> stmt_depths_;
  // For the current operand.
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
  options.left = LeftTo(target);
  return options;
}

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
    }
    // A loop that stores have left may let loads leave, too. And a value that moved may have been the
    // last use of another value, which makes room.
    if (!changed || (moved.statements == 0 && !is_crowded)) break;
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
      {.name = "licm", .doc = "evaluates in front of loops what does not vary in them"},
      {IntOption("k", &LicmOptions::threshold, 1, 1000, "the cost from which an expression moves"),
       IntOption("max_live", &LicmOptions::max_live, 0, 100000,
                 "moved values that are alive in one loop"),
       IntOption("unrolled", &LicmOptions::unrolled_extent, 0, 1000000,
                 "iterations of loops that the compiler behind unrolls")},
      LicmOptionsFor, RunLicm);
}

}  // namespace polynao
