#include "compiler/passes/guard_bounds.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::LinearForm;
using ir::Context;
using ir::Expr;
using ir::Var;

// The bound that `form` >= 0 sets on `var`, whose coefficient in it is `k`: var >= result if k > 0,
// else var < result. None if the rest is no sum in the variable's type.
std::optional<Expr> BoundOn(Context& c, Var var, const LinearForm& form, int64_t k) {
  LinearForm rest = form;
  if (!rest.AddTerm(var, -k)) return std::nullopt;
  for (const LinearForm::Term& term : rest.terms()) {
    if (term.atom.type() != var.type()) return std::nullopt;
  }
  const auto sum = [&](const LinearForm& f) {
    return SumExpr(c, var.type(), f.terms(), f.constant());
  };
  if (k > 0) {
    // k * var >= -rest, rounded up.
    if (!rest.Scale(-1) || !rest.AddConstant(k - 1)) return std::nullopt;
    return k == 1 ? sum(rest) : sum(rest) / k;
  }
  // -k * var < rest + 1, rounded up.
  if (!rest.AddConstant(-k)) return std::nullopt;
  return k == -1 ? sum(rest) : sum(rest) / -k;
}

}  // namespace

GuardBounds FindCopyBounds(const GuardedNest& nest, Analyzer& analyzer) {
  Context& c = analyzer.context();
  GuardBounds result;
  result.in_bounds.resize(nest.guards.size());
  result.outside.resize(nest.guards.size());
  result.loops = nest.loops;
  std::vector<Expr> ends;
  for (const GuardedLoop& loop : nest.loops) {
    ends.push_back(analyzer.Simplify(loop.min + loop.extent));
  }
  // Conditions may still name the variables of loops of one iteration.
  ir::VarMap only_values;
  for (const GuardedLoop& loop : nest.loops) {
    if (loop.extent.IsInt(1)) only_values[loop.loop.var()] = loop.min;
  }
  std::vector<bool> depend(nest.loops.size());  // loops whose bounds depend on others of the nest
  Expr some_outside = c.Bool(nest.is_diagonal);
  for (size_t g = 0; g < nest.guards.size(); ++g) {
    const Guard& guard = nest.guards[g];
    if (guard.forms.empty()) {
      some_outside = c.Bool(true);
      continue;
    }
    if (guard.vars.empty()) {
      result.outside[g] = ir::Substitute(guard.condition, only_values);
      some_outside = ir::Or(some_outside, arith::Negation(result.outside[g]));
      continue;
    }
    std::vector<std::pair<Expr, bool>> bounds;  // each with whether it is a lower one
    // The innermost of its loops: its bounds depend on the others, as those of a triangle. In copies several loops are
    // pieces of one row, of which partitions leave a whole one and a rest.
    size_t at = nest.loops.size() - 1;
    while (std::find(guard.vars.begin(), guard.vars.end(), nest.loops[at].loop.var()) ==
           guard.vars.end()) {
      --at;
    }
    const Var var = nest.loops[at].loop.var();
    const bool depends = guard.vars.size() > 1, may_depend = !depends || nest.IsPad();
    for (const LinearForm& form : guard.forms) {
      const int64_t k = form.CoefficientOf(var);
      LinearForm rest = form;
      const bool is_linear = may_depend && k != 0 && rest.AddTerm(var, -k) && !UsesVar(rest, var);
      const std::optional<Expr> bound = is_linear ? BoundOn(c, var, form, k) : std::nullopt;
      if (bound) bounds.emplace_back(*bound, k > 0);
    }
    if (bounds.size() != guard.forms.size()) {
      some_outside = c.Bool(true);
      continue;
    }
    result.in_bounds[g] = true;
    if (depends) {
      depend[at] = true;
      some_outside = c.Bool(true);
    }
    const GuardedLoop& old = nest.loops[at];
    const Expr old_end = old.min + old.extent;
    for (const auto& [bound, is_lower] : bounds) {
      GuardedLoop& loop = result.loops[at];
      if (is_lower) {
        loop.min = analyzer.Simplify(ir::Max(loop.min, bound));
        if (!depends) some_outside = ir::Or(some_outside, old.min < bound);
      } else {
        ends[at] = analyzer.Simplify(ir::Min(ends[at], bound));
        if (!depends) some_outside = ir::Or(some_outside, bound < old_end);
      }
    }
  }
  for (size_t k = 0; k < nest.loops.size(); ++k) {
    const Expr extent = analyzer.Simplify(ends[k] - result.loops[k].min);
    result.loops[k].extent = extent;
    // A loop that could be empty before may be empty now. What depends on loops of the nest is no condition around it.
    result.may_be_empty.push_back(extent != nest.loops[k].extent && !depend[k] &&
                                  !analyzer.CanProve(ConstantLike(extent, 0) < extent));
  }
  result.some_outside = analyzer.Simplify(some_outside);
  return result;
}

GuardBounds FindFewerIterations(const GuardedNest& nest, Analyzer& analyzer) {
  GuardBounds result;
  result.fewer.resize(nest.guards.size());
  if (nest.shared_loops == 0) return result;
  const GuardedLoop& outermost = nest.loops[0];
  const Var var = outermost.loop.var();
  const absl::Span<const Expr> indices = nest.stores[0].store.indices();
  // Channels are computed in whole groups.
  if (indices.empty() || ir::UsesVar(indices.back(), var)) return result;
  for (size_t g = 0; g < nest.guards.size(); ++g) {
    const Guard& guard = nest.guards[g];
    if (guard.forms.size() != 1 || guard.vars != std::vector<Var>{var}) continue;
    const int64_t k = guard.forms[0].CoefficientOf(var);
    LinearForm rest = guard.forms[0];
    if (k >= 0 || !rest.AddTerm(var, -k) || UsesVar(rest, var)) continue;
    const std::optional<Expr> bound = BoundOn(analyzer.context(), var, guard.forms[0], k);
    if (!bound) continue;
    const Expr count =
        analyzer.Simplify(ir::Min(outermost.min + outermost.extent, *bound) - outermost.min);
    if (analyzer.CanProve(ConstantLike(count, 0) < count)) result.fewer[g] = count;
  }
  return result;
}

}  // namespace polynao
