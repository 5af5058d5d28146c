#include "compiler/poly/fuse/stages.h"

#include <isl/schedule.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "absl/container/flat_hash_set.h"

namespace polynao::poly {

namespace {

// Which numbers reach which along edges, and themselves.
using Reach = std::vector<std::vector<bool>>;

void Close(Reach& reach) {
  const size_t n = reach.size();
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      if (!reach[i][k]) continue;
      for (size_t j = 0; j < n; ++j) reach[i][j] = reach[i][j] || reach[k][j];
    }
  }
}

// Sets of numbers that are joined one by one.
class Classes {
 public:
  explicit Classes(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t Find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The class has the number of its first member.
  void Join(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

bool Stores(const Statement& statement, ir::Buffer buffer) {
  return std::any_of(statement.accesses.begin(), statement.accesses.end(),
                     [&](const Access& a) { return a.is_write && a.buffer == buffer; });
}

using Places = std::map<std::string, size_t>;  // of statements, by their names

using Edges = std::vector<std::pair<size_t, size_t>>;

Edges EdgesOf(const Places& place, const isl::union_map& pairs) {
  Edges edges;
  for (const isl::map& map : MapsOf(pairs)) {
    if (!map.is_empty()) edges.emplace_back(place.at(DomainName(map)), place.at(RangeName(map)));
  }
  return edges;
}

// Whether each statement reads no element of the stage's own array but the one it stores. Others may have changed where
// it runs again.
bool UpdatesInPlace(const Stage& stage) {
  for (const Statement* s : stage.statements) {
    for (const Access& read : s->accesses) {
      if (read.is_write || read.buffer != stage.buffers[0]) continue;
      for (const Access& write : s->accesses) {
        if (write.is_write && !read.map.is_subset(write.map)) return false;
      }
    }
  }
  return true;
}

// `live_in`: the arrays of which something may be read that was there before the part.
bool IsLocal(const Scop& scop, const std::set<std::string>& live_in, const Stage& stage) {
  if (stage.buffers.size() != 1 || !scop.IsPrivate(stage.buffers[0])) return false;
  if (!UpdatesInPlace(stage)) return false;
  for (const Statement* s : stage.statements) {
    for (const Access& access : s->accesses) {
      if (access.buffer == stage.buffers[0] && live_in.contains(RangeName(access.map)))
        return false;
    }
  }
  return true;
}

// The statements of one stage have one class. `edges`: what must run before what.
Classes ClassesOf(const Scop& scop, const JoinedBuffers& joined, const Edges& edges) {
  const size_t n = scop.statements.size();
  Classes classes(n);
  for (size_t i = 0; i < n; ++i) {
    for (const Access& access : scop.statements[i].accesses) {
      for (size_t j = i + 1; access.is_write && j < n; ++j) {
        if (Stores(scop.statements[j], access.buffer)) classes.Join(i, j);
      }
    }
  }
  for (const std::vector<ir::Buffer>& buffers : joined) {
    std::optional<size_t> first;
    for (size_t i = 0; i < n; ++i) {
      const bool is_one = std::any_of(buffers.begin(), buffers.end(), [&](ir::Buffer buffer) {
        return Stores(scop.statements[i], buffer);
      });
      if (!is_one) continue;
      if (first) classes.Join(*first, i);
      if (!first) first = i;
    }
  }
  Reach reach(n, std::vector<bool>(n, false));
  for (const auto& [from, to] : edges) reach[classes.Find(from)][classes.Find(to)] = true;
  Close(reach);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (reach[i][j] && reach[j][i]) classes.Join(i, j);
    }
  }
  return classes;
}

}  // namespace

isl::union_set DomainOf(const std::vector<const Statement*>& statements) {
  std::optional<isl::union_set> domain;
  for (const Statement* s : statements) {
    const isl::union_set one = s->domain.to_union_set();
    domain = domain ? domain->unite(one) : one;
  }
  return *domain;
}

std::vector<Stage> StagesOf(const Scop& scop, const Dependences& dependences,
                            const JoinedBuffers& joined) {
  const size_t n = scop.statements.size();
  Places place;
  for (const Statement& s : scop.statements) place.emplace(s.name, place.size());
  const auto all = EdgesOf(place, dependences.All());
  Classes classes = ClassesOf(scop, joined, all);
  // Classes by number, each behind those it waits for.
  std::vector<std::set<size_t>> before(n), read(n), overwritten(n);
  for (const auto& [from, to] : all) {
    if (classes.Find(from) != classes.Find(to)) before[classes.Find(to)].insert(classes.Find(from));
  }
  for (const auto& [from, to] : EdgesOf(place, dependences.flow)) {
    if (classes.Find(from) != classes.Find(to)) read[classes.Find(to)].insert(classes.Find(from));
  }
  isl::union_map order = dependences.anti.unite(dependences.output);
  for (const PrivateOrder& one : dependences.private_order) order = order.unite(one.order);
  for (const auto& [from, to] : EdgesOf(place, order)) {
    if (classes.Find(from) != classes.Find(to))
      overwritten[classes.Find(to)].insert(classes.Find(from));
  }
  std::set<std::string> live_in;
  for (const isl::map& map : MapsOf(dependences.live_in)) {
    if (!map.is_empty()) live_in.insert(RangeName(map));
  }
  std::vector<isl::union_map> pairs(n, isl::union_map::empty(scop.isl->ctx()));  // of each class
  for (const isl::map& map : MapsOf(dependences.All().unite(dependences.reduction))) {
    const size_t from = classes.Find(place.at(DomainName(map)));
    if (from == classes.Find(place.at(RangeName(map))))
      pairs[from] = pairs[from].unite(map.to_union_map());
  }
  std::map<size_t, int> number;
  std::vector<Stage> stages;
  while (true) {
    std::optional<size_t> next;
    for (size_t i = 0; i < n && !next; ++i) {
      const bool is_ready = std::all_of(before[i].begin(), before[i].end(),
                                        [&](size_t b) { return number.contains(b); });
      if (classes.Find(i) == i && !number.contains(i) && is_ready) next = i;
    }
    if (!next) break;
    number.emplace(*next, static_cast<int>(stages.size()));
    Stage stage;
    stage.pairs = pairs[*next];
    for (size_t i = 0; i < n; ++i) {
      if (classes.Find(i) != *next) continue;
      stage.statements.push_back(&scop.statements[i]);
      for (const Access& access : scop.statements[i].accesses) {
        const bool is_new = std::find(stage.buffers.begin(), stage.buffers.end(), access.buffer) ==
                            stage.buffers.end();
        if (access.is_write && is_new) stage.buffers.push_back(access.buffer);
      }
    }
    for (const size_t b : before[*next]) stage.after.insert(number.at(b));
    for (const size_t b : read[*next]) stage.reads.insert(number.at(b));
    for (const size_t b : overwritten[*next]) stage.overwrites.insert(number.at(b));
    stage.is_local = IsLocal(scop, live_in, stage);
    stages.push_back(std::move(stage));
  }
  return stages;
}

Scop PartOf(const Scop& scop, const std::vector<const Stage*>& stages) {
  return PartOf(scop, [&](const Statement& s) {
    return std::any_of(stages.begin(), stages.end(), [&](const Stage* stage) {
      return std::find(stage->statements.begin(), stage->statements.end(), &s) !=
             stage->statements.end();
    });
  });
}

}  // namespace polynao::poly
