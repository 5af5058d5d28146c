#include "compiler/poly/order/canonical.h"

#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/union_map.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace polynao::poly {

namespace {

struct Part {
  isl::schedule schedule;
  std::vector<std::string> statements;
  size_t first;  // its first statement's place in the program
};

// Rebuilds a tree from its leaves.
class Canonicalizer {
 public:
  Canonicalizer(const Scop& scop, const Dependences& dependences)
      : order_(dependences.All()), places_(PlacesOf(scop)) {}

  isl::schedule Build(const isl::schedule_node& node) const {
    switch (isl_schedule_node_get_type(node.get())) {
      case isl_schedule_node_leaf:
        return isl::manage(isl_schedule_from_domain(isl_schedule_node_get_domain(node.get())));
      case isl_schedule_node_band:
        return WithBand(node, Build(node.child(0)));
      case isl_schedule_node_sequence:
      case isl_schedule_node_set:
        return Joined(node, Sorted(node, PartsOf(node, IsSequence(node))));
      default:  // the domain and filters: what the leaves below have
        return Build(node.child(0));
    }
  }

 private:
  static std::map<std::string, size_t> PlacesOf(const Scop& scop) {
    std::map<std::string, size_t> places;
    for (const Statement& s : scop.statements) places.emplace(s.name, places.size());
    return places;
  }

  static bool IsSequence(const isl::schedule_node& node) {
    return isl_schedule_node_get_type(node.get()) == isl_schedule_node_sequence;
  }
  static bool IsSet(const isl::schedule_node& node) {
    return isl_schedule_node_get_type(node.get()) == isl_schedule_node_set;
  }

  static isl::schedule WithBand(const isl::schedule_node& node, const isl::schedule& below) {
    const isl::multi_union_pw_aff members = node.as<isl::schedule_node_band>().partial_schedule();
    const isl::schedule with =
        isl::manage(isl_schedule_insert_partial_schedule(below.copy(), members.copy()));
    isl_schedule_node* band = isl_schedule_node_first_child(isl_schedule_get_root(with.get()));
    band = isl_schedule_node_band_set_permutable(band,
                                                 isl_schedule_node_band_get_permutable(node.get()));
    const int count = static_cast<int>(isl_schedule_node_band_n_member(node.get()));
    for (int i = 0; i < count; ++i) {
      band = isl_schedule_node_band_member_set_coincident(
          band, i, isl_schedule_node_band_member_get_coincident(node.get(), i));
    }
    const isl::schedule_node made = isl::manage(band);
    return made.schedule();
  }

  // The parts of `node` in isl's order, those of sets inside it and, for a sequence, those of sequences inside it.
  std::vector<Part> PartsOf(const isl::schedule_node& node, bool for_sequence) const {
    std::vector<Part> parts;
    for (unsigned i = 0; i < node.n_children(); ++i) {
      const isl::schedule_node filter = node.child(static_cast<int>(i));
      const isl::schedule_node child = filter.child(0);
      if (IsSet(child) || (IsSequence(child) && for_sequence)) {
        std::vector<Part> inner = PartsOf(child, for_sequence);
        std::move(inner.begin(), inner.end(), std::back_inserter(parts));
        continue;
      }
      Part part{.schedule = Build(child), .statements = {}, .first = places_.size()};
      for (const isl::set& set : SetsOf(part.schedule.domain())) {
        part.statements.push_back(TupleName(set));
        part.first = std::min(part.first, places_.at(TupleName(set)));
      }
      parts.push_back(std::move(part));
    }
    return parts;
  }

  // waits[b] has a: an instance in part a has to run before one in part b that all loops around run at the same time.
  std::vector<std::vector<bool>> WaitsOf(const isl::schedule_node& node,
                                         const std::vector<Part>& parts) const {
    std::vector<std::vector<bool>> waits(parts.size(), std::vector<bool>(parts.size(), false));
    std::map<std::string, size_t> part_of;
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const std::string& name : parts[i].statements) part_of[name] = i;
    }
    const isl::union_set domain = isl::manage(isl_schedule_node_get_domain(node.get()));
    isl::union_map order = order_.intersect_domain(domain).intersect_range(domain);
    if (isl_schedule_node_get_schedule_depth(node.get()) > 0) {
      order = isl::manage(isl_union_map_eq_at_multi_union_pw_aff(
          order.copy(), isl_schedule_node_get_prefix_schedule_multi_union_pw_aff(node.get())));
    }
    for (const isl::map& map : MapsOf(order)) {
      const size_t from = part_of.at(DomainName(map)), to = part_of.at(RangeName(map));
      if (from != to && !waits[to][from] && !map.is_empty()) waits[to][from] = true;
    }
    return waits;
  }

  std::vector<Part> Sorted(const isl::schedule_node& node, std::vector<Part> parts) const {
    std::vector<std::vector<bool>> waits(parts.size(), std::vector<bool>(parts.size(), false));
    if (IsSequence(node)) waits = WaitsOf(node, parts);
    std::vector<Part> sorted;
    std::vector<bool> done(parts.size(), false);
    while (sorted.size() < parts.size()) {
      std::optional<size_t> next;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (done[i] || (next && parts[*next].first < parts[i].first)) continue;
        bool is_ready = true;
        for (size_t other = 0; other < parts.size(); ++other) {
          is_ready = is_ready && (done[other] || !waits[i][other]);
        }
        if (is_ready) next = i;
      }
      // Lifetimes that isl has swapped: parts wait for each other by pairs that need not be kept.
      if (!next) return parts;
      done[*next] = true;
      sorted.push_back(parts[*next]);
    }
    return sorted;
  }

  static isl::schedule Joined(const isl::schedule_node& node, const std::vector<Part>& parts) {
    isl::schedule result = parts[0].schedule;
    for (size_t i = 1; i < parts.size(); ++i) {
      isl_schedule* next = parts[i].schedule.copy();
      result = isl::manage(IsSet(node) ? isl_schedule_set(result.copy(), next)
                                       : isl_schedule_sequence(result.copy(), next));
    }
    return result;
  }

  isl::union_map order_;
  std::map<std::string, size_t> places_;  // of statements in the program
};

}  // namespace

isl::schedule Canonical(const Scop& scop, const Dependences& dependences,
                        const isl::schedule& schedule) {
  const isl::schedule_node root = schedule.root();
  return Canonicalizer(scop, dependences).Build(root);
}

}  // namespace polynao::poly
