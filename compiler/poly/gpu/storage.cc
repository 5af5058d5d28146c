#include "compiler/poly/gpu/storage.h"

#include <isl/aff.h>
#include <isl/map.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"

namespace polynao::poly {

namespace {

// Elements of a producer that a thread keeps.
constexpr int64_t kMaxOwn = 16;

size_t At(int i) { return static_cast<size_t>(i); }

class StoragePlanner {
 public:
  StoragePlanner(const std::vector<Stage>& stages, const Group& group, const GroupTree& tree,
                 const KernelLoops& loops, int64_t threads)
      : stages_(stages), group_(group), tree_(tree), loops_(loops), threads_(threads) {}

  StoragePlan Plan(bool registers) {
    storage_.resize(tree_.locals.size());
    for (size_t i = 0; registers && i < storage_.size(); ++i) FindOwn(i);
    // Phases in the order in which the stages run: a new one where a stage reads what was stored in this one.
    std::map<int, int> phase_of;
    int phase = 0;
    std::vector<int> order = group_.producers;
    order.push_back(group_.root);
    for (const int s : order) {
      for (const int before : stages_[At(s)].reads) {
        const auto it = phase_of.find(before);
        if (it != phase_of.end() && it->second == phase && !IsOwn(before)) ++phase;
      }
      phase_of[s] = phase;
    }
    std::vector<LivingArray> arrays;
    std::vector<size_t> locals;
    for (size_t i = 0; i < tree_.locals.size(); ++i) {
      if (storage_[i].is_own) continue;
      const int stage = StageOf(i);
      int last = phase_of.at(stage);
      for (const int s : order) {
        if (stages_[At(s)].reads.contains(stage)) last = std::max(last, phase_of.at(s));
      }
      arrays.push_back({.type = tree_.locals[i].buffer->type,
                        .elements = tree_.locals[i].box.elements(),
                        .first = phase_of.at(stage),
                        .last = last});
      locals.push_back(i);
    }
    Slots slots = AssignSlots(arrays);
    for (size_t i = 0; i < locals.size(); ++i) storage_[locals[i]].slot = slots.slot_of[i];
    return {.arrays = std::move(storage_), .slots = std::move(slots), .phases = phase + 1};
  }

 private:
  int StageOf(size_t local) const {
    for (const int p : group_.producers) {
      if (stages_[At(p)].buffers[0] == tree_.locals[local].buffer) return p;
    }
    POLYNAO_UNREACHABLE(static_cast<int>(local));
  }

  bool IsOwn(int stage) const {
    for (size_t i = 0; i < storage_.size(); ++i) {
      if (storage_[i].is_own && StageOf(i) == stage) return true;
    }
    return false;
  }

  // Whether all components that access the array number their instances in the same way, and each element belongs to
  // one number.
  void FindOwn(size_t i) {
    const TileLocal& local = tree_.locals[i];
    Storage own;
    own.is_own = true;
    const ThreadLoops* numbering = nullptr;
    std::optional<isl::union_map> number_of;  // { [[t..] -> A[a]] -> [m..] }
    for (const auto& [name, component] : loops_.components()) {
      std::optional<isl::union_map> elements;
      for (const Statement* s : component.stage->statements) {
        for (const Access& access : s->accesses) {
          if (access.buffer != local.buffer) continue;
          const isl::union_map one =
              access.map.intersect_domain(s->domain).to_union_map().intersect_domain(
                  component.instances.range());
          elements = elements ? elements->unite(one) : one;
        }
      }
      if (!elements || elements->is_empty()) continue;
      if (component.box.sizes.empty()) return;
      if (numbering == nullptr) numbering = &component;
      if (component.box.sizes != numbering->box.sizes) return;
      for (size_t d = 0; d < component.box.first.size(); ++d) {
        if (isl_pw_aff_is_equal(component.box.first[d].get(), numbering->box.first[d].get()) !=
            isl_bool_true)
          return;
      }
      const isl::union_map by_tile = component.instances.reverse().range_product(*elements);
      const isl::union_map one = by_tile.reverse().apply_range(component.members);
      number_of = number_of ? number_of->unite(one) : one;
    }
    if (!number_of || !number_of->is_single_valued()) return;
    if (numbering->elements() > kMaxOwn * threads_) return;
    int64_t count = (numbering->elements() + threads_ - 1) / threads_;
    // { [[t..] -> [m..]] -> A[a] }: along each dimension one element, or all that the tile has.
    const isl::map by_number = isl::manage(isl_map_uncurry(
        isl_map_range_reverse(isl_map_curry(number_of->as_map().coalesce().release()))));
    const std::optional<Box> box = BoxOf(by_number);
    if (!box) return;
    for (size_t d = 0; d < box->sizes.size(); ++d) {
      if (box->sizes[d] == 1) continue;
      own.kept.push_back(d);
      own.sizes.push_back(local.box.sizes[d]);
      if (__builtin_mul_overflow(count, local.box.sizes[d], &count) || count > kMaxOwn) return;
    }
    own.rounds = (numbering->elements() + threads_ - 1) / threads_;
    storage_[i] = std::move(own);
  }

  const std::vector<Stage>& stages_;
  const Group& group_;
  const GroupTree& tree_;
  const KernelLoops& loops_;
  const int64_t threads_;
  std::vector<Storage> storage_;
};

}  // namespace

std::vector<int> PhasesOf(const std::vector<Stage>& stages, const Group& group, bool at_end) {
  std::vector<int> order = group.producers;
  order.push_back(group.root);
  std::vector<int> phases(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (stages[At(order[i])].after.contains(order[j]))
        phases[i] = std::max(phases[i], phases[j] + 1);
    }
  }
  if (!at_end) return phases;
  for (size_t i = order.size(); i-- > 0;) {
    int last = phases.back();
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (stages[At(order[j])].after.contains(order[i])) last = std::min(last, phases[j] - 1);
    }
    phases[i] = last;
  }
  return phases;
}

StoragePlan PlanStorage(const std::vector<Stage>& stages, const Group& group, const GroupTree& tree,
                        const KernelLoops& loops, int64_t threads, bool registers) {
  return StoragePlanner(stages, group, tree, loops, threads).Plan(registers);
}

}  // namespace polynao::poly
