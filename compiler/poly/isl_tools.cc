#include "compiler/poly/isl_tools.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/union_set.h>

#include "base/check.h"

namespace polynao::poly {

IslContext::IslContext() : context_(isl_ctx_alloc()) {
  POLYNAO_CHECK(context_ != nullptr) << "no memory";
  isl_options_set_on_error(context_, ISL_ON_ERROR_CONTINUE);
}

IslContext::~IslContext() { isl_ctx_free(context_); }

void IslContext::Allow(unsigned long operations) {
  isl_ctx_reset_error(context_);
  isl_ctx_reset_operations(context_);
  isl_ctx_set_max_operations(context_, operations);
}

unsigned long IslContext::operations() const { return isl_ctx_get_max_operations(context_); }

absl::Status StatusOf(const isl::exception& error) {
  if (dynamic_cast<const isl::exception_quota*>(&error) != nullptr) {
    return absl::ResourceExhaustedError("isl needs more operations than it is allowed");
  }
  // A function of the C interface gives null once the operations are spent, and the next one says so. isl's
  // scheduler sometimes finds no schedule where there is one ("unable to carry dependences").
  const std::string what = error.what();
  if (what.find("NULL") != std::string::npos ||
      dynamic_cast<const isl::exception_invalid*>(&error) == nullptr) {
    return absl::ResourceExhaustedError(StrCat("isl stopped: ", what));
  }
  return absl::InvalidArgumentError(StrCat("isl: ", std::string(error.what())));
}

std::vector<isl::set> SetsOf(const isl::union_set& set) {
  std::vector<isl::set> sets;
  set.foreach_set([&](isl::set s) { sets.push_back(s); });
  return sets;
}

std::vector<isl::map> MapsOf(const isl::union_map& map) {
  std::vector<isl::map> maps;
  map.foreach_map([&](isl::map m) { maps.push_back(m); });
  return maps;
}

namespace {
std::string NameOr(const char* name) { return name == nullptr ? "" : name; }
}  // namespace

std::string TupleName(const isl::set& set) { return NameOr(isl_set_get_tuple_name(set.get())); }
std::string DomainName(const isl::map& map) {
  return NameOr(isl_map_get_tuple_name(map.get(), isl_dim_in));
}
std::string RangeName(const isl::map& map) {
  return NameOr(isl_map_get_tuple_name(map.get(), isl_dim_out));
}

int Dimensions(const isl::set& set) { return static_cast<int>(set.tuple_dim()); }

isl::multi_union_pw_aff Coordinate(const isl::union_set& domain, int position) {
  isl_union_pw_aff* sum = nullptr;
  for (const isl::set& set : SetsOf(domain)) {
    isl_local_space* space = isl_local_space_from_space(isl_set_get_space(set.get()));
    isl_union_pw_aff* one = isl_union_pw_aff_from_pw_aff(
        isl_pw_aff_from_aff(isl_aff_var_on_domain(space, isl_dim_set, position)));
    sum = sum == nullptr ? one : isl_union_pw_aff_union_add(sum, one);
  }
  POLYNAO_CHECK(sum != nullptr) << "no statement";
  return isl::manage(isl_multi_union_pw_aff_from_union_pw_aff(sum));
}

isl::multi_union_pw_aff Members(const isl::multi_union_pw_aff& schedule,
                                const std::vector<int>& order) {
  POLYNAO_CHECK(!order.empty());
  isl_multi_union_pw_aff* result = nullptr;
  for (const int position : order) {
    isl_multi_union_pw_aff* one =
        isl_multi_union_pw_aff_from_union_pw_aff(schedule.at(position).release());
    result = result == nullptr ? one : isl_multi_union_pw_aff_flat_range_product(result, one);
  }
  return isl::manage(result);
}

}  // namespace polynao::poly
