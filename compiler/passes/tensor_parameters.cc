#include "compiler/passes/tensor_parameters.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;
using ir::Var;
using ir::VarMap;

// How many divisors are tried for one unknown, and how many values above a lower bound. Conditions
// ask for multiples of at most 64 elements or bytes.
constexpr int kMaxDivisors = 128;
constexpr int kMaxSteps = 64;
constexpr int64_t kMaxFactored = int64_t{1} << 32;

// The values that are numbers.
ir::IntValues Constants(const VarMap& values, absl::Span<const Var> parameters) {
  ir::IntValues numbers;
  for (Var var : parameters) {
    auto it = values.find(var);
    if (it != values.end() && it->second.Is(ExprKind::kIntImm)) {
      numbers[var] = it->second.int_value();
    }
  }
  return numbers;
}

class Solver {
 public:
  Solver(const ParameterProblem& problem, Analyzer& analyzer,
         const std::function<bool(const VarMap&)>& accept, std::string* why)
      : problem_(problem),
        analyzer_(analyzer),
        c_(analyzer.context()),
        accept_(accept),
        why_(why) {}

  bool Solve(VarMap values) {
    std::vector<const ParameterEquation*> open;
    for (const ParameterEquation& equation : problem_.equations) open.push_back(&equation);
    return Solve(std::move(values), std::move(open));
  }

 private:
  // What is left of an equation once known values are put in: product of `unknown` = value, or
  // `numerator` / divisor = value.
  struct Rest {
    std::vector<Var> unknown;
    Expr value;      // null: it can not hold
    Expr numerator;  // an unknown
    int64_t divisor = 0;
  };

  bool IsOpen(Var var, const VarMap& values) const {
    return !values.contains(var) &&
           std::find(problem_.parameters.begin(), problem_.parameters.end(), var) !=
               problem_.parameters.end();
  }

  Expr Bound(Expr e, const VarMap& values) {
    return BindParameters(e, values, problem_.parameters, analyzer_);
  }

  // value / factor if that is exact, else null. Adds no division that may trap.
  Expr Quotient(Expr value, Expr factor) {
    if (factor.IsInt(1)) return value;
    if (factor.Is(ExprKind::kIntImm) && value.Is(ExprKind::kIntImm)) {
      const int64_t f = factor.int_value();
      return f != 0 && f != -1 && value.int_value() % f == 0 ? c_.I64(value.int_value() / f)
                                                             : Expr();
    }
    if (factor.IsInt(0)) return Expr();
    if (value == factor) return c_.I64(1);
    const Expr quotient = analyzer_.Simplify(value / factor);
    bool traps = false;
    ir::ForEachExpr(quotient, [&](Expr e) {
      traps = traps || ((e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) &&
                        !e.operand(1).Is(ExprKind::kIntImm));
    });
    if (traps || !analyzer_.CanProve(ir::Eq(quotient * factor, value))) return Expr();
    return quotient;
  }

  Rest RestOf(const ParameterEquation& equation, const VarMap& values) {
    Rest rest{.unknown = {}, .value = equation.value, .numerator = {}};
    std::vector<Expr> factors = {equation.pattern};
    while (!factors.empty()) {
      const Expr factor = factors.back();
      factors.pop_back();
      if (factor.Is(ExprKind::kMul)) {
        factors.push_back(factor.operand(0));
        factors.push_back(factor.operand(1));
      } else if (IsOpen(factor, values)) {
        rest.unknown.push_back(factor);
      } else if (const Expr known = Bound(factor, values)) {
        rest.value = Quotient(rest.value, known);
        if (!rest.value) return rest;
      } else if (factor.Is(ExprKind::kDiv) && factor == equation.pattern &&
                 IsOpen(factor.operand(0), values) && factor.operand(1).Is(ExprKind::kIntImm) &&
                 factor.operand(1).int_value() > 0) {
        rest.numerator = factor.operand(0);
        rest.divisor = factor.operand(1).int_value();
      } else {
        rest.value = Expr();
        return rest;
      }
    }
    return rest;
  }

  bool Fail(const ParameterEquation& equation) {
    if (why_ != nullptr && why_->empty()) {
      const Expr value = equation.value;
      *why_ = StrCat("'", ir::Print(equation.pattern), "' would have to be ",
                     value.Is(ExprKind::kIntImm) ? StrCat(value.int_value()) : ir::Print(value));
    }
    return false;
  }

  bool Solve(VarMap values, std::vector<const ParameterEquation*> open) {
    bool progress = true;
    while (progress) {
      progress = false;
      std::vector<const ParameterEquation*> left;
      const ParameterEquation* divided = nullptr;
      Rest divided_rest;
      for (const ParameterEquation* equation : open) {
        if (const Expr known = Bound(equation->pattern, values)) {
          const bool constant =
              known.Is(ExprKind::kIntImm) && equation->value.Is(ExprKind::kIntImm);
          if (constant ? known != equation->value
                       : !analyzer_.CanProve(ir::Eq(known, Widened(equation->value)))) {
            return Fail(*equation);
          }
          progress = true;
          continue;
        }
        const Rest rest = RestOf(*equation, values);
        if (!rest.value) return Fail(*equation);
        if (rest.unknown.size() == 1) {
          values[rest.unknown[0]] = rest.value;
          progress = true;
          continue;
        }
        if (rest.numerator && divided == nullptr) {
          divided = equation;
          divided_rest = rest;
        }
        left.push_back(equation);
      }
      open = std::move(left);
      if (!progress && divided != nullptr) {
        // The smallest solution. The next round checks the equation itself.
        values[divided_rest.numerator] =
            analyzer_.Simplify(divided_rest.value * divided_rest.divisor);
        progress = true;
      }
    }
    if (!open.empty()) return SolveShared(values, open);
    // Most divisors break a condition, so the remaining parameters are not chosen for those.
    // (Without divisors there is a single try, and `accept` may be able to repair the condition.)
    if (shared_) {
      for (Expr condition : problem_.conditions) {
        const Expr bound = Bound(condition, values);
        if (bound && !analyzer_.CanProve(bound)) {
          if (why_ != nullptr && why_->empty()) {
            *why_ = StrCat("it must have ", ir::Print(condition));
          }
          return false;
        }
      }
    }
    return Choose(std::move(values));
  }

  // Each open equation has several unknowns: tries the divisors of one value for one unknown.
  bool SolveShared(const VarMap& values, const std::vector<const ParameterEquation*>& open) {
    Var best;
    int best_uses = -1;
    absl::flat_hash_map<Var, int64_t> gcd;
    for (const ParameterEquation* equation : open) {
      const Rest rest = RestOf(*equation, values);
      for (Var var : rest.unknown) {
        if (!rest.value.Is(ExprKind::kIntImm)) return Fail(*equation);
        gcd[var] = std::gcd(gcd[var], rest.value.int_value());
        auto it = problem_.uses.find(var);
        const int uses = it == problem_.uses.end() ? 0 : it->second;
        if (uses > best_uses) {
          best = var;
          best_uses = uses;
        }
      }
    }
    if (best_uses < 0 || gcd[best] <= 0 || gcd[best] > kMaxFactored) return Fail(*open[0]);
    const bool outermost = !shared_;
    shared_ = true;
    bool solved = false;
    for (int64_t divisor : Divisors(gcd[best])) {
      VarMap with = values;
      with[best] = c_.I64(divisor);
      solved = Solve(std::move(with), open);
      if (solved) break;
    }
    if (outermost) shared_ = false;
    return solved;
  }

  static std::vector<int64_t> Divisors(int64_t n) {
    std::vector<int64_t> small;
    std::vector<int64_t> large;
    for (int64_t d = 1; d * d <= n; ++d) {
      if (n % d != 0) continue;
      small.push_back(d);
      if (d * d != n) large.push_back(n / d);
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    if (small.size() > kMaxDivisors) small.resize(kMaxDivisors);
    return small;
  }

  // The expression that the condition puts below `var`: var >= result + offset. Null if the
  // condition is no such bound.
  static Expr LowerBound(Expr condition, Var var, int* offset) {
    if (!condition.Is(ExprKind::kLe) && !condition.Is(ExprKind::kLt)) return Expr();
    if (condition.operand(1) != var || ir::UsesVar(condition.operand(0), var)) return Expr();
    *offset = condition.Is(ExprKind::kLt) ? 1 : 0;
    return condition.operand(0);
  }

  // Gives values to parameters that no equation mentions.
  bool Choose(VarMap values) {
    while (true) {
      // Prefer a parameter whose lower bounds are known.
      Var chosen;
      bool ready = false;
      for (Var var : problem_.parameters) {
        if (ready || !IsOpen(var, values)) continue;
        ready = true;
        for (Expr condition : problem_.conditions) {
          int offset = 0;
          const Expr bound = LowerBound(condition, var, &offset);
          ready = ready && (!bound || Bound(bound, values));
        }
        if (ready || !chosen) chosen = var;
      }
      if (!chosen) return accept_(values);
      values[chosen] = Smallest(chosen, values);
    }
  }

  Expr Smallest(Var var, VarMap values) {
    int64_t least = 0;
    for (Expr condition : problem_.conditions) {
      int offset = 0;
      Expr bound = LowerBound(condition, var, &offset);
      if (bound) bound = Bound(bound, values);
      if (!bound) continue;
      const arith::ConstRange range = analyzer_.Range(bound);
      if (range.max < kMaxFactored) least = std::max(least, range.max + offset);
    }
    // Conditions that the other values decide. A value known only at run time decides none.
    ir::IntValues numbers = Constants(values, problem_.parameters);
    numbers[var] = least;
    std::vector<Expr> decided;
    for (Expr condition : problem_.conditions) {
      if (ir::UsesVar(condition, var) && ir::EvaluateInt(condition, numbers).ok()) {
        decided.push_back(condition);
      }
    }
    for (int64_t value = least; value < least + kMaxSteps; ++value) {
      numbers[var] = value;
      bool holds = true;
      for (Expr condition : decided) {
        if (!holds) break;
        const absl::StatusOr<int64_t> truth = ir::EvaluateInt(condition, numbers);
        holds = truth.ok() && *truth != 0;
      }
      if (holds) return c_.I64(value);
    }
    return c_.I64(least);
  }

  const ParameterProblem& problem_;
  Analyzer& analyzer_;
  ir::Context& c_;
  const std::function<bool(const VarMap&)>& accept_;
  std::string* why_;
  bool shared_ = false;  // while the divisors of an unknown are tried
};

}  // namespace

Expr Widened(Expr e) {
  Context& c = e.context();
  if (e.Is(ExprKind::kCast) && e.type() == Type::kI64) {
    const Expr from = e.operand(0);
    switch (from.kind()) {
      case ExprKind::kAdd:
      case ExprKind::kSub:
      case ExprKind::kMul:
      case ExprKind::kMin:
      case ExprKind::kMax:
        if (from.type() != Type::kI32) return e;
        return c.Binary(from.kind(), Widened(c.Cast(Type::kI64, from.operand(0))),
                        Widened(c.Cast(Type::kI64, from.operand(1))));
      case ExprKind::kIntImm:
        return c.I64(from.int_value());
      default:
        return e;
    }
  }
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) operands.push_back(Widened(operand));
  return c.Rebuild(e, operands);
}

Expr BindParameters(Expr e, const VarMap& values, absl::Span<const Var> parameters,
                    Analyzer& analyzer) {
  if (e.Is(ExprKind::kIntImm)) return e;
  if (e.Is(ExprKind::kVar)) {
    if (auto it = values.find(e); it != values.end()) return it->second;
    return std::find(parameters.begin(), parameters.end(), e) == parameters.end() ? e : Expr();
  }
  // Usually all values are numbers.
  const absl::StatusOr<int64_t> number = ir::EvaluateInt(e, Constants(values, parameters));
  if (number.ok()) return e.context().Int(e.type(), *number);
  for (Var var : ir::FreeVars(e)) {
    if (!values.contains(var) &&
        std::find(parameters.begin(), parameters.end(), var) != parameters.end()) {
      return Expr();
    }
  }
  return analyzer.Simplify(Widened(ir::Substitute(e, values)));
}

bool SolveParameters(const ParameterProblem& problem, Analyzer& analyzer,
                     const std::function<bool(const VarMap&)>& accept, std::string* why) {
  return Solver(problem, analyzer, accept, why).Solve({});
}

}  // namespace polynao
