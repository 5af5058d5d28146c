#include "compiler/poly/generate/loops_around.h"

#include <isl/aff.h>
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/map.h>
#include <isl/set.h>

namespace polynao::poly {

std::string LoopParameter(size_t i) { return StrCat("loop.", i); }

LoopsAround::LoopsAround(const isl::ast_build& build, const std::optional<isl::union_map>& loops)
    : build_(build), space_(isl::manage(isl_ast_build_get_schedule_space(build.get()))) {
  if (!loops) return;
  const isl::map all = build.schedule().reverse().apply_range(*loops).as_map();
  all_ = isl::manage(isl_pw_multi_aff_from_map(all.coalesce().release()));
}
isl::ast_expr LoopsAround::Value(const isl::pw_aff& f) const {
  const isl::space domain = isl::manage(isl_pw_aff_get_domain_space(f.get()));
  const bool is_constant = isl_space_is_params(domain.get()) == isl_bool_true;
  return build_.expr_from(
      isl::manage(is_constant ? isl_pw_aff_insert_domain(f.copy(), space_.copy())
                              : isl_pw_aff_pullback_pw_multi_aff(f.copy(), all_->copy())));
}
std::vector<isl::ast_expr> LoopsAround::Numbers() const {
  std::vector<isl::ast_expr> result;
  const IslLocalSpace loops(isl_local_space_from_space(space_.copy()));
  for (isl_size i = 0; i < isl_space_dim(space_.get(), isl_dim_set); ++i) {
    result.push_back(build_.expr_from(isl::manage(
        isl_pw_aff_var_on_domain(loops.copy(), isl_dim_set, static_cast<unsigned>(i)))));
  }
  return result;
}
isl::ast_expr LoopsAround::Condition(const isl::set& set, const isl::set& known) const {
  isl::set here = isl::manage(isl_set_preimage_pw_multi_aff(set.copy(), all_->copy()));
  const auto loops = static_cast<unsigned>(isl_set_dim(here.get(), isl_dim_set));
  const auto parameters = static_cast<unsigned>(isl_set_dim(here.get(), isl_dim_param));
  isl::map moved = isl::manage(isl_map_move_dims(isl_map_from_range(here.release()), isl_dim_param,
                                                 parameters, isl_dim_out, 0, loops));
  for (unsigned i = 0; i < loops; ++i) {
    moved = isl::manage(isl_map_set_dim_name(moved.release(), isl_dim_param, parameters + i,
                                             LoopParameter(i).c_str()));
  }
  const isl::set condition = isl::manage(
      isl_set_coalesce(isl_set_gist_params(isl_map_params(moved.release()), known.copy())));
  const isl::ast_build free =
      isl::manage(isl_ast_build_from_context(isl_set_universe(isl_set_get_space(condition.get()))));
  return isl::manage(isl_ast_build_expr_from_set(free.get(), condition.copy()));
}
isl::ast_expr LoopsAround::Number(unsigned i) const {
  return build_.expr_from(all_->at(static_cast<int>(i)));
}

}  // namespace polynao::poly
