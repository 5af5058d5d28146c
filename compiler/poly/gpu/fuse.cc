#include "compiler/poly/gpu/fuse.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/fuse/grouping.h"
#include "compiler/poly/fuse/groups.h"
#include "compiler/poly/fuse/stage_loops.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/gpu/group.h"
#include "compiler/poly/gpu/group_cost.h"

namespace polynao::poly {

namespace {

// Halves the longest side of a tile. Whether one was longer than 1.
bool Halve(Group& group) {
  const auto longest = std::max_element(group.sizes.begin(), group.sizes.end());
  if (longest == group.sizes.end() || *longest <= 1) return false;
  *longest /= 2;
  return true;
}

// Whether neighbouring threads access elements in different rows. The mapping of single nests copies these to shared
// memory.
bool JumpsThroughMemory(const Stage& stage) {
  for (const Statement* s : stage.statements) {
    if (s->iterators.empty()) continue;
    const int vector = VectorIterator(stage, *s);
    const ir::Var along =
        vector >= 0 ? s->iterators[static_cast<size_t>(vector)] : s->iterators.back();
    for (const Access& access : s->accesses) {
      for (size_t d = 0; d + 1 < access.indices.size(); ++d) {
        if (ir::UsesVar(access.indices[d], along)) return true;
      }
    }
  }
  return false;
}

class KernelCode : public StageCode {
 public:
  KernelCode(const GpuGroupModel& model, const GpuOptions& options, StageCode& alone)
      : model_(model), options_(options), alone_(alone) {}

  bool TilesSingles() const override { return true; }

  absl::StatusOr<ir::Stmt> Group(const Scop& part, const std::vector<Stage>& stages,
                                 const PlannedGroup& planned, PartReport* report) override {
    const Stage& root = stages[static_cast<size_t>(planned.group.root)];
    if (planned.group.producers.empty() && JumpsThroughMemory(root)) {
      return absl::FailedPreconditionError(StrCat(
          NamesOf(root), ": no tile of its own, since its threads would walk along columns"));
    }
    PlannedGroup here = planned;
    while (true) {
      const int64_t threads = model_.ThreadsOf(here.group);
      const absl::StatusOr<GpuGroup> group =
          GenerateGpuGroup(part, stages, here.group,
                           {.threads = threads,
                            .shared_bytes = options_.shared_bytes,
                            .registers = options_.registers});
      if (group.ok()) {
        ++report->parallel_loops;
        report->lines.push_back(Line(stages, here, *group, threads));
        return group->code;
      }
      if (!absl::IsResourceExhausted(group.status())) return group.status();
      if (!Halve(here.group)) return absl::FailedPreconditionError(group.status().message());
      here.cost = model_.CostOf(here.group);
    }
  }

  absl::StatusOr<ir::Stmt> Alone(const Scop& part, bool is_all, PartReport* report) override {
    return alone_.Alone(part, is_all, report);
  }

 private:
  // "c in tiles of 8 x 64: blocks of 256 threads, with a, b; 1.07 times the instances; 2 phases, 12.3 KiB of shared
  // memory, .."
  static std::string Line(const std::vector<Stage>& stages, const PlannedGroup& planned,
                          const GpuGroup& group, int64_t threads) {
    std::string line =
        StrCat(NamesOf(stages[static_cast<size_t>(planned.group.root)]), " in tiles of ",
               SizesText(planned.group), ": blocks of ", threads, " threads",
               ProducersText(stages, planned.group), "; ", RedundancyText(planned.cost.redundancy),
               "; ", group.phases, group.phases == 1 ? " phase, " : " phases, ",
               Fixed(static_cast<double>(group.shared_bytes) / 1024, 1), " KiB of shared memory");
    if (group.registers > 0) StrAppend(&line, ", ", group.registers, " arrays in registers");
    StrAppend(&line, "; ", Fixed(planned.cost.memory_bytes / 1048576, 1),
              " MiB to and from global memory");
    return line;
  }

  const GpuGroupModel& model_;
  const GpuOptions& options_;
  StageCode& alone_;
};

}  // namespace

absl::StatusOr<ir::Stmt> FuseForGpu(const Scop& scop, const GpuOptions& options, StageCode& alone,
                                    PartReport* report) {
  ScheduleOptions groups;
  groups.reassociate = options.reassociate;
  groups.strategy = "fuse";
  groups.group_tile = options.group_tile;
  groups.join_all = options.join_all;
  groups.machine.cores = 1;  // blocks are no parallel loop of one dimension
  const std::unique_ptr<Grouping> grouping =
      GroupStages(scop, groups, [&](const Scop& part, const std::vector<Stage>& stages) {
        return std::make_unique<GpuGroupModel>(part, stages, groups.machine, options.machine,
                                               options.shared_bytes, options.group_threads);
      });
  const auto& model = static_cast<const GpuGroupModel&>(*grouping->model);
  KernelCode code(model, options, alone);
  return FuseStages(*grouping, code, report);
}

}  // namespace polynao::poly
