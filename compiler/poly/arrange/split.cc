#include "compiler/poly/arrange/split.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/map.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_set.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/poly/isl/tree.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

namespace {

using Node = isl::schedule_node;

constexpr size_t kMaxHyperplanes = 2;

// Functions { S[i] -> [f] } that are zero on a hyperplane, by their text.
using Hyperplanes = std::map<std::string, isl::aff>;

// f or -f, so that its first coefficient is positive.
isl::aff Normalized(const isl::aff& f) {
  const isl_size n = isl_aff_dim(f.get(), isl_dim_in);
  for (isl_size i = 0; i < n; ++i) {
    const int sign = isl_aff_coefficient_sgn(f.get(), isl_dim_in, i);
    if (sign != 0) return sign < 0 ? f.neg() : f;
  }
  return f;
}

// Adds the equations between variables of `instances` that do not hold in all of `domain`.
void AddEquations(const isl::set& instances, const isl::set& domain, Hyperplanes* planes) {
  // isl's gist of basic sets crashes where one has floors of constants (isl 0.25): each equation is looked at for
  // itself.
  const isl::basic_set hull = isl::manage(isl_set_affine_hull(instances.copy()));
  const IslConstraintList list(isl_basic_set_get_constraint_list(hull.get()));
  const auto variables = static_cast<unsigned>(isl_set_dim(domain.get(), isl_dim_set));
  for (isl_size i = 0; i < isl_constraint_list_size(list.get()); ++i) {
    const IslConstraint c(isl_constraint_list_get_at(list.get(), i));
    const auto floors = static_cast<unsigned>(isl_constraint_dim(c.get(), isl_dim_div));
    if (isl_constraint_is_equality(c.get()) == isl_bool_true &&
        isl_constraint_involves_dims(c.get(), isl_dim_set, 0, variables) == isl_bool_true &&
        isl_constraint_involves_dims(c.get(), isl_dim_div, 0, floors) == isl_bool_false) {
      const isl::aff f = Normalized(isl::manage(isl_constraint_get_aff(c.get())));
      const isl::set zero = isl::manage(isl_set_from_basic_set(isl_aff_zero_basic_set(f.copy())));
      if (!domain.is_subset(zero)) {
        char* text = isl_aff_to_str(f.get());
        planes->emplace(text, f);
        std::free(text);
      }
    }
  }
}

// The parts of `domain` on each side of the hyperplanes and on them.
std::vector<isl::set> PartsOf(const isl::set& domain, const Hyperplanes& planes) {
  std::vector<isl::set> parts = {domain};
  for (const auto& [text, f] : planes) {
    const isl::set sides[] = {
        isl::manage(isl_set_from_basic_set(isl_aff_neg_basic_set(f.copy()))),
        isl::manage(isl_set_from_basic_set(isl_aff_zero_basic_set(f.copy()))),
        isl::manage(isl_set_from_basic_set(isl_aff_neg_basic_set(isl_aff_neg(f.copy()))))};
    std::vector<isl::set> finer;
    for (const isl::set& part : parts) {
      for (const isl::set& side : sides) {
        const isl::set both = part.intersect(side);
        if (!both.is_empty()) finer.push_back(both);
      }
    }
    parts = std::move(finer);
  }
  return parts;
}

// The parts in an order that keeps `pairs`, of which none is inside of a part. Nothing if there is none.
std::optional<std::vector<isl::set>> Ordered(std::vector<isl::set> parts, const isl::map& pairs) {
  std::vector<isl::set> order;
  while (!parts.empty()) {
    // The first one that waits for none of the rest, itself included.
    size_t next = 0;
    const auto waits = [&](const isl::set& part) {
      const isl::map into = pairs.intersect_range(part);
      for (const isl::set& other : parts) {
        if (!into.intersect_domain(other).is_empty()) return true;
      }
      return false;
    };
    while (next < parts.size() && waits(parts[next])) ++next;
    if (next == parts.size()) return std::nullopt;
    order.push_back(parts[next]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(next));
  }
  return order;
}

// The variables of the statement that the loops around do not determine: { S[k, i, j] -> [i, j] }.
std::optional<isl::multi_union_pw_aff> FreeVariables(const isl::set& domain, const Place& place) {
  std::optional<isl::multi_union_pw_aff> result;
  const IslLocalSpace space(isl_local_space_from_space(isl_set_get_space(domain.get())));
  const isl::union_map times =
      isl::union_map::from(place.prefix).intersect_domain(domain.to_union_set());
  for (unsigned i = 0; i < static_cast<unsigned>(isl_set_dim(domain.get(), isl_dim_set)); ++i) {
    const isl::multi_union_pw_aff variable = ToMulti(isl::manage(isl_union_pw_aff_from_pw_aff(
        isl_pw_aff_from_aff(isl_aff_var_on_domain(space.copy(), isl_dim_set, i)))));
    const isl::union_map values =
        isl::union_map::from(variable).intersect_domain(domain.to_union_set());
    if (times.reverse().apply_range(values).is_single_valued()) continue;
    result = result ? result->flat_range_product(variable) : variable;
  }
  return result;
}

class InstanceSplitter {
 public:
  InstanceSplitter(const Dependences& dependences, int* splits)
      : dependences_(dependences), splits_(splits) {}

  // Each function returns the node at the same place in the new tree.
  Node Visit(Node node) {
    if (IsBand(node) && DepthOf(node) > 0) {
      if (const std::optional<Node> split = Split(node)) return *split;
    }
    for (unsigned i = 0; i < node.n_children(); ++i) {
      node = Visit(node.child(static_cast<int>(i))).parent();
    }
    return node;
  }

 private:
  std::optional<Node> Split(const Node& node) {
    const Place place = PlaceOf(node);
    const std::vector<isl::set> domains = SetsOf(place.domain);
    if (domains.size() != 1 || !dependences_.private_order.empty()) return std::nullopt;
    const isl::set domain = domains[0];
    const isl::union_map active = Active(dependences_.All(), place);
    if (active.is_empty() || IsParallel(node, place)) return std::nullopt;
    const isl::map pairs = active.as_map().coalesce();
    Hyperplanes planes;
    std::vector<isl::map> pieces;
    isl_map_foreach_basic_map(
        pairs.get(),
        [](isl_basic_map* piece, void* user) {
          static_cast<std::vector<isl::map>*>(user)->push_back(
              isl::manage(isl_map_from_basic_map(piece)));
          return isl_stat_ok;
        },
        &pieces);
    for (const isl::map& piece : pieces) {
      AddEquations(piece.domain(), domain, &planes);
      AddEquations(piece.range(), domain, &planes);
    }
    if (planes.empty() || planes.size() > kMaxHyperplanes) return std::nullopt;
    const auto parts = Ordered(PartsOf(domain, planes), pairs);
    const auto members = FreeVariables(domain, place);
    if (!parts || !members) return std::nullopt;
    ++*splits_;
    Node split = isl::manage(isl_schedule_node_cut(node.copy()));
    split = split.insert_partial_schedule(*members);
    split = isl::manage(isl_schedule_node_band_set_permutable(split.release(), 1));
    isl::union_set_list filters(split.ctx(), static_cast<int>(parts->size()));
    for (const isl::set& part : *parts) filters = filters.add(part.to_union_set());
    return isl::manage(isl_schedule_node_insert_sequence(split.release(), filters.release()));
  }

  // Whether the band has a parallel loop, so that it is a kernel as it is.
  bool IsParallel(const Node& node, const Place& place) const {
    const isl::multi_union_pw_aff members = node.as<isl::schedule_node_band>().partial_schedule();
    for (unsigned i = 0; i < members.size(); ++i) {
      const auto copies = CopiesForParallel(dependences_, place, members.at(static_cast<int>(i)));
      if (copies && copies->empty()) return true;
    }
    return false;
  }

  const Dependences& dependences_;
  int* splits_;
};

}  // namespace

isl::schedule SplitIntoParallel(const Dependences& dependences, const isl::schedule& schedule,
                                int* splits) {
  return InstanceSplitter(dependences, splits).Visit(schedule.root()).schedule();
}

}  // namespace polynao::poly
