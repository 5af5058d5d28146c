#include "compiler/passes/guard_solver.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/arith/const_range.h"
#include "compiler/ir/visit.h"

namespace polynao {

using arith::Analyzer;
using arith::BoundedVar;
using arith::ConstRange;
using arith::Interval;
using arith::Intervals;
using ir::Expr;
using ir::ExprKind;
using ir::Var;

namespace {

bool HasConstantDivisor(Expr e) {
  return (e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && ir::IsInt(e.type()) &&
         e.operand(1).Is(ExprKind::kIntImm) && e.operand(1).int_value() > 0;
}

// The growth of `e`, whose operand i grows by `operand(i)`.
template <typename Operand>
std::optional<int64_t> GrowthOver(Expr e, const Operand& operand) {
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

// Values that no other loop reaches, or that contradict the facts, are in both sets: each interval
// of them goes to the neighbour it has in one, so that it makes no cut.
void ShareImpossible(LoopGuard& guard, Interval range) {
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

// The x in `range` with coefficient * x + constant < 0.
Intervals HalfLine(int64_t coefficient, int64_t constant, Interval range) {
  if (coefficient == 0) return constant < 0 ? Intervals{range} : Intervals{};
  Interval part = range;
  if (coefficient > 0) {  // x <= (-constant - 1) / coefficient
    part.last = std::min(part.last, arith::FloorDiv(-constant - 1, coefficient));
  } else {  // x >= (constant + 1) / -coefficient, rounded up
    part.first = std::max(part.first, -arith::FloorDiv(-constant - 1, -coefficient));
  }
  return part.first <= part.last ? Intervals{part} : Intervals{};
}

bool Independent(Expr a, Expr b, Var var) {
  const absl::flat_hash_set<Var> in_a = ir::FreeVars(a);
  for (Var x : ir::FreeVars(b)) {
    if (x != var && in_a.contains(x)) return false;
  }
  return true;
}

}  // namespace

void GuardSolver::Solve(Interval range, GuardsBelow& found) {
  std::vector<LoopGuard>& guards = found.guards;
  const size_t whole_guards = guards.size();
  std::optional<Analyzer::Scope> scope;
  std::vector<Expr> facts = around_.facts();
  int place = 0;
  for (size_t i = 0; i < whole_guards; ++i) {
    if (guards[i].place != place) {
      place = guards[i].place;
      scope.reset();
      scope.emplace(around_.analyzer());
      facts = found.places.FactsAt(place);
      for (Expr fact : facts) around_.analyzer().Assume(fact);
      facts.insert(facts.end(), around_.facts().rbegin(), around_.facts().rend());
    }
    // What reads memory may be evaluated for its trap and stays; its parts may go.
    if (!around_.analyzer().CanTrap(guards[i].condition)) {
      Solution solution = SolveUnder(facts, guards[i].condition, found, range);
      guards[i].always = std::move(solution.always);
      guards[i].never = std::move(solution.never);
    }
    SolveParts(i, facts, range, found);
  }
  for (LoopGuard& guard : guards) ShareImpossible(guard, range);
}

// `condition` where all of `facts` hold.
GuardSolver::Solution GuardSolver::SolveUnder(const std::vector<Expr>& facts, Expr condition,
                                              const GuardsBelow& found, Interval range) {
  const Var var = found.var;
  const std::vector<Expr> relevant = RelevantFacts(facts, condition, var);
  // What repeats more often than there may be pieces is constant or makes too many cuts: one period
  // tells, and is a smaller question.
  const int64_t period = PeriodOf(condition, found);
  const uint64_t steps = static_cast<uint64_t>(range.last) - static_cast<uint64_t>(range.first);
  const bool repeats =
      period > 0 && steps / static_cast<uint64_t>(period) >= static_cast<uint64_t>(max_pieces_) &&
      std::none_of(relevant.begin(), relevant.end(),
                   [&](Expr fact) { return found.DependsOnVar(fact); });
  if (!repeats) return SolveIn(relevant, condition, var, range);
  const Interval once = {range.first, range.first + period - 1};
  const Solution solution = SolveIn(relevant, condition, var, once);
  const bool always = Complement(solution.always, once).empty();
  const bool never = Complement(solution.never, once).empty();
  return {.always = always ? Intervals{range} : Intervals{},
          .never = never ? Intervals{range} : Intervals{}};
}

// `relevant`: facts that tell something about `condition`.
GuardSolver::Solution GuardSolver::SolveIn(const std::vector<Expr>& relevant, Expr condition,
                                           Var var, Interval range) {
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
int64_t GuardSolver::PeriodOf(Expr condition, const GuardsBelow& found) const {
  const Var var = found.var;
  constexpr int64_t kTooLong = int64_t{1} << 30;
  for (Var inner : found.triangular) {
    if (ir::UsesVar(condition, inner)) return 0;
  }
  // A multiple of the period, if there is one: of each part the product of the divisors around
  // another, of several parts what all of them divide.
  absl::flat_hash_map<Expr, int64_t> steps;
  ir::ForEachExpr(condition, [&](Expr e) {
    int64_t step = 1;
    for (Expr operand : e.operands()) step = std::min(kTooLong, std::lcm(step, steps.at(operand)));
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

// Where the whole guard is not constant, its parts may be.
void GuardSolver::SolveParts(size_t whole, const std::vector<Expr>& facts, Interval range,
                             GuardsBelow& found) {
  std::vector<LoopGuard>& guards = found.guards;
  if (!found.HasParts(guards[whole].node)) return;
  const Intervals rest = Complement(Union(guards[whole].always, guards[whole].never), range);
  if (rest.empty()) return;
  for (const Expr part : found.PartsOf(guards[whole].node)) {
    const Expr condition = around_.Expand(part);
    if (!found.DependsOnVar(condition) || around_.analyzer().CanTrap(condition)) continue;
    const int place = guards[whole].place;
    auto known = std::find_if(guards.begin(), guards.end(), [&](const LoopGuard& guard) {
      return guard.node == part && guard.place == place;
    });
    if (known != guards.end() && known->whole) continue;
    const Solution solution = SolveUnder(facts, condition, found, range);
    // Of interest where the whole is open, or another condition with the same part.
    if (known == guards.end()) {
      guards.push_back({place, part, condition, false});
      known = std::prev(guards.end());
    }
    known->always = Union(known->always, Intersect(solution.always, rest));
    known->never = Union(known->never, Intersect(solution.never, rest));
  }
}

// By isl; keeps what is known if that gives up.
void GuardSolver::Exactly(Expr condition, const std::vector<Expr>& facts, Var var, Interval range,
                          Solution& solution) {
  std::vector<BoundedVar> others;
  for (const BoundedVar& bound : around_.loops()) {
    if (bound.var != var) others.push_back(bound);
  }
  auto split = sets_.SplitByTruth(condition, var, range, others, facts);
  if (!split) return;
  solution.always = std::move(split->always);
  solution.never = std::move(split->never);
}

// By intervals: exact for a linear comparison over a box.
GuardSolver::Solution GuardSolver::Intervalwise(Expr condition, Var var, Interval range) {
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
  arith::LinearForm form = around_.analyzer().Form(condition.operand(0));
  if (!form.Add(around_.analyzer().Form(condition.operand(1)), -1)) return {};
  if (condition.Is(ExprKind::kLe) && !form.AddConstant(-1)) return {};
  Solution solution;
  solution.exact = true;
  for (const arith::LinearForm::Term& term : form.terms()) {
    if (term.atom == var) continue;
    const bool is_tight = term.atom.Is(ExprKind::kVar) ? around_.HasConstantBounds(term.atom)
                                                       : IsRemainder(form, term);
    if (!is_tight) solution.exact = false;
    // `var` in another atom: that one's range covers all values of `var`.
    if (!term.atom.Is(ExprKind::kVar) && ir::UsesVar(term.atom, var)) solution.exact = false;
  }
  int64_t coefficient = form.CoefficientOf(var);
  // A range of one value is a constant in forms.
  if (!form.AddTerm(var, -coefficient)) return {};
  const ConstRange rest = around_.analyzer().Range(form);
  if (!rest.IsBounded()) return solution;
  solution.always = HalfLine(coefficient, rest.max, range);
  // Not (coefficient * var + min < 0): -coefficient * var - min - 1 < 0.
  solution.never = HalfLine(-coefficient, -rest.min - 1, range);
  return solution;
}

// Whether `term` and that of a variable are together a multiple of `x % m`, written as x - m * (x / m),
// which takes all values from 0 to m - 1, and nothing else in `form` depends on x.
bool GuardSolver::IsRemainder(const arith::LinearForm& form, const arith::LinearForm::Term& term) {
  if (!term.atom.Is(ExprKind::kDiv) || !HasConstantDivisor(term.atom)) return false;
  const Expr x = term.atom.operand(0);
  const int64_t m = term.atom.operand(1).int_value();
  int64_t of_quotient = 0;
  if (!x.Is(ExprKind::kVar) || !around_.HasConstantBounds(x) ||
      __builtin_mul_overflow(form.CoefficientOf(x), -m, &of_quotient) ||
      of_quotient != term.coefficient) {
    return false;
  }
  const ConstRange range = around_.analyzer().Range(x);
  return range.IsBounded() && range.max - range.min >= m - 1 &&
         std::none_of(form.terms().begin(), form.terms().end(), [&](const auto& other) {
           return other.atom != x && other.atom != term.atom && ir::UsesVar(other.atom, x);
         });
}

}  // namespace polynao
