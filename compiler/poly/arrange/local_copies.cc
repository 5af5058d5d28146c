#include "compiler/poly/arrange/local_copies.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/fixed_box.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/union_map.h>
#include <isl/val.h>

#include <map>
#include <utility>

#include "base/text.h"
#include "compiler/poly/model/affine.h"

namespace polynao::poly {

namespace {

// More pieces than this in the functions that give an element are not worth their code.
constexpr int kMaxElementPieces = 2;
// More conditions than these sets have are not worth their code either.
constexpr int kMaxReadablePieces = 4;
// A box never has as many elements.
constexpr int64_t kMaxElements = int64_t{1} << 30;

// The affine accesses at a place, by array. Arrays with others are left out.
struct ArrayAccesses {
  std::vector<Reference> references;
  bool is_affine = true;
  bool is_stored = false;
};

std::map<std::string, ArrayAccesses> AccessesAt(const Scop& scop, const Place& place) {
  std::map<std::string, ArrayAccesses> arrays;
  for (const isl::set& domain : SetsOf(place.domain)) {
    const Statement* statement = scop.Find(TupleName(domain));
    for (size_t i = 0; i < statement->accesses.size(); ++i) {
      const Access& access = statement->accesses[i];
      ArrayAccesses& array = arrays[RangeName(access.map)];
      array.references.push_back({statement, i});
      array.is_affine &= access.indices.size() == access.buffer->extents.size();
      array.is_affine &= array.references[0].get().buffer == access.buffer;
      // The tuple of buffers that may overlap has no dimensions.
      array.is_affine &= isl_map_dim(access.map.get(), isl_dim_out) ==
                         static_cast<isl_size>(access.buffer->extents.size());
      array.is_stored |= access.is_write;
    }
  }
  return arrays;
}

// { S[i] -> A[i] } of the instances at a place.
isl::map MapAt(const Reference& reference, const Place& place) {
  const isl::set domain = place.domain.extract_set(reference.statement->domain.space());
  return reference.get().map.intersect_domain(domain);
}

// { [t0, ..] -> A[i] }
isl::map FootprintOf(const isl::map& accesses, const isl::multi_union_pw_aff& loops) {
  const isl::union_map times =
      isl::union_map::from(loops).intersect_domain(accesses.domain().to_union_set());
  return times.reverse().apply_range(accesses.to_union_map()).as_map();
}

isl::pw_aff ToPwAff(isl_aff* aff) { return isl::manage(isl_pw_aff_from_aff(aff)); }

// Whether two instances of one iteration of the loops access one element. Two references at a time: mostly the first
// two show it, and isl is slow on unions of ten.
bool IsReused(const std::vector<Reference>& references, const Place& place) {
  std::vector<isl::union_map> elements;  // { S[i] -> [[t0, ..] -> A[a]] }
  for (const Reference& reference : references) {
    const isl::union_map accesses = MapAt(reference, place).to_union_map();
    const isl::union_map times =
        isl::union_map::from(place.prefix).intersect_domain(accesses.domain());
    elements.push_back(times.range_product(accesses));
    if (!elements.back().is_injective()) return true;
    for (size_t i = 0; i + 1 < elements.size(); ++i) {
      if (!elements[i].unite(elements.back()).is_injective()) return true;
    }
  }
  return false;
}

// { R[i] -> A[a] }: the element has certainly been stored when the instance reads it, if the pairs { S[i] -> R[i] } are
// those of which the first one may have stored what the second one reads.
isl::union_map StoredBefore(const isl::union_map& pairs, const isl::union_map& must_writes) {
  return pairs.reverse().apply_range(must_writes);
}

// Without the elements that the array does not have, as far as its extents are constants or parameters.
isl::map Inside(const Scop& scop, ir::Buffer buffer, const isl::map& elements) {
  isl::map inside = elements;
  for (unsigned d = 0; d < buffer->extents.size(); ++d) {
    inside = isl::manage(isl_map_lower_bound_si(inside.release(), isl_dim_out, d, 0));
    const ir::Expr extent = buffer->extents[d];
    if (extent.Is(ir::ExprKind::kIntImm)) {
      const isl::val last(scop.isl->ctx(), extent.int_value() - 1);
      inside = isl::manage(isl_map_upper_bound_val(inside.release(), isl_dim_out, d, last.copy()));
    }
    for (const Parameter& p : scop.parameters) {
      if (p.value != Widen(extent, {})) continue;
      const int place = isl_map_find_dim_by_name(inside.get(), isl_dim_param, p.name.c_str());
      if (place < 0) continue;
      inside = inside.intersect(
          isl::manage(isl_map_order_gt(isl_map_universe(isl_map_get_space(inside.get())),
                                       isl_dim_param, place, isl_dim_out, static_cast<int>(d))));
    }
  }
  return inside;
}

// Dimensions `first`, .. of { [t..] -> .. } or of its range as parameters.
isl::map ToParameters(isl::map map, isl_dim_type type, unsigned first, unsigned n,
                      std::string (*name)(size_t)) {
  const auto before = static_cast<unsigned>(isl_map_dim(map.get(), isl_dim_param));
  map = isl::manage(isl_map_move_dims(map.release(), isl_dim_param, before, type, first, n));
  for (unsigned i = 0; i < n; ++i) {
    map = isl::manage(
        isl_map_set_dim_name(map.release(), isl_dim_param, before + i, name(i).c_str()));
  }
  return map;
}

// Joins groups where one box for both is no larger than two.
void Merge(std::vector<ReferenceGroup>& groups) {
  for (size_t a = 0; a < groups.size(); ++a) {
    for (size_t b = a + 1; b < groups.size();) {
      const isl::map both = groups[a].footprint.unite(groups[b].footprint).coalesce();
      const std::optional<Box> box = BoxOf(both);
      if (!box || box->elements() > groups[a].box.elements() + groups[b].box.elements()) {
        ++b;
        continue;
      }
      groups[a].footprint = both;
      groups[a].box = *box;
      for (const Reference& reference : groups[b].references) {
        groups[a].references.push_back(reference);
      }
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
      b = a + 1;
    }
  }
}

}  // namespace

int64_t Box::elements() const {
  int64_t result = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(result, size, &result) || result > kMaxElements) return kMaxElements;
  }
  return result;
}

std::optional<Box> BoxOf(const isl::map& footprint) {
  const isl::fixed_box hull = isl::manage(isl_map_get_range_simple_fixed_box_hull(footprint.get()));
  if (!hull.is_valid()) return std::nullopt;
  Box box;
  const isl::multi_aff first = hull.offset();
  const isl::multi_val sizes = hull.size();
  for (unsigned i = 0; i < sizes.size(); ++i) {
    const int d = static_cast<int>(i);
    box.first.push_back(ToPwAff(first.at(d).release()));
    const isl::val size = sizes.at(d);
    box.sizes.push_back(isl_val_cmp_si(size.get(), kMaxElements) > 0
                            ? kMaxElements
                            : isl_val_get_num_si(size.get()));
  }
  return box;
}

namespace {

// Affine functions that a set's dimension `d` is never below, and never above, as its constraints have them.
struct Bounds {
  unsigned d;
  std::vector<isl::aff> least = {}, greatest = {};
};

Bounds BoundsAlong(const isl::set& set, unsigned d) {
  Bounds bounds{.d = d};
  const isl::basic_set hull =
      isl::manage(isl_basic_set_remove_divs(isl_set_simple_hull(isl_set_coalesce(set.copy()))));
  const int place = static_cast<int>(d);
  const IslConstraintList list(isl_basic_set_get_constraint_list(hull.get()));
  for (int i = 0; i < isl_constraint_list_size(list.get()); ++i) {
    const IslConstraint c(isl_constraint_list_get_at(list.get(), i));
    const isl::val factor =
        isl::manage(isl_constraint_get_coefficient_val(c.get(), isl_dim_set, place));
    if (!factor.is_one() && !factor.is_negone()) continue;
    const isl::aff value = isl::manage(isl_constraint_get_bound(c.get(), isl_dim_set, place));
    const bool is_equation = isl_constraint_is_equality(c.get()) == isl_bool_true;
    if (is_equation || factor.is_one()) bounds.least.push_back(value);
    if (is_equation || factor.is_negone()) bounds.greatest.push_back(value);
  }
  return bounds;
}

}  // namespace

std::optional<Box> ParametricBoxOf(const isl::map& footprint) {
  const auto loops = static_cast<unsigned>(isl_map_dim(footprint.get(), isl_dim_in));
  const auto n = static_cast<unsigned>(isl_map_dim(footprint.get(), isl_dim_out));
  Box box;
  for (unsigned d = 0; d < n; ++d) {
    const isl::map one = isl::manage(isl_map_project_out(
        isl_map_project_out(footprint.copy(), isl_dim_out, d + 1, n - d - 1), isl_dim_out, 0, d));
    // { [t0, .., a] }
    const isl::set along = one.wrap().flatten();
    std::optional<isl::pw_aff> first, extent;
    bool moves = false;
    for (const isl::aff& least : BoundsAlong(along, loops).least) {
      const bool this_moves =
          isl_aff_involves_dims(least.get(), isl_dim_in, 0, loops) == isl_bool_true;
      // One that moves with the loops around is nearer than the array's first element.
      if (first && (moves || !this_moves)) continue;
      // { [t0, .., a] -> [a - least] }
      const isl::aff distance = isl::manage(isl_aff_sub(
          isl_aff_var_on_domain(isl_local_space_from_space(isl_set_get_space(along.get())),
                                isl_dim_set, loops),
          least.copy()));
      const isl::set distances =
          isl::manage(isl_map_from_aff(distance.copy())).intersect_domain(along).range();
      std::optional<isl::pw_aff> size;
      for (const isl::aff& greatest : BoundsAlong(distances, 0).greatest) {
        const isl::pw_aff limit = ToPwAff(isl_aff_add_dims(
            isl_aff_drop_dims(isl_aff_add_constant_si(greatest.copy(), 1), isl_dim_in, 0, 1),
            isl_dim_in, loops));
        size = size ? size->min(limit) : limit;
      }
      if (!size) continue;
      first = ToPwAff(isl_aff_drop_dims(least.copy(), isl_dim_in, loops, 1));
      extent = size;
      moves = this_moves;
    }
    if (!first) return std::nullopt;
    box.first.push_back(*first);
    box.extents.push_back(*extent);
  }
  return box;
}

std::vector<ReferenceGroup> ReadGroups(const Scop& scop, const Place& place) {
  std::vector<ReferenceGroup> result;
  for (const auto& [name, array] : AccessesAt(scop, place)) {
    if (array.is_stored || !array.is_affine) continue;
    std::vector<ReferenceGroup> groups;
    for (const Reference& reference : array.references) {
      ReferenceGroup group{.buffer = reference.get().buffer, .array = name};
      group.references = {reference};
      group.footprint = FootprintOf(MapAt(reference, place), place.prefix);
      std::optional<Box> box = BoxOf(group.footprint);
      if (!box) continue;
      group.box = *std::move(box);
      groups.push_back(std::move(group));
    }
    Merge(groups);
    for (ReferenceGroup& group : groups) {
      group.is_reused = IsReused(group.references, place);
      result.push_back(std::move(group));
    }
  }
  return result;
}

bool FindReadable(const Scop& scop, const Place& place, const Place& kernel,
                  const Dependences& dependences, ReferenceGroup& group) {
  // { [h..] -> A[a] } for the loops h around the kernel.
  std::optional<isl::map> certain, uncertain;
  const auto add = [&](const isl::union_map& accesses, std::optional<isl::map>& to) {
    if (accesses.is_empty()) return;
    const isl::map one = kernel.has_prefix
                             ? FootprintOf(accesses.as_map(), kernel.prefix)
                             : isl::manage(isl_map_from_range(accesses.range().as_set().release()));
    to = to ? to->unite(one) : one;
  };
  const isl::union_map stored = StoredBefore(dependences.flow, scop.MustWrites());
  for (const Reference& reference : group.references) {
    const isl::union_map accesses = MapAt(reference, kernel).to_union_map();
    if (reference.get().is_must) {
      add(accesses, certain);
    } else {
      add(accesses.intersect(stored), certain);
      add(accesses.subtract(stored), uncertain);
    }
  }
  if (!certain) return false;
  if (uncertain) uncertain = Inside(scop, group.buffer, *uncertain);
  if (uncertain && !uncertain->is_subset(*certain)) return false;
  isl::map elements = certain->coalesce();
  const isl::map hull =
      isl::manage(isl_map_from_basic_map(isl_map_unshifted_simple_hull(elements.copy())));
  if (hull.is_subset(elements)) elements = hull;
  if (isl_map_n_basic_map(elements.get()) > kMaxReadablePieces) return false;
  const auto n = static_cast<unsigned>(isl_map_dim(elements.get(), isl_dim_out));
  const isl::set readable = ToParameters(elements, isl_dim_out, 0, n, ElementParameter).domain();
  const unsigned around = kernel.has_prefix ? kernel.prefix.size() : 0;
  group.readable = isl::manage(
      isl_set_insert_dims(readable.copy(), isl_dim_set, around, place.prefix.size() - around));
  return true;
}

std::string ThreadParameter(size_t number) { return StrCat("thread.", number); }
std::string ElementParameter(size_t number) { return StrCat("element.", number); }

std::vector<OwnElement> OwnElements(const Scop& scop, const Place& place,
                                    const isl::multi_union_pw_aff& threads,
                                    const Dependences& dependences, const Given& given) {
  const isl::multi_union_pw_aff loops = place.prefix.flat_range_product(threads);
  const unsigned outer = place.prefix.size();
  const unsigned n = threads.size();
  // { [t.., p..] -> .. } with p as parameters
  const auto with_parameters = [&](const isl::map& map) {
    return ToParameters(map, isl_dim_in, outer, n, ThreadParameter);
  };
  // The iterations with such accesses.
  const auto iterations = [&](const isl::union_map& accesses) {
    return isl::union_map::from(loops).intersect_domain(accesses.domain()).range();
  };
  std::vector<OwnElement> result;
  for (const auto& [name, array] : AccessesAt(scop, place)) {
    if (!array.is_stored || !array.is_affine) continue;
    OwnElement own{.buffer = array.references[0].get().buffer, .array = name};
    std::optional<isl::map> all, stored;
    const isl::union_map none = isl::union_map::empty(scop.isl->ctx());
    isl::union_map reads[2] = {none, none}, writes[2] = {none, none};  // by is_must
    for (const Reference& reference : array.references) {
      const isl::map map = MapAt(reference, place);
      if (map.is_empty()) continue;
      const isl::map mine = FootprintOf(map, loops);
      all = all ? all->unite(mine) : mine;
      own.may_be_outside |= !reference.get().is_must;
      if (reference.get().is_write) {
        stored = stored ? stored->unite(mine) : mine;
      }
      isl::union_map& same = (reference.get().is_write ? writes : reads)[reference.get().is_must];
      same = same.unite(map.to_union_map());
    }
    if (!stored || !all->is_single_valued()) continue;
    const isl::map element = with_parameters(all->coalesce());
    const isl::pw_multi_aff function = isl::manage(isl_pw_multi_aff_from_map(element.copy()));
    if (static_cast<int>(function.n_piece()) > kMaxElementPieces) continue;
    for (unsigned i = 0; i < own.buffer->extents.size(); ++i) {
      own.element.push_back(function.at(static_cast<int>(i)));
    }
    const isl::union_map pairs = Active(dependences.flow, place);
    const auto needed = [&](bool is_must) {
      return iterations(reads[is_must].subtract(StoredBefore(pairs, writes[true])));
    };
    const isl::union_set certain = needed(true);
    const isl::union_set uncertain =
        needed(false).unite(iterations(writes[false]).subtract(iterations(writes[true])));
    if (!given.contains(own.buffer) && !uncertain.is_subset(certain)) continue;
    own.stored = with_parameters(stored->coalesce()).domain();
    const isl::map loaded = isl::manage(isl_map_intersect_domain(
        all->copy(), certain.unite(uncertain).extract_set(all->domain().space()).release()));
    own.loaded = with_parameters(loaded.coalesce()).domain();
    result.push_back(std::move(own));
  }
  return result;
}

}  // namespace polynao::poly
