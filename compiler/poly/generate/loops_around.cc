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
  isl_space* domain = isl_pw_aff_get_domain_space(f.get());
  const bool is_constant = isl_space_is_params(domain) == isl_bool_true;
  isl_space_free(domain);
  isl_pw_aff* here = is_constant ? isl_pw_aff_insert_domain(f.copy(), space_.copy())
                                 : isl_pw_aff_pullback_pw_multi_aff(f.copy(), all_->copy());
  return build_.expr_from(isl::manage(here));
}
std::vector<isl::ast_expr> LoopsAround::Numbers() const {
  std::vector<isl::ast_expr> result;
  isl_local_space* loops = isl_local_space_from_space(space_.copy());
  for (isl_size i = 0; i < isl_space_dim(space_.get(), isl_dim_set); ++i) {
    result.push_back(build_.expr_from(isl::manage(isl_pw_aff_var_on_domain(
        isl_local_space_copy(loops), isl_dim_set, static_cast<unsigned>(i)))));
  }
  isl_local_space_free(loops);
  return result;
}
isl::ast_expr LoopsAround::Condition(const isl::set& set, const isl::set& known) const {
  isl_set* here = isl_set_preimage_pw_multi_aff(set.copy(), all_->copy());
  const auto loops = static_cast<unsigned>(isl_set_dim(here, isl_dim_set));
  const auto parameters = static_cast<unsigned>(isl_set_dim(here, isl_dim_param));
  isl_map* moved =
      isl_map_move_dims(isl_map_from_range(here), isl_dim_param, parameters, isl_dim_out, 0, loops);
  for (unsigned i = 0; i < loops; ++i) {
    moved = isl_map_set_dim_name(moved, isl_dim_param, parameters + i, LoopParameter(i).c_str());
  }
  isl_set* condition = isl_set_coalesce(isl_set_gist_params(isl_map_params(moved), known.copy()));
  isl_ast_build* free = isl_ast_build_from_context(isl_set_universe(isl_set_get_space(condition)));
  const isl::ast_expr result = isl::manage(isl_ast_build_expr_from_set(free, condition));
  isl_ast_build_free(free);
  return result;
}
isl::ast_expr LoopsAround::Number(unsigned i) const {
  return build_.expr_from(all_->at(static_cast<int>(i)));
}

}  // namespace polynao::poly
