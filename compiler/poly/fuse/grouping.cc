#include "compiler/poly/fuse/grouping.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/poly/fuse/part_variants.h"
#include "compiler/poly/model/dependences.h"

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

// The statements of each of these groups that read the array of the shared stage, if no two groups read one element.
std::optional<std::vector<std::vector<const Statement*>>> DisjointReaders(const Grouping& grouping,
                                                                          const Shared& shared) {
  const ir::Buffer buffer = grouping.stages[At(shared.stage)].buffers[0];
  if (!HasLastingSize(buffer)) return std::nullopt;
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

class Planner {
 public:
  Planner(const ScheduleOptions& options, const ModelMaker& model)
      : options_(options), model_(model) {}

  // Late updates where the model finds that cheaper, or tiles are asked for.
  std::unique_ptr<Grouping> Run(const Scop& scop) {
    const bool is_asked = options_.join_all || !options_.group_tile.empty();
    Scop base = scop;
    std::unique_ptr<Grouping> best = WithSharedArrays(base);
    for (const std::string& update : UpdatesIn(scop)) {
      std::optional<Scop> late = WithLateUpdate(base, update);
      if (!late) continue;
      std::unique_ptr<Grouping> other = WithSharedArrays(*late);
      if (!IsInTiles(*other, SecondForm(update))) continue;
      if (!is_asked && CyclesOf(*other) >= CyclesOf(*best)) continue;
      best = std::move(other);
      base = *std::move(late);
    }
    return best;
  }

 private:
  std::unique_ptr<Grouping> WithSharedArrays(const Scop& scop) const {
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

  // Whether tiles of other stages compute the statement's copies, all of them.
  static bool IsInTiles(const Grouping& grouping, const std::string& statement) {
    for (const PlannedGroup& planned : grouping.groups) {
      const Stage& root = grouping.stages[At(planned.group.root)];
      if (std::any_of(root.statements.begin(), root.statements.end(),
                      [&](const Statement* s) { return s->name.starts_with(statement); })) {
        return false;
      }
    }
    return true;
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
