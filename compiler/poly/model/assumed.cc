#include "compiler/poly/model/assumed.h"

#include <isl/constraint.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/ir/visit.h"

namespace polynao::poly {

namespace {

// Elements of a window along a dimension.
constexpr int64_t kWindow = 8;

// Parameters at which loops end, alone.
struct Ends {
  std::vector<bool> is_window;  // of each loop of the statement at hand
  std::set<std::string> of_windows, of_others;
};

void AddEnd(const IslConstraint& constraint, Ends& ends) {
  const auto sign_of = [&](isl_dim_type type, int position) {
    return isl_val_sgn(
        isl::manage(isl_constraint_get_coefficient_val(constraint.get(), type, position)).get());
  };
  // -i + n >= 1
  std::vector<size_t> loops;
  bool is_end = true;
  for (size_t i = 0; i < ends.is_window.size(); ++i) {
    const int sign = sign_of(isl_dim_set, static_cast<int>(i));
    if (sign != 0) loops.push_back(i);
    is_end = is_end && sign <= 0;
  }
  std::vector<std::string> added;
  for (int p = 0; p < isl_constraint_dim(constraint.get(), isl_dim_param); ++p) {
    if (sign_of(isl_dim_param, p) <= 0) continue;
    added.emplace_back(
        isl_constraint_get_dim_name(constraint.get(), isl_dim_param, static_cast<unsigned>(p)));
  }
  if (is_end && loops.size() == 1 && added.size() == 1)
    (ends.is_window[loops[0]] ? ends.of_windows : ends.of_others).insert(added[0]);
}

// Of each loop around the statement, whether it goes over a window: its variable is in no index of a store, and added
// to another one in that of a load.
std::vector<bool> WindowsOf(const Statement& s) {
  const auto uses = [&](ir::Expr index, size_t i) { return ir::UsesVar(index, s.iterators[i]); };
  std::vector<bool> result(s.iterators.size(), false);
  for (const Access& access : s.accesses) {
    for (ir::Expr index : access.indices) {
      int used = 0;
      for (size_t i = 0; i < result.size(); ++i) used += uses(index, i);
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = result[i] || (!access.is_write && used > 1 && uses(index, i));
    }
  }
  for (const Access& access : s.accesses) {
    for (ir::Expr index : access.indices) {
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = result[i] && !(access.is_write && uses(index, i));
    }
  }
  return result;
}

}  // namespace

AssumedParameters AssumeParameters(const Scop& scop, int64_t extent) {
  Ends ends;
  for (const Statement& s : scop.statements) {
    ends.is_window = WindowsOf(s);
    s.domain.foreach_basic_set([&](const isl::basic_set& set) {
      const IslConstraintList list(isl_basic_set_get_constraint_list(set.get()));
      for (int i = 0; i < isl_constraint_list_size(list.get()); ++i) {
        AddEnd(IslConstraint(isl_constraint_list_get_at(list.get(), i)), ends);
      }
    });
  }
  AssumedParameters result{.context = scop.context, .values = {}, .variables = {}};
  for (const Parameter& p : scop.parameters) {
    const bool is_window = ends.of_windows.contains(p.name) && !ends.of_others.contains(p.name);
    int64_t value = is_window ? std::min(extent, kWindow) : extent;
    const int position =
        isl_set_find_dim_by_name(result.context.get(), isl_dim_param, p.name.c_str());
    if (position >= 0) {
      // { [n] }, the other parameters anything
      const isl::set line =
          isl::manage(isl_set_move_dims(isl_set_from_params(result.context.copy()), isl_dim_set, 0,
                                        isl_dim_param, static_cast<unsigned>(position), 1));
      const isl::val least = isl::manage(isl_set_dim_min_val(line.copy(), 0));
      const isl::val greatest = isl::manage(isl_set_dim_max_val(line.copy(), 0));
      if (least.is_int()) value = std::max<int64_t>(value, isl_val_get_num_si(least.get()));
      if (greatest.is_int()) value = std::min<int64_t>(value, isl_val_get_num_si(greatest.get()));
    }
    const isl::set any = isl::manage(isl_set_universe(
        isl_space_add_param_id(isl_space_params_alloc(scop.isl->get(), 0),
                               isl_id_alloc(scop.isl->get(), p.name.c_str(), nullptr))));
    const isl::set at = isl::manage(
        isl_set_fix_val(any.copy(), isl_dim_param, 0, isl_val_int_from_si(scop.isl->get(), value)));
    const isl::set context = result.context.intersect(at);
    if (!context.is_empty()) result.context = context;
    result.values[p.name] = value;
    ir::Expr variable = p.value;
    while (variable.Is(ir::ExprKind::kCast)) variable = variable.operand(0);
    if (variable.Is(ir::ExprKind::kVar)) result.variables[variable] = value;
  }
  return result;
}

isl::set AtAssumed(const isl::set& set, const Scop& scop, const AssumedParameters& assumed) {
  const isl::set at = set.intersect_params(assumed.context);
  return at.is_empty() ? set.intersect_params(scop.context) : at;
}

}  // namespace polynao::poly
