#include "compiler/poly/fuse/group_count.h"

#include <isl/map.h>
#include <isl/set.h>
#include <isl/val.h>

#include "base/status.h"
#include "compiler/poly/calculator/count.h"
#include "compiler/poly/fuse/part_variants.h"
#include "compiler/poly/model/assumed.h"

namespace polynao::poly {

namespace {

// The set without parameters, if each has one value.
isl::set WithoutParameters(const isl::set& set) {
  const auto count = static_cast<unsigned>(isl_set_dim(set.get(), isl_dim_param));
  for (unsigned p = 0; p < count; ++p) {
    const isl::val value = isl::manage(isl_set_plain_get_val_if_fixed(set.get(), isl_dim_param, p));
    if (!value.is_int()) return set;
  }
  return isl::manage(isl_set_project_out(set.copy(), isl_dim_param, 0, count));
}

// Elements of a set, with open parameters at `assumed`.
absl::StatusOr<int64_t> Count(const isl::set& set, const Scop& part,
                              const AssumedParameters& assumed) {
  const isl::set sized = WithoutParameters(AtAssumed(set, part, assumed));
  ASSIGN_OR_RETURN(const IslPwQuasiPolynomial count, CountElements(sized));
  ASSIGN_OR_RETURN(const isl::val value, ValueAt(count, assumed.values));
  if (!value.is_int() || value.cmp_si(INT64_MAX) > 0)
    return absl::FailedPreconditionError("there are more instances than 64 bits can say");
  return isl_val_get_num_si(value.get());
}

}  // namespace

absl::StatusOr<InstanceCount> CountInstances(const Scop& part, const GroupTree* tree,
                                             int64_t extent, unsigned long operations) {
  part.isl->Allow(operations);
  return Guarded(*part.isl, [&]() -> absl::StatusOr<InstanceCount> {
    const AssumedParameters assumed = AssumeParameters(part, extent);
    InstanceCount total;
    for (const Statement& s : part.statements) {
      ASSIGN_OR_RETURN(const int64_t exist, Count(s.domain, part, assumed));
      if (!IsSecondForm(s)) total.exist += exist;
      const bool is_once =
          tree == nullptr || !tree->tiles.intersect_domain(s.domain.to_union_set()).is_empty();
      if (is_once) {
        total.run += exist;
        continue;
      }
      const auto added = tree->instances.find(s.name);  // none of a statement that no tile needs
      if (added == tree->instances.end()) continue;
      ASSIGN_OR_RETURN(const int64_t run, Count(added->second.wrap(), part, assumed));
      total.run += run;
    }
    return total;
  });
}

}  // namespace polynao::poly
