#include "compiler/poly/order/band_info.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/map.h>
#include <isl/schedule_node.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <optional>
#include <utility>

#include "compiler/ir/shapes.h"
#include "compiler/poly/isl/tree.h"

namespace polynao::poly {

namespace {

// Costs of an access (InnermostCost), for vectors of about four elements.
constexpr double kInvariantCost = 0.05;
constexpr double kUnitCost = 0.25;
constexpr double kReverseCost = 0.4;
constexpr double kOtherReadCost = 1.5;
constexpr double kOtherWriteCost = 3;

// Whether isl keeps the statements that use a private buffer in one loop over `member`. It gives
// statements loops of their own, one after the other, if no iteration of the later one comes before one of the
// earlier; an iteration would then be in two loops, and its copy of the buffer only in one.
bool StayTogether(const PrivateOrder& p, const Place& place, const isl::union_pw_aff& member) {
  const isl::multi_union_pw_aff times = Inside(place, member).prefix;
  const isl::union_map pairs = p.flow.unite(p.order);
  const isl::union_set users = pairs.domain().unite(pairs.range()).intersect(place.domain);
  std::vector<isl::set> images;  // { [t.., m] } of each statement
  for (const isl::set& user : SetsOf(users)) {
    const isl::set all = place.domain.extract_set(user.space());
    images.push_back(all.to_union_set().apply(isl::union_map::from(times)).as_set());
  }
  if (images.size() < 2) return true;
  // { [t.., m] -> [t.., m'] : m < m' }
  const unsigned n = times.size();
  isl_map* later = isl_map_universe(isl_space_map_from_set(images[0].space().release()));
  for (unsigned i = 0; i + 1 < n; ++i) later = isl_map_equate(later, isl_dim_in, i, isl_dim_out, i);
  const isl::map before = isl::manage(isl_map_order_lt(later, isl_dim_in, static_cast<int>(n - 1),
                                                       isl_dim_out, static_cast<int>(n - 1)));
  for (const isl::set& a : images) {
    const isl::map from = isl::manage(isl_map_intersect_domain(before.copy(), a.copy()));
    for (const isl::set& b : images) {
      if (isl::manage(isl_map_intersect_range(from.copy(), b.copy())).is_empty()) return false;
    }
  }
  return true;
}

}  // namespace

Place PlaceOf(const isl::schedule_node& node) {
  Place place;
  place.domain = isl::manage(isl_schedule_node_get_domain(node.get()));
  place.prefix = node.prefix_schedule_multi_union_pw_aff();
  place.has_prefix = place.prefix.size() > 0;
  return place;
}

Place Inside(const Place& place, const isl::union_pw_aff& member) {
  Place inside = place;
  const isl::multi_union_pw_aff one = ToMulti(member);
  inside.prefix = place.has_prefix ? place.prefix.flat_range_product(one) : one;
  inside.has_prefix = true;
  return inside;
}

isl::union_map Active(const isl::union_map& pairs, const Place& place) {
  const isl::union_map here = pairs.intersect_domain(place.domain).intersect_range(place.domain);
  return place.has_prefix && !here.is_empty() ? here.eq_at(place.prefix) : here;
}

std::optional<std::vector<ir::Buffer>> CopiesForParallel(const Dependences& dependences,
                                                         const Place& place,
                                                         const isl::union_pw_aff& member) {
  const auto stays = [&](const isl::union_map& pairs) {
    return pairs.is_empty() || pairs.is_subset(pairs.eq_at(ToMulti(member)));
  };
  if (!stays(Active(dependences.Validity(), place))) return std::nullopt;
  if (!stays(Active(dependences.reduction, place))) return std::nullopt;
  std::vector<ir::Buffer> copies;
  for (const PrivateOrder& p : dependences.private_order) {
    if (stays(Active(p.order, place))) continue;
    // A copy serves if every value is stored and read in one iteration.
    const isl::union_map mine =
        p.flow.intersect_domain(place.domain).unite(p.flow.intersect_range(place.domain));
    const isl::union_map inside = Active(p.flow, place);
    if (!mine.is_subset(inside) || !stays(inside) || !StayTogether(p, place, member)) {
      return std::nullopt;
    }
    copies.push_back(p.buffer);
  }
  return copies;
}

Stride StrideOf(const Statement& statement, const Access& access, const Place& place,
                const isl::multi_union_pw_aff& band, int member) {
  isl::multi_union_pw_aff all = place.has_prefix ? place.prefix.flat_range_product(band) : band;
  const unsigned before = place.has_prefix ? place.prefix.size() : 0;
  const unsigned n = all.size();
  const isl::union_map times =
      isl::union_map::from(all).intersect_domain(statement.domain.to_union_set());
  // { [t] -> [t'] : t' = t + 1 in the member, and equal elsewhere }
  isl_map* next = isl_map_universe(
      isl_space_map_from_set(isl_space_set_alloc(statement.domain.ctx().release(), 0, n)));
  for (unsigned i = 0; i < n; ++i) {
    isl_constraint* c =
        isl_constraint_alloc_equality(isl_local_space_from_space(isl_map_get_space(next)));
    c = isl_constraint_set_coefficient_si(c, isl_dim_out, i, -1);
    c = isl_constraint_set_coefficient_si(c, isl_dim_in, i, 1);
    if (i == before + static_cast<unsigned>(member)) c = isl_constraint_set_constant_si(c, 1);
    next = isl_map_add_constraint(next, c);
  }
  const isl::union_map step =
      times.apply_range(isl::manage(next).to_union_map()).apply_range(times.reverse());
  const isl::union_map moves =
      step.apply_domain(access.map.to_union_map()).apply_range(access.map.to_union_map());
  if (moves.is_empty()) return Stride::kNone;
  const std::vector<isl::set> deltas = SetsOf(moves.deltas());
  if (deltas.size() != 1) return Stride::kOther;
  const isl::set delta = deltas[0].detect_equalities();
  const int dimensions = Dimensions(delta);
  const bool has_extents = static_cast<size_t>(dimensions) == access.buffer->extents.size();
  const std::optional<size_t> row =
      has_extents ? ir::RowDimension(access.buffer) : std::optional<size_t>();
  for (int i = 0; i < dimensions; ++i) {
    const isl::val value = isl::manage(
        isl_set_plain_get_val_if_fixed(delta.get(), isl_dim_set, static_cast<unsigned>(i)));
    if (!value.is_int()) return Stride::kOther;
    if (value.is_zero()) continue;
    if (i != (row ? static_cast<int>(*row) : dimensions - 1)) return Stride::kOther;
    if (value.is_one()) return Stride::kOne;
    return value.is_negone() ? Stride::kMinusOne : Stride::kOther;
  }
  return Stride::kNone;
}

double InnermostCost(const Scop& scop, const Place& place, const isl::multi_union_pw_aff& band,
                     int member) {
  double cost = 0;
  for (const isl::set& domain : SetsOf(place.domain)) {
    const Statement* statement = scop.Find(TupleName(domain));
    if (statement == nullptr) continue;
    for (const Access& access : statement->accesses) {
      switch (StrideOf(*statement, access, place, band, member)) {
        case Stride::kNone:
          cost += kInvariantCost;
          break;
        case Stride::kOne:
          cost += kUnitCost;
          break;
        case Stride::kMinusOne:
          cost += kReverseCost;
          break;
        case Stride::kOther:
          cost += access.is_write ? kOtherWriteCost : kOtherReadCost;
          break;
      }
    }
  }
  return cost;
}

}  // namespace polynao::poly
