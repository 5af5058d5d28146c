#include "compiler/poly/fuse/grouping.h"

#include <isl/id.h>
#include <isl/map.h>
#include <isl/schedule.h>
#include <isl/set.h>
#include <isl/union_map.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/dependences.h"

namespace polynao::poly {

namespace {

// Attempts to join roots or to split an array: each plans all groups again.
constexpr int kMostAttempts = 8;

size_t At(int i) { return static_cast<size_t>(i); }

// A stage with a group of its own that stages of several other groups read.
struct Shared {
  int stage = 0;
  std::vector<size_t> groups;  // of its readers
};

std::vector<Shared> SharedIn(const Grouping& grouping) {
  std::vector<Shared> result;
  for (const PlannedGroup& planned : grouping.groups) {
    Shared shared{.stage = planned.group.root, .groups = {}};
    if (!grouping.stages[At(shared.stage)].is_local) continue;
    for (size_t g = 0; g < grouping.groups.size(); ++g) {
      const std::vector<int> members = MembersOf(grouping.groups[g].group);
      if (std::any_of(members.begin(), members.end(),
                      [&](int m) { return grouping.stages[At(m)].reads.contains(shared.stage); })) {
        shared.groups.push_back(g);
      }
    }
    if (shared.groups.size() > 1) result.push_back(std::move(shared));
  }
  return result;
}

// Whether one of the stages has to run before another one.
bool AreOrdered(const std::vector<Stage>& stages, const std::vector<int>& some) {
  for (const int late : some) {
    std::vector<int> open = {late};
    std::set<int> before;
    while (!open.empty()) {
      const int stage = open.back();
      open.pop_back();
      for (const int other : stages[At(stage)].after) {
        if (before.insert(other).second) open.push_back(other);
      }
    }
    if (std::any_of(some.begin(), some.end(), [&](int s) { return before.contains(s); }))
      return true;
  }
  return false;
}

// The buffers of the roots of these groups, if a tile can have elements of all of them. Nothing if not.
std::optional<std::vector<ir::Buffer>> JoinableRoots(const Grouping& grouping,
                                                     const Shared& shared) {
  std::vector<int> roots;
  std::vector<ir::Buffer> buffers;
  for (const size_t g : shared.groups) {
    const int root = grouping.groups[g].group.root;
    if (!grouping.model->CanBeRoot(root)) return std::nullopt;
    // Sums of many products have tiles of registers of their own.
    if (grouping.model->IsContraction(root)) return std::nullopt;
    roots.push_back(root);
    const std::vector<ir::Buffer>& stored = grouping.stages[At(root)].buffers;
    buffers.insert(buffers.end(), stored.begin(), stored.end());
    if (grouping.model->Extents(root) != grouping.model->Extents(roots[0])) return std::nullopt;
  }
  if (AreOrdered(grouping.stages, roots)) return std::nullopt;
  return buffers;
}

// { S[i] -> A[a] } of what some statements read of an array.
isl::union_map ReadsOf(const std::vector<const Statement*>& statements, ir::Buffer buffer) {
  std::optional<isl::union_map> reads;
  for (const Statement* s : statements) {
    for (const Access& access : s->accesses) {
      if (access.is_write || access.buffer != buffer) continue;
      const isl::union_map one = access.map.intersect_domain(s->domain).to_union_map();
      reads = reads ? reads->unite(one) : one;
    }
  }
  return *reads;
}

// The statements of each of these groups that read the array of the shared stage, if no two groups read one element.
std::optional<std::vector<std::vector<const Statement*>>> DisjointReaders(const Grouping& grouping,
                                                                          const Shared& shared) {
  const ir::Buffer buffer = grouping.stages[At(shared.stage)].buffers[0];
  std::vector<std::vector<const Statement*>> readers;
  std::optional<isl::union_set> all;
  for (const size_t g : shared.groups) {
    std::vector<const Statement*> mine;
    for (const int m : MembersOf(grouping.groups[g].group)) {
      for (const Statement* s : grouping.stages[At(m)].statements) {
        if (std::any_of(s->accesses.begin(), s->accesses.end(), [&](const Access& access) {
              return !access.is_write && access.buffer == buffer;
            })) {
          mine.push_back(s);
        }
      }
    }
    const isl::union_set elements = ReadsOf(mine, buffer).range();
    if (all && !all->intersect(elements).is_empty()) return std::nullopt;
    all = all ? all->unite(elements) : elements;
    readers.push_back(std::move(mine));
  }
  return readers;
}

// "A" of an access { S[i] -> A[a] } of the buffer.
std::string ArrayOf(const Statement& statement, ir::Buffer buffer) {
  for (const Access& access : statement.accesses) {
    if (access.buffer == buffer) return RangeName(access.map);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(statement.accesses.size()));
}

// Replaces a buffer and its tuple in a statement.
void Replace(Statement& statement, ir::Buffer from, ir::Buffer to, const std::string& array) {
  for (Access& access : statement.accesses) {
    if (access.buffer != from) continue;
    access.buffer = to;
    access.map =
        isl::manage(isl_map_set_tuple_name(access.map.release(), isl_dim_out, array.c_str()));
  }
  if (statement.reduction && statement.reduction->buffer == from) statement.reduction->buffer = to;
  statement.code = ir::Substitute(statement.code, {}, {{from, to}});
}

// The part with one copy of the stage's statements and its array for each set of readers: of the instances that store what these
// read, and those between them.
Scop WithCopies(const Scop& scop, const Stage& stage,
                const std::vector<std::vector<const Statement*>>& readers) {
  const ir::Buffer buffer = stage.buffers[0];
  ir::Context& c = scop.place.context();
  struct Copy {
    ir::Buffer buffer;
    isl::union_map reads;
  };
  std::vector<Copy> copies;
  for (size_t k = 0; k < readers.size(); ++k) {
    const std::vector<ir::Expr> extents(buffer->extents.begin(), buffer->extents.end());
    copies.push_back(
        {c.NewBuffer(StrCat(buffer->name, ".", k), buffer->type, extents, buffer->scope),
         ReadsOf(readers[k], buffer)});
  }
  Scop result = scop;
  result.statements.clear();
  std::optional<isl::union_map> origin;  // { S0.1[i] -> S0[i] }
  const auto add = [&](Statement statement, const isl::map& from) {
    const isl::union_map one = from.to_union_map();
    origin = origin ? origin->unite(one) : one;
    result.statements.push_back(std::move(statement));
  };
  for (const Statement& s : scop.statements) {
    const bool is_copied =
        std::find(stage.statements.begin(), stage.statements.end(), &s) != stage.statements.end();
    for (size_t k = 0; is_copied && k < copies.size(); ++k) {
      Statement copy = s;
      copy.name = StrCat(s.name, ".", k);
      isl::set needed = s.domain;
      for (const Access& access : s.accesses) {
        if (!access.is_write || access.buffer != buffer) continue;
        const isl::union_set storing =
            copies[k].reads.range().apply(access.map.reverse().to_union_map());
        // Simple loops, which may store a little more.
        const isl::set exact =
            storing.intersect(s.domain.to_union_set()).extract_set(s.domain.space());
        needed = isl::set(isl::manage(isl_set_simple_hull(exact.coalesce().release())))
                     .intersect(s.domain)
                     .coalesce();
        break;
      }
      if (needed.is_empty()) continue;
      const isl::map named = isl::manage(
          isl_map_set_tuple_name(needed.identity().release(), isl_dim_in, copy.name.c_str()));
      copy.domain = named.domain();
      for (Access& access : copy.accesses) access.map = named.apply_range(access.map);
      Replace(copy, buffer, copies[k].buffer, StrCat(ArrayOf(s, buffer), ".", k));
      add(std::move(copy), named);
    }
    if (is_copied) continue;
    Statement other = s;
    for (size_t k = 0; k < copies.size(); ++k) {
      if (std::find(readers[k].begin(), readers[k].end(), &s) != readers[k].end())
        Replace(other, buffer, copies[k].buffer, StrCat(ArrayOf(s, buffer), ".", k));
    }
    add(std::move(other), s.domain.identity());
  }
  result.schedule = isl::manage(isl_schedule_pullback_union_pw_multi_aff(
      scop.schedule.copy(), isl_union_pw_multi_aff_from_union_map(origin->copy())));
  std::erase(result.locals, buffer);
  std::erase(result.private_buffers, buffer);
  for (const Copy& copy : copies) {
    result.locals.push_back(copy.buffer);
    result.private_buffers.push_back(copy.buffer);
  }
  return result;
}

class Planner {
 public:
  Planner(const ScheduleOptions& options, const ModelMaker& model)
      : options_(options), model_(model) {}

  std::unique_ptr<Grouping> Run(const Scop& scop) {
    std::unique_ptr<Grouping> best = Plan(scop, {});
    JoinedBuffers joined;
    std::set<std::vector<std::string>> tried;
    const auto is_new = [&](const char* what, const std::vector<ir::Buffer>& buffers) {
      std::vector<std::string> key = {what};
      for (ir::Buffer buffer : buffers) key.push_back(buffer->name);
      return tried.insert(std::move(key)).second;
    };
    bool changes = true;
    while (changes) {
      changes = false;
      for (const Shared& shared : SharedIn(*best)) {
        std::unique_ptr<Grouping> other;
        bool is_better = false;
        if (const auto readers = DisjointReaders(*best, shared);
            readers && is_new("split", best->stages[At(shared.stage)].buffers)) {
          other = Plan(WithCopies(best->scop, best->stages[At(shared.stage)], *readers), joined);
          // With `join_all`, the next array to be split may be the one before.
          is_better = options_.join_all ? other->groups.size() <= best->groups.size()
                                        : CyclesOf(*other) < CyclesOf(*best);
        } else if (const auto roots = JoinableRoots(*best, shared);
                   roots && is_new("join", *roots)) {
          JoinedBuffers more = joined;
          std::erase_if(more, [&](const std::vector<ir::Buffer>& buffers) {
            return std::find(roots->begin(), roots->end(), buffers[0]) != roots->end();
          });
          more.push_back(*roots);
          other = Plan(best->scop, more);
          is_better = options_.join_all ? other->groups.size() < best->groups.size()
                                        : CyclesOf(*other) < CyclesOf(*best);
          if (is_better) joined = std::move(more);
        }
        if (is_better) best = std::move(other);
        changes |= is_better;
        if (changes || static_cast<int>(tried.size()) >= kMostAttempts) break;
      }
      changes = changes && static_cast<int>(tried.size()) < kMostAttempts;
    }
    return best;
  }

 private:
  std::unique_ptr<Grouping> Plan(const Scop& scop, const JoinedBuffers& joined) const {
    auto result = std::make_unique<Grouping>();
    result->scop = scop;
    result->stages = StagesOf(
        result->scop,
        ComputeDependences(result->scop, {.reassociate_floats = options_.reassociate}), joined);
    result->model = model_(result->scop, result->stages);
    result->groups = FindGroups(result->stages, *result->model, options_);
    return result;
  }

  static double CyclesOf(const Grouping& grouping) {
    double cycles = 0;
    for (const PlannedGroup& planned : grouping.groups) cycles += planned.cost.cycles;
    return cycles;
  }

  const ScheduleOptions& options_;
  const ModelMaker& model_;
};

}  // namespace

std::unique_ptr<Grouping> GroupStages(const Scop& scop, const ScheduleOptions& options,
                                      const ModelMaker& model) {
  return Planner(options, model).Run(scop);
}

}  // namespace polynao::poly
