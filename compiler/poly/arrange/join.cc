#include "compiler/poly/arrange/join.h"

#include <isl/schedule.h>
#include <isl/schedule_node.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/poly/isl/tree.h"

namespace polynao::poly {

namespace {

// With more nests the work for each two of them would show in the time to compile.
constexpr size_t kMostNests = 24;

struct Nest {
  isl::union_set domain;
  std::optional<isl::union_pw_aff> loop;  // the outermost one
  absl::flat_hash_set<ir::Buffer> buffers;
};

// { S[i] -> [f(i)] } of the first loop.
std::optional<isl::union_pw_aff> OutermostLoop(const isl::schedule_node& node) {
  if (!IsBand(node)) return std::nullopt;
  return node.as<isl::schedule_node_band>().partial_schedule().at(0);
}

class Joiner {
 public:
  Joiner(const Scop& scop, const Dependences& dependences, const isl::schedule& schedule)
      : schedule_(schedule) {
    FindNests(scop);
    const size_t n = nests_.size();
    if (n < 2 || n > kMostNests) {
      nests_.clear();
      return;
    }
    must_wait_.assign(n, std::vector<bool>(n, false));
    may_share_.assign(n, std::vector<bool>(n, true));
    for (const isl::map& map : MapsOf(dependences.All().unite(dependences.reduction).coalesce())) {
      const size_t from = nest_of_.at(DomainName(map)), to = nest_of_.at(RangeName(map));
      if (from == to || map.is_empty()) continue;
      must_wait_[from][to] = true;
      if (!may_share_[from][to] || GoesForwards(map, nests_[from], nests_[to])) continue;
      may_share_[from][to] = false;
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n && must_wait_[i][k]; ++j) {
          must_wait_[i][j] = must_wait_[i][j] || must_wait_[k][j];
        }
      }
    }
  }

  isl::schedule Run(int* joined) {
    *joined = 0;
    std::vector<std::vector<size_t>> groups = Groups();
    if (!Sort(groups)) return schedule_;
    int count = 0;
    for (const auto& group : groups) {
      if (group.size() > 1) count += static_cast<int>(group.size());
    }
    if (count == 0) return schedule_;
    *joined = count;
    std::optional<isl::schedule> result;
    for (const auto& group : groups) {
      const isl::schedule one = Together(group);
      result = result ? isl::manage(isl_schedule_sequence(result->copy(), one.copy())) : one;
    }
    return *result;
  }

 private:
  void FindNests(const Scop& scop) {
    const isl::schedule_node top = schedule_.root().child(0);
    const auto kind = isl_schedule_node_get_type(top.get());
    if (kind != isl_schedule_node_sequence && kind != isl_schedule_node_set) return;
    for (unsigned i = 0; i < top.n_children(); ++i) {
      const isl::schedule_node child = top.child(static_cast<int>(i));
      Nest nest{.domain = child.as<isl::schedule_node_filter>().filter(),
                .loop = OutermostLoop(child.child(0)),
                .buffers = {}};
      for (const Statement& s : scop.statements) {
        if (nest.domain.intersect(s.domain.to_union_set()).is_empty()) continue;
        nest_of_[s.name] = nests_.size();
        for (const Access& access : s.accesses) nest.buffers.insert(access.buffer);
      }
      nests_.push_back(std::move(nest));
    }
    // A statement without instances is in no nest, and no dependence has it.
  }

  // Whether no instance has to run before one in an earlier iteration.
  static bool GoesForwards(const isl::map& map, const Nest& from, const Nest& to) {
    if (!from.loop || !to.loop) return false;
    const auto at = [](const isl::union_pw_aff& loop) {
      return isl::union_map::from(ToMulti(loop));
    };
    const isl::union_map moves =
        map.to_union_map().apply_domain(at(*from.loop)).apply_range(at(*to.loop));
    if (moves.is_empty()) return true;
    const isl::set deltas = moves.as_map().deltas();
    return deltas.is_subset(isl::set(deltas.ctx(), "{ [x] : x >= 0 }"));
  }

  bool MayJoin(size_t nest, const std::vector<size_t>& group) const {
    if (!nests_[nest].loop || !nests_[group[0]].loop) return false;
    const auto is_in = [&](size_t other) {
      return std::find(group.begin(), group.end(), other) != group.end();
    };
    bool shares = false;
    for (const size_t member : group) {
      if (!may_share_[nest][member] || !may_share_[member][nest]) return false;
      for (const ir::Buffer& buffer : nests_[member].buffers) {
        shares = shares || nests_[nest].buffers.contains(buffer);
      }
    }
    if (!shares) return false;
    for (size_t other = 0; other < nests_.size(); ++other) {
      if (is_in(other) || !must_wait_[nest][other]) continue;
      for (const size_t member : group) {
        if (must_wait_[other][member]) return false;
      }
    }
    return true;
  }

  std::vector<std::vector<size_t>> Groups() const {
    std::vector<std::vector<size_t>> groups;
    std::vector<bool> done(nests_.size(), false);
    for (size_t root = nests_.size(); root-- > 0;) {
      if (done[root]) continue;
      std::vector<size_t> group = {root};
      for (size_t nest = root; nest-- > 0;) {
        if (done[nest] || !MayJoin(nest, group)) continue;
        group.push_back(nest);
        done[nest] = true;
      }
      groups.push_back(std::move(group));
    }
    std::reverse(groups.begin(), groups.end());
    return groups;
  }

  // Into an order that keeps the dependences; false if there is none.
  bool Sort(std::vector<std::vector<size_t>>& groups) const {
    std::vector<std::vector<size_t>> sorted;
    while (!groups.empty()) {
      const auto waits_for = [&](const std::vector<size_t>& a, const std::vector<size_t>& b) {
        return std::any_of(a.begin(), a.end(), [&](size_t x) {
          return std::any_of(b.begin(), b.end(), [&](size_t y) { return must_wait_[y][x]; });
        });
      };
      const auto next = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        return std::none_of(groups.begin(), groups.end(), [&](const auto& other) {
          return &other != &group && waits_for(group, other);
        });
      });
      if (next == groups.end()) return false;
      sorted.push_back(*next);
      groups.erase(next);
    }
    groups = std::move(sorted);
    return true;
  }

  isl::schedule Together(const std::vector<size_t>& group) const {
    std::optional<isl::union_set> domain;
    std::optional<isl::union_pw_aff> loop;
    for (const size_t i : group) {
      const Nest& nest = nests_[i];
      domain = domain ? domain->unite(nest.domain) : nest.domain;
      if (group.size() == 1) continue;
      loop = loop ? isl::manage(isl_union_pw_aff_union_add(loop->copy(), nest.loop->copy()))
                  : *nest.loop;
    }
    const isl::schedule part =
        isl::manage(isl_schedule_intersect_domain(schedule_.copy(), domain->copy()));
    if (!loop) return part;
    // The nests' own first loops have one iteration inside of it.
    return isl::manage(isl_schedule_insert_partial_schedule(part.copy(), ToMulti(*loop).release()));
  }

  const isl::schedule& schedule_;
  std::vector<Nest> nests_;
  std::map<std::string, size_t> nest_of_;
  std::vector<std::vector<bool>> must_wait_;  // [first][second], by way of others too
  std::vector<std::vector<bool>> may_share_;
};

}  // namespace

isl::schedule JoinNests(const Scop& scop, const Dependences& dependences,
                        const isl::schedule& schedule, int* joined) {
  return Joiner(scop, dependences, schedule).Run(joined);
}

}  // namespace polynao::poly
