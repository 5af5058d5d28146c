// The guards below a loop, which loop_partition splits the loop by.
#ifndef COMPILER_PASSES_PARTITION_GUARDS_H_
#define COMPILER_PASSES_PARTITION_GUARDS_H_

#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/integer_set.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/surroundings.h"

namespace polynao {

// Returns true if `e` is one of && || !.
bool IsLogic(ir::Expr e);

// Returns true if `e` is a min or max of integers.
bool IsMinMax(ir::Expr e);

// Where guards stand below a loop: under which branches of which ifs, whose conditions are facts
// there. Place 0 is under none of them. One node may be a guard at several places, and be constant
// at one of them only:
//
//   if (i + j < 14) { if (i + j < 20) { A } }  if (i + j < 20) { B }
class GuardPlaces {
 public:
  static constexpr int kUnknown = -1;

  // Adds the place in a branch of `s`; the place around it if the branch tells nothing.
  int Add(int place, ir::Stmt s, bool branch, std::vector<ir::Expr> facts);
  // kUnknown in what nobody looked into.
  int Find(int place, ir::Stmt s, bool branch) const;
  // All facts at `place`, inner ones first.
  std::vector<ir::Expr> FactsAt(int place) const;

 private:
  struct Place {
    int outside;                  // the place around it
    std::vector<ir::Expr> facts;  // of the branch alone
  };
  std::vector<Place> places_ = {{kUnknown, {}}};
  absl::flat_hash_map<std::tuple<int, ir::Stmt, bool>, int> branches_;
};

using PlacedExpr = std::pair<int, ir::Expr>;

// Truth of conditions, by place and node; for an integer min or max, of "the
// value is the first operand's".
using Truths = absl::flat_hash_map<PlacedExpr, bool>;

// A condition below a loop, and the values of the loop's variable that decide it.
struct LoopGuard {
  int place;
  ir::Expr node;       // as it stands in the program; an integer min or max for its
                       // comparison
  ir::Expr condition;  // with lets put in
  bool whole;          // of an if, select, min or max, not a part of such a condition
  arith::Intervals always = {}, never = {};
  bool taken = true;
};

// The guards on the variable of one loop, in the order of the program.
struct GuardsBelow {
  ir::Var var;
  std::vector<LoopGuard> guards;
  GuardPlaces places;
  // Conditions bound by lets below the loop, as they stand there, that may be
  // evaluated where their variable is used.
  ir::VarMap conditions;
  absl::flat_hash_set<ir::Var> inner;    // all variables that are bound below the loop
  std::vector<ir::Var> triangular = {};  // of inner loops whose bounds depend on `var`

  // Returns true if `e` uses `var` or a variable whose loop's bounds do.
  bool DependsOnVar(ir::Expr e) const;
  // The operands of && || ! in `condition` that are not such operators
  // themselves, in order, with the conditions of lets in place of their
  // variables.
  std::vector<ir::Expr> PartsOf(ir::Expr condition) const;
  // Returns true if `condition` has more parts than itself.
  bool HasParts(ir::Expr condition) const;
};

// Finds guards; remembers by node where there are none.
class GuardFinder {
 public:
  explicit GuardFinder(Surroundings& around) : around_(around) {}

  // Returns true if a guard stands in `s`, on whatever variable.
  bool HasGuard(ir::Stmt s);
  // The guards on `var` in `s`, in pragmas' bodies only unless `eligible`. Enters the loops and lets
  // inside on the way, so that the guards' other variables have bounds; the caller has a scope.
  GuardsBelow Find(ir::Stmt s, ir::Var var, bool eligible);

 private:
  struct Search;

  bool MayGuard(ir::Expr e);
  void Collect(ir::Stmt s, int place, bool eligible, Search& search);
  void AddGuard(ir::Expr node, ir::Expr condition, int place, Search& search);
  void AddGuardsIn(ir::Stmt s, int place, Search& search);
  void AddClamp(ir::Expr e, bool in_bound, arith::Mode mode, int place, Search& search);

  Surroundings& around_;
  absl::flat_hash_map<ir::Stmt, bool> has_guard_;
  absl::flat_hash_map<ir::Expr, bool> may_guard_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_PARTITION_GUARDS_H_
