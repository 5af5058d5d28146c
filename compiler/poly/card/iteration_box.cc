#include "compiler/poly/card/iteration_box.h"

#include <isl/constraint.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/text.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {
namespace {

using ir::Expr;

absl::Status NoBox(const Statement& s, const std::string& reason) {
  const std::string code = ir::Print(s.code);
  return InvalidInput("statement '", code.substr(0, code.find('\n')), "': ", reason);
}

int64_t NumberOf(isl_val* value) { return isl_val_get_num_si(isl::manage(value).get()); }

// `set` as a conjunction of inequalities; none if it is no such set.
std::optional<Expr> ConditionOf(const Statement& s, const isl::set& set, ir::Context& c) {
  if (isl_set_n_basic_set(set.get()) != 1 || s.iterators.empty()) return std::nullopt;
  const auto parameters = static_cast<unsigned>(isl_set_dim(set.get(), isl_dim_param));
  if (isl_set_involves_dims(set.get(), isl_dim_param, 0, parameters) != isl_bool_false) {
    return std::nullopt;
  }
  const isl::basic_set part = isl::manage(isl_basic_set_remove_redundancies(
      isl_set_simple_hull(isl_set_remove_redundancies(set.copy()))));
  if (!isl::set(part).is_equal(set)) return std::nullopt;
  if (isl_basic_set_dim(part.get(), isl_dim_div) > 0) return std::nullopt;
  for (const ir::Var& iterator : s.iterators) {
    if (iterator.type() != s.iterators[0].type()) return std::nullopt;
  }
  const IslConstraintList list(isl_basic_set_get_constraint_list(part.get()));
  Expr condition;
  const auto require = [&](Expr e) { condition = condition ? ir::And(condition, e) : e; };
  for (int i = 0; i < isl_constraint_list_n_constraint(list.get()); ++i) {
    const IslConstraint constraint(isl_constraint_list_get_constraint(list.get(), i));
    arith::LinearForm form =
        arith::LinearForm::Constant(NumberOf(isl_constraint_get_constant_val(constraint.get())));
    for (size_t d = 0; d < s.iterators.size(); ++d) {
      const int64_t coefficient = NumberOf(
          isl_constraint_get_coefficient_val(constraint.get(), isl_dim_set, static_cast<int>(d)));
      if (!form.AddTerm(s.iterators[d], coefficient)) return std::nullopt;
    }
    const ir::Type type = s.iterators[0].type();
    require(IsNotNegative(form, type, c));
    if (isl_constraint_is_equality(constraint.get()) == isl_bool_true) {
      require(IsNotNegative(form * -1, type, c));
    }
  }
  return condition ? std::optional(condition) : std::nullopt;
}

}  // namespace

Expr IsNotNegative(const arith::LinearForm& form, ir::Type type, ir::Context& c) {
  std::vector<arith::LinearForm::Term> more, less;
  for (const arith::LinearForm::Term& term : form.terms()) {
    if (term.coefficient > 0) more.push_back(term);
    if (term.coefficient < 0) less.push_back({term.atom, -term.coefficient});
  }
  const int64_t constant = form.constant();
  if (less.empty()) return c.Int(type, -constant) <= arith::SumExpr(c, type, more, 0);
  const Expr sum = arith::SumExpr(c, type, less, 0);
  return sum <= (more.empty() ? c.Int(type, constant) : arith::SumExpr(c, type, more, constant));
}

absl::StatusOr<IterationBox> IterationsOf(const Statement& s, ir::Context& c,
                                          const std::vector<Bound>& larger) {
  IterationBox box;
  for (size_t d = 0; d < s.iterators.size(); ++d) {
    const int position = static_cast<int>(d);
    const isl::val least = isl::manage(isl_set_dim_min_val(s.domain.copy(), position));
    const isl::val most = isl::manage(isl_set_dim_max_val(s.domain.copy(), position));
    if (!least.is_int() || !most.is_int()) return NoBox(s, "expected loops with constant bounds");
    box.bounds.push_back({isl_val_get_num_si(least.get()),
                          isl_val_get_num_si(most.get()) - isl_val_get_num_si(least.get()) + 1});
  }
  const auto all_of = [&] {
    isl::set whole = isl::set::universe(s.domain.space());
    for (size_t d = 0; d < box.bounds.size(); ++d) {
      const auto [min, extent] = box.bounds[d];
      const auto at = static_cast<unsigned>(d);
      const isl::val least(s.domain.ctx(), min), most(s.domain.ctx(), min + extent - 1);
      whole = isl::manage(isl_set_lower_bound_val(whole.release(), isl_dim_set, at, least.copy()));
      whole = isl::manage(isl_set_upper_bound_val(whole.release(), isl_dim_set, at, most.copy()));
    }
    return whole;
  };
  isl::set whole = all_of();
  if (whole.is_equal(s.domain)) return box;
  for (size_t d = 0; d < larger.size(); ++d) {
    const int64_t min = std::min(box.bounds[d].min, larger[d].min);
    const int64_t end =
        std::max(box.bounds[d].min + box.bounds[d].extent, larger[d].min + larger[d].extent);
    box.bounds[d] = {min, end - min};
  }
  if (!larger.empty()) whole = all_of();
  const isl::set inside =
      isl::manage(isl_set_coalesce(isl_set_gist(s.domain.copy(), whole.copy())));
  const std::optional<Expr> condition = ConditionOf(s, inside, c);
  if (!condition) {
    return NoBox(s, "expected a box of iterations, found bounds that depend on other loops");
  }
  box.condition = *condition;
  return box;
}

}  // namespace polynao::poly
