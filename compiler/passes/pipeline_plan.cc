#include "compiler/passes/pipeline_plan.h"

#include "base/text.h"

namespace polynao::pipelining {

using ir::Buffer;

std::optional<PipelinePlan> MakePlan(const Body& body, const Windows& windows, int most_copies,
                                     std::string& reason) {
  PipelinePlan plan;
  // Whether all loads are for later iterations.
  bool loads_ahead = true;
  for (const Unit& unit : body.units) {
    plan.has[Index(unit.stage)] = true;
    if (unit.stage != Stage::kLoad) continue;
    for (Buffer buffer : unit.writes) {
      const auto window = windows.find(buffer);
      loads_ahead = loads_ahead && window != windows.end() && window->second > 0;
    }
  }
  for (Stage stage : {Stage::kLoad, Stage::kFetch, Stage::kCompute, Stage::kStore}) {
    if (!plan.has[Index(stage)]) continue;
    plan.offset[Index(stage)] = plan.last;
    if (stage != Stage::kLoad || !loads_ahead) ++plan.last;
  }
  --plan.last;
  if (plan.has[Index(Stage::kPrepare)]) plan.first = plan.offset[Index(Stage::kPrepare)] = -1;
  // A store frees the copy that the next load fills, unless there are three copies. Prepare writes the
  // copy that the computation before it has read. Computation is issued first: it needs the fewest
  // addresses, and runs while the scalar unit computes the addresses of the transfers. In a cluster the
  // memory core does that beside the cores, so its transfers come first.
  plan.order = {Stage::kCompute, Stage::kPrepare, Stage::kStore, Stage::kLoad};
  if (most_copies > kDefaultCopies) std::swap(plan.order[2], plan.order[3]);
  // The cores start the next copies first.
  if (body.of_cluster) {
    std::rotate(plan.order.begin(), plan.order.begin() + 2, plan.order.end());
    plan.order.insert(plan.order.begin() + 2, Stage::kFetch);
  }
  std::erase_if(plan.order, [&](Stage stage) { return !plan.has[Index(stage)]; });

  for (Buffer buffer : body.buffers) plan.copies[buffer] = 1;
  reason.clear();
  for (size_t j = 0; j < body.units.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const Unit& a = body.units[i];
      const Unit& b = body.units[j];
      if (a.stage == b.stage || AreAlternatives(a, b)) continue;
      if (a.inner_loop != 0 && a.inner_loop == b.inner_loop) {
        reason = StrCat(a.name, " and ", b.name, " of two stages stand in one loop inside");
      }
      const int64_t distance = plan.offset[Index(b.stage)] - plan.offset[Index(a.stage)];
      // Iteration i + copies of the earlier stage overwrites the copy that iteration i of the later
      // stage uses, so it runs in a later step, or in the same step behind it in the same queue.
      const bool in_turn = a.queue == b.queue && plan.Rank(b.stage) < plan.Rank(a.stage);
      const int64_t needed = in_turn ? distance : distance + 1;
      ForEachConflict(a, b, [&](Buffer buffer) {
        auto own = plan.copies.find(buffer);
        if (windows.contains(buffer) && distance >= 0) return;
        if (own == plan.copies.end()) {
          reason = a.stage == Stage::kLoad && b.stage == Stage::kStore
                       ? StrCat("'", buffer->name, "' is loaded and stored")
                       : StrCat("'", buffer->name, "' is not of the body, and both ", a.name,
                                " and ", b.name, " touch it");
        } else if (distance < 0) {
          reason =
              StrCat(b.name, " (", kStageNames[Index(b.stage)], ") stands behind ", a.name, " (",
                     kStageNames[Index(a.stage)], "), and both touch '", buffer->name, "'");
        } else if (needed > most_copies) {
          reason = StrCat("'", buffer->name, "' needs ", needed, " copies");
        } else {
          own->second = std::max(own->second, needed);
        }
      });
      if (!reason.empty()) return std::nullopt;
    }
  }
  for (const auto& [buffer, copies] : plan.copies) plan.period = std::max(plan.period, copies);
  for (auto& [buffer, copies] : plan.copies) {
    if (copies > 1) copies = plan.period;
  }
  return plan;
}

}  // namespace polynao::pipelining
