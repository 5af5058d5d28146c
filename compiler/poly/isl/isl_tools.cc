#include "compiler/poly/isl/isl_tools.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/union_set.h>
#include <isl/val.h>

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace polynao::poly {

using namespace std::string_literals;

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

bool IsSpent(isl_ctx* context) {
  // isl has no function for this; it counts allocations.
  isl_val* value = isl_val_zero(context);
  isl_val_free(value);
  return value == nullptr;
}

absl::Status StatusOf(const IslContext& isl, const isl::exception& error) {
  if (isl.IsSpent()) {
    return absl::ResourceExhaustedError("isl needs more operations than it is allowed");
  }
  return absl::InternalError(StrCat("internal error: isl: ", std::string(error.what())));
}

namespace {

std::string NameOr(const char* name) { return name == nullptr ? "" : name; }

// `objects` by their names, shorter ones first ("S2", "S10"), and by their spaces, which all differ: the order of isl's
// tables may change with its version.
template <typename T, typename Names>
std::vector<T> Sorted(std::vector<T> objects, const Names& names) {
  using Key = std::tuple<size_t, std::string, size_t, std::string, std::string>;
  std::vector<std::pair<Key, size_t>> keys;
  for (const T& object : objects) {
    const auto [first, second] = names(object);
    keys.emplace_back(Key{first.size(), first, second.size(), second, Text(object.space())},
                      keys.size());
  }
  std::sort(keys.begin(), keys.end());
  std::vector<T> sorted;
  for (const auto& [key, i] : keys) sorted.push_back(objects[i]);
  return sorted;
}

}  // namespace

std::vector<isl::set> SetsOf(const isl::union_set& set) {
  std::vector<isl::set> sets;
  set.foreach_set([&](isl::set s) { sets.push_back(s); });
  return Sorted(std::move(sets), [](const isl::set& s) { return std::pair(TupleName(s), ""s); });
}

std::vector<isl::map> MapsOf(const isl::union_map& map) {
  std::vector<isl::map> maps;
  map.foreach_map([&](isl::map m) { maps.push_back(m); });
  return Sorted(std::move(maps),
                [](const isl::map& m) { return std::pair(DomainName(m), RangeName(m)); });
}

std::vector<IslPwQuasiPolynomial> PartsOf(const IslUnionQuasiPolynomial& count) {
  std::vector<isl_pw_qpolynomial*> taken;
  isl_union_pw_qpolynomial_foreach_pw_qpolynomial(
      count.get(),
      [](isl_pw_qpolynomial* part, void* user) {
        static_cast<std::vector<isl_pw_qpolynomial*>*>(user)->push_back(part);
        return isl_stat_ok;
      },
      &taken);
  std::vector<IslPwQuasiPolynomial> parts;
  for (isl_pw_qpolynomial* part : taken) parts.emplace_back(part);
  return parts;
}

std::string TupleName(const isl::set& set) { return NameOr(isl_set_get_tuple_name(set.get())); }
std::string DomainName(const isl::map& map) {
  return NameOr(isl_map_get_tuple_name(map.get(), isl_dim_in));
}
std::string RangeName(const isl::map& map) {
  return NameOr(isl_map_get_tuple_name(map.get(), isl_dim_out));
}

int Dimensions(const isl::set& set) { return static_cast<int>(set.tuple_dim()); }

isl::multi_union_pw_aff Coordinate(const isl::union_set& domain, int position) {
  isl::union_pw_aff sum;
  for (const isl::set& set : SetsOf(domain)) {
    const isl::union_pw_aff one =
        isl::manage(isl_union_pw_aff_from_pw_aff(isl_pw_aff_from_aff(isl_aff_var_on_domain(
            isl_local_space_from_space(isl_set_get_space(set.get())), isl_dim_set, position))));
    sum = sum.is_null() ? one : sum.union_add(one);
  }
  return isl::manage(isl_multi_union_pw_aff_from_union_pw_aff(sum.release()));
}

isl::multi_union_pw_aff Members(const isl::multi_union_pw_aff& schedule,
                                const std::vector<int>& order) {
  POLYNAO_CHECK(!order.empty());
  isl::multi_union_pw_aff result;
  for (const int position : order) {
    const isl::multi_union_pw_aff one =
        isl::manage(isl_multi_union_pw_aff_from_union_pw_aff(schedule.at(position).release()));
    result = result.is_null() ? one : result.flat_range_product(one);
  }
  return result;
}

}  // namespace polynao::poly
