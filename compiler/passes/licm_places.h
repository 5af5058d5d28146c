// The part of licm that plans: the loops around the place that its walk has reached, what is known there,
// and to which place an expression may move. Changes no program.
#ifndef COMPILER_PASSES_LICM_PLACES_H_
#define COMPILER_PASSES_LICM_PLACES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/licm.h"

namespace polynao {

// Place p is in front of loop p and inside loops 0 .. p - 1, counted from the outermost one. Here() is the
// place inside all of them.
class LicmPlaces {
 public:
  static constexpr int kNowhere = std::numeric_limits<int>::max();

  // A loop with more values that could move than it has room for.
  struct Crowd {
    absl::flat_hash_map<ir::Expr, double> spared;  // by moving each value
    double bar = 0;                                // values that spare less stay
    int at_bar = 0;  // how many values that spare exactly `bar` may move
  };
  using Crowds = absl::flat_hash_map<ir::Stmt, Crowd>;

  struct Loop {
    ir::Stmt s;
    // This is true if its body runs at least once.
    bool runs = false;
    // This is true if the compiler behind this one unrolls it, so that nothing in it is evaluated
    // twice.
    bool unrolled = false;
    // This is true if no value may leave it.
    bool wall = false;
    // How many of the facts hold in front of it: the first ones.
    size_t facts = 0;
    std::unique_ptr<arith::Analyzer> analyzer = nullptr;
    // The lets that moved in front of it, in order, and by the expressions that they replace.
    std::vector<std::pair<ir::Var, ir::Expr>> lifted = {};
    absl::flat_hash_map<ir::Expr, ir::Var> known = {};
    // How many values of lets around it are live in it, moved values included. `live_lets` of them are lets
    // of the program, which always have room.
    int live = 0;
    int live_lets = 0;
    // Moving a value spares this much, for each value that could move.
    absl::flat_hash_map<ir::Expr, double> spared = {};
    bool has_no_room = false;
    int at_bar = 0;  // how many values that spare exactly Crowd::bar have moved
  };

  // Where an expression can move to from the innermost loop, and the cost of one evaluation.
  struct HoistPlan {
    int place = 0;
    int cost = 0;
  };

  // `crowds`: the loops that lacked room in an earlier walk of `function`. The function and the options must
  // outlive this.
  LicmPlaces(const ir::Function& function, const Target& target, const LicmOptions& options,
             Crowds crowds);

  // The loops that lacked room for some values, for another walk of the same function.
  Crowds TakeCrowds() { return std::move(found_crowds_); }

  // ---- the walk ---------------------------------------------------------------------------------

  int Here() const { return static_cast<int>(loops_.size()); }
  Loop& loop(int place) { return loops_[place]; }
  bool IsAllocation(ir::Buffer buffer) const { return allocations_.contains(buffer.node()); }
  Effects& effects() { return effects_; }

  // Enters and leaves the body of a loop.
  const Loop& Enter(ir::Stmt loop);
  Loop Leave();
  // A variable or an allocation is bound here.
  void Bind(ir::Var var) { places_[var.node()] = Here(); }
  void BindAllocation(ir::Buffer buffer);
  // Enters and leaves the body of a let, or a branch of an if.
  void EnterScope(ir::Stmt s, bool truth = true) { facts_.push_back({s, truth}); }
  void LeaveScope() { PopFact(); }
  // `let var = value` stands in front of loop `place`.
  void Put(ir::Var var, ir::Expr value, int place);

  // ---- plans ------------------------------------------------------------------------------------

  // The outermost place where `e` has the same value as here; Here() if it varies in the innermost
  // loop.
  int FirstPlace(ir::Expr e);
  // Returns true if an expression at place `to` is evaluated less often than at the inner place
  // `from`.
  bool Spares(int to, int from) const;
  bool IsWorth(int cost, int to, int from) const {
    return cost >= options_.threshold && Spares(to, from);
  }
  // Valid as long as the enclosing loops stay the same.
  const HoistPlan& PlanOf(ir::Expr e);
  // Returns true if the program may evaluate `e` at `place`: `e` cannot stop the program there, or the program
  // evaluates it later for certain. `certain_from`: the first place that is certain to be followed by an evaluation
  // here. `strict`: a value that was never stored stops the program here.
  bool CanEvaluate(ir::Expr e, int place, int certain_from, bool strict);
  // Returns true if `s`, in the body of the loop at `place - 1`, uses what is bound in it.
  bool IsBoundAt(ir::Stmt s, int place) { return (DepthsOf(s) & DepthBit(place)) != 0; }

  // The cost of one evaluation of `e`, as if nothing was left to the compiler behind.
  int WholeCost(ir::Expr e) const;

  // ---- room -------------------------------------------------------------------------------------

  // `e`, which costs `cost`, could move from place `from` to `to`.
  void NoteSpared(ir::Expr e, int cost, int to, int from);
  // Returns true if loops `to` .. `from - 1` have room for `e`, which costs `cost`. If so, takes
  // the room.
  bool HasRoom(ir::Expr e, int cost, int to, int from);

 private:
  struct Fact {
    ir::Stmt s;  // an enclosing loop or let, or an if whose condition is `truth`
    bool truth = true;
  };

  // Properties of an expression that do not depend on its place.
  struct Info {
    // Bit p: it uses a variable or buffer bound at place p (63: there or deeper).
    uint64_t depths = 0;
    // This is true if it uses no variable of an enclosing let expression.
    bool closed = true;
    bool loads_allocation = false;
  };

  static uint64_t DepthBit(int place) { return uint64_t{1} << std::min(place, 63); }

  int PlaceOf(const void* node) const {
    auto it = places_.find(node);
    return it == places_.end() ? 0 : it->second;  // parameters are bound in front of everything
  }

  bool RunsAtLeastOnce(ir::Expr extent);
  void AddFact(size_t i, arith::Analyzer& analyzer) const;
  void PopFact();
  // Returns the facts that hold in front of loops_[place].
  arith::Analyzer& FactsAt(int place);
  const Info& InfoOf(ir::Expr e);
  // The places of variables and buffers that `s` uses and does not bind itself, as Info::depths. May
  // have those that it binds deeper inside.
  uint64_t DepthsOf(ir::Stmt s);
  // Returns how much moving spares in one iteration of loops_[p], if one evaluation at place `from` costs `cost`.
  double SparedIn(int p, int cost, int from) const;
  static Crowd MakeCrowd(absl::flat_hash_map<ir::Expr, double> spared, size_t room);

  static constexpr int kMaxCost = 1 << 20;

  const ir::Function& function_;
  ir::Context& context_;
  const LicmOptions& options_;
  const Crowds crowds_;
  Effects effects_;
  // Of each loop of the function: how many lets around it bind a value that it uses.
  const absl::flat_hash_map<ir::Stmt, int> live_lets_;
  Crowds found_crowds_;
  std::vector<Loop> loops_;
  std::vector<Fact> facts_;
  // Knows the first of them, each in a scope of its own: as many as an extent had around it that asked.
  arith::Analyzer here_;
  std::vector<std::unique_ptr<arith::Analyzer::Scope>> scopes_;
  int threads_ = 0;  // thread loops around
  // Where variables and buffers are bound.
  absl::flat_hash_map<const void*, int> places_;
  absl::flat_hash_set<const ir::BufferNode*> allocations_;
  // Variables of let expressions.
  absl::flat_hash_set<ir::Expr> bound_inside_;
  ir::ExprMap<Info> infos_;
  ir::ExprMap<HoistPlan> plans_;
  absl::flat_hash_map<ir::Stmt, uint64_t> stmt_depths_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_LICM_PLACES_H_
