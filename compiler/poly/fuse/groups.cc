#include "compiler/poly/fuse/groups.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/text.h"

namespace polynao::poly {

namespace {

// PolyMage's limit: the part of a tile that its neighbours compute as well.
constexpr double kOverlap = 1.4;

size_t At(int i) { return static_cast<size_t>(i); }

bool IsIn(const Group& group, int stage) {
  return group.root == stage ||
         std::find(group.producers.begin(), group.producers.end(), stage) != group.producers.end();
}

// Whether a side was longer than 1.
bool HalveLongest(std::vector<int64_t>& sizes) {
  const auto longest = std::max_element(sizes.begin(), sizes.end());
  if (longest == sizes.end() || *longest <= 1) return false;
  *longest /= 2;
  return true;
}

// PolyMage's usual sizes.
std::vector<int64_t> OverlapSizes(size_t dimensions) {
  std::vector<int64_t> sizes(dimensions, 32);
  if (!sizes.empty()) sizes.back() = 256;
  return sizes;
}

class Grouper {
 public:
  Grouper(const std::vector<Stage>& stages, const GroupModel& model, const ScheduleOptions& options)
      : stages_(stages),
        model_(model),
        options_(options),
        overlap_(options.strategy == "overlap"),
        reach_(stages.size()) {
    for (size_t i = 0; i < stages.size(); ++i) {
      reach_[i].assign(stages.size(), false);
      for (const int before : stages[i].after) {
        reach_[i][At(before)] = true;
        for (size_t j = 0; j < i; ++j) reach_[i][j] = reach_[i][j] || reach_[At(before)][j];
      }
    }
  }

  std::vector<PlannedGroup> Run() {
    std::vector<bool> done(stages_.size(), false);
    std::vector<PlannedGroup> groups;
    for (int root = static_cast<int>(stages_.size()) - 1; root >= 0; --root) {
      if (done[At(root)]) continue;
      PlannedGroup planned{.group = {.root = root, .producers = {}, .sizes = {}}, .cost = {}};
      if (model_.CanBeRoot(root) && IsWanted(root)) {
        planned.cost = Cost(planned.group);
        for (int p = root - 1; p >= 0; --p) {
          if (!done[At(p)] && MayJoin(planned.group, p)) Join(planned, p);
        }
      }
      done[At(root)] = true;
      for (const int p : planned.group.producers) done[At(p)] = true;
      groups.push_back(std::move(planned));
    }
    return Ordered(std::move(groups));
  }

 private:
  GroupCost Cost(Group& group) const {
    const size_t n = model_.Extents(group.root).size();
    if (!options_.group_tile.empty()) {
      // An array of fewer dimensions gets the last sizes.
      const std::vector<int64_t>& tile = options_.group_tile;
      const size_t from = tile.size() > n ? tile.size() - n : 0;
      std::vector<int64_t> sizes(tile.begin() + static_cast<std::ptrdiff_t>(from), tile.end());
      GroupCost cost = model_.CostWith(group, sizes);
      // Where a tile has a memory of its own: too large for it.
      while (std::isinf(cost.cycles) && HalveLongest(sizes)) cost = model_.CostWith(group, sizes);
      return model_.Slide(group, cost, options_.windows);
    }
    return overlap_ ? model_.CostWith(group, OverlapSizes(n))
                    : model_.Best(group, options_.windows);
  }

  // In tiles of the model's choice, or of the options'.
  bool IsWanted(int stage) const {
    if (options_.join_all) return true;
    return !model_.IsContraction(stage);
  }

  // All readers are in the group, and nothing that must run before its root overwrites what `stage` reads.
  bool MayJoin(const Group& group, int stage) const {
    const Stage& s = stages_[At(stage)];
    if (!s.is_local || !IsWanted(stage)) return false;
    bool is_read = false;
    for (int other = stage + 1; other < static_cast<int>(stages_.size()); ++other) {
      const Stage& o = stages_[At(other)];
      const bool is_early = IsIn(group, other) || reach_[At(group.root)][At(other)];
      if (o.overwrites.contains(stage) && is_early) return false;
      if (o.reads.contains(stage)) {
        if (!IsIn(group, other)) return false;
        is_read = true;
      }
    }
    return is_read;
  }

  // Whether a group with the stage is better than one without it, and the stage alone.
  bool Pays(const GroupCost& without, const GroupCost& with, int stage) const {
    if (options_.join_all) return true;
    if (overlap_) return with.redundancy <= kOverlap;
    if (!model_.CanBeRoot(stage)) return true;
    Group alone{.root = stage, .producers = {}, .sizes = {}};
    return with.cycles <= without.cycles + Cost(alone).cycles;
  }

  void Join(PlannedGroup& planned, int stage) const {
    Group with = planned.group;
    with.producers.insert(with.producers.begin(), stage);
    const GroupCost cost = Cost(with);
    const bool has_tiles =
        std::any_of(with.sizes.begin(), with.sizes.end(), [](int64_t s) { return s > 0; });
    if (!has_tiles || !Pays(planned.cost, cost, stage)) {
      if (!options_.group_tile.empty()) {
        planned.refusals.push_back(StrCat(
            stages_[At(stage)].buffers[0]->name, " is not computed in tiles of ",
            stages_[At(planned.group.root)].buffers[0]->name, ": ",
            !has_tiles                ? "that is no larger than a tile"
            : std::isinf(cost.cycles) ? "there is not the memory, or the grid, for such tiles"
            : overlap_                ? "tiles would overlap too much"
                                      : "alone it is cheaper by the model"));
      }
      return;
    }
    planned.group = std::move(with);
    planned.cost = cost;
  }

  // Sorted by what waits for what. Groups that wait for each other in a circle lose their producers.
  std::vector<PlannedGroup> Ordered(std::vector<PlannedGroup> groups) const {
    std::vector<PlannedGroup> order;
    while (!groups.empty()) {
      const auto waits = [&](const PlannedGroup& a, const PlannedGroup& b) {
        for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
          if (!IsIn(a.group, s)) continue;
          for (const int before : stages_[At(s)].after) {
            if (IsIn(b.group, before)) return true;
          }
        }
        return false;
      };
      std::optional<size_t> next;
      for (size_t i = groups.size(); i-- > 0;) {
        const bool is_ready =
            std::none_of(groups.begin(), groups.end(), [&](const PlannedGroup& other) {
              return &other != &groups[i] && waits(groups[i], other);
            });
        if (is_ready) {
          next = i;
          break;
        }
      }
      if (!next) {
        std::vector<PlannedGroup> alone;
        for (const PlannedGroup& planned : groups) {
          for (const int s : MembersOf(planned.group))
            alone.push_back({.group = {.root = s, .producers = {}, .sizes = {}}, .cost = {}});
        }
        std::sort(alone.begin(), alone.end(), [](const PlannedGroup& a, const PlannedGroup& b) {
          return a.group.root > b.group.root;
        });
        groups = std::move(alone);
        continue;
      }
      order.push_back(std::move(groups[*next]));
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(*next));
    }
    return order;
  }

  const std::vector<Stage>& stages_;
  const GroupModel& model_;
  const ScheduleOptions& options_;
  const bool overlap_;
  std::vector<std::vector<bool>> reach_;  // which stages must run before which
};

}  // namespace

std::vector<int> MembersOf(const Group& group) {
  std::vector<int> members = group.producers;
  members.push_back(group.root);
  return members;
}

std::vector<PlannedGroup> FindGroups(const std::vector<Stage>& stages, const GroupModel& model,
                                     const ScheduleOptions& options) {
  return Grouper(stages, model, options).Run();
}

}  // namespace polynao::poly
