#include "compiler/poly/fuse/fuse.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/stopwatch.h"
#include "compiler/poly/fuse/group_count.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/grouping.h"
#include "compiler/poly/fuse/groups.h"
#include "compiler/poly/fuse/inner_parts.h"
#include "compiler/poly/fuse/shared_rows.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/pack/pack_part.h"

namespace polynao::poly {

namespace {

// isl's steps for the count of one group.
constexpr unsigned long kCountOperations = 3'000'000;
constexpr double kMiB = 1024 * 1024;

// "1.07 times the instances (1.09 by the model)"
std::string InstancesText(const GroupReport& group) {
  const std::string model = RedundancyText(group.redundancy);
  if (!group.not_counted.empty()) return StrCat(model, " by the model (", group.not_counted, ")");
  if (!group.instances) return model;
  const std::string counted = RedundancyText(group.instances->Redundancy());
  return counted == model ? model
                          : StrCat(counted, " (", Fixed(group.redundancy, 2), " by the model)");
}

class CpuCode : public StageCode {
 public:
  // All outlive this.
  CpuCode(const Scop& scop, const std::vector<Stage>& stages, const GroupModel& model,
          const ScheduleOptions& options)
      : scop_(scop), stages_(stages), model_(model), options_(options) {}

  absl::StatusOr<ir::Stmt> Group(const Scop& part, const std::vector<Stage>& stages,
                                 const PlannedGroup& planned, PartReport* report) override {
    absl::StatusOr<GroupTree> tree = MakeGroupTree(part, stages, planned.group);
    if (absl::IsFailedPrecondition(tree.status()) && planned.group.slides >= 0) {
      PlannedGroup still = planned;
      still.group.slides = -1;
      return Group(part, stages, still, report);
    }
    RETURN_IF_ERROR(tree.status());
    ++report->bands;
    ++report->tiled_bands;
    if (planned.group.parallel >= 0) ++report->parallel_loops;
    report->groups.push_back({.name = NamesOf(stages[static_cast<size_t>(planned.group.root)]),
                              .stages = static_cast<int>(planned.group.producers.size()) + 1,
                              .is_tiled = true,
                              .redundancy = planned.cost.redundancy,
                              .memory_bytes = planned.cost.memory_bytes,
                              .local_bytes = planned.cost.local_bytes,
                              .tree = TreeText(tree->marked.schedule)});
    const ir::Stmt code = WithSharedRows(WithInnerParts(GenerateGroup(part, *tree)));
    made_.push_back({part, *std::move(tree), planned.group, report->lines.size()});
    report->lines.emplace_back();  // Finish has the text
    return code;
  }

  absl::StatusOr<ir::Stmt> Alone(const Scop& part, bool is_all, PartReport* report) override {
    ScheduleOptions options = options_;
    options.strategy = "auto";
    PartReport one;
    ASSIGN_OR_RETURN(const ir::Stmt code, SchedulePacked(part, options, &one));
    report->AddLoops(one);
    GroupReport group{.tree = std::move(one.tree)};
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (part.Find(stages_[i].statements[0]->name) == nullptr) continue;
      group.name = NamesOf(stages_[i]);
      ++group.stages;
      group.memory_bytes += model_.BytesAlone(static_cast<int>(i));
    }
    report->groups.push_back(std::move(group));
    made_.push_back({part, std::nullopt, {}, 0});
    // Tiles of registers tell whole tiles apart by themselves.
    return is_all || one.has_register_tiles ? code : WithInnerParts(code);
  }

  // Completes the reports, with counts if they are asked for. To be called when no code is made any more: uses up isl's
  // operations.
  void Finish(PartReport* report) const {
    Stopwatch watch;
    for (size_t i = 0; i < made_.size(); ++i) {
      const Made& made = made_[i];
      GroupReport& group = report->groups[i];
      if (options_.count) {
        const absl::StatusOr<InstanceCount> instances =
            Count(made.part, made.tree ? &*made.tree : nullptr);
        if (instances.ok()) {
          group.instances = *instances;
        } else {
          group.not_counted = StrCat("not counted: ", std::string(instances.status().message()));
        }
      }
      if (made.tree) report->lines[made.line] = Line(made.group, group);
    }
    if (options_.count) {
      const absl::StatusOr<InstanceCount> all = Count(scop_, nullptr);
      if (all.ok()) report->exist = all->exist;
    }
    report->count_ms = watch.Lap();
  }

 private:
  struct Made {
    Scop part;
    std::optional<GroupTree> tree;
    poly::Group group;
    size_t line = 0;  // the report's
  };

  // "c in tiles of 32 x 256, those along dimension 0 parallel, with a, b; 1.07 times the instances; 12.3 KiB in each
  // tile; .."
  std::string Line(const poly::Group& group, const GroupReport& report) const {
    return StrCat(
        report.name, " in tiles of ", SizesText(group),
        group.parallel >= 0 ? StrCat(", those along dimension ", group.parallel, " parallel") : "",
        group.slides >= 0 ? StrCat(", row by row along dimension ", group.slides) : "",
        ProducersText(stages_, group), "; ", InstancesText(report), "; ",
        Fixed(static_cast<double>(report.local_bytes) / 1024, 1), " KiB in each tile; ",
        Fixed(report.memory_bytes / kMiB, 1), " MiB to and from memory");
  }

  absl::StatusOr<InstanceCount> Count(const Scop& part, const GroupTree* tree) const {
    return CountInstances(part, tree, options_.machine.assumed_extent, kCountOperations);
  }

  const Scop& scop_;  // as the program has it
  const std::vector<Stage>& stages_;
  const GroupModel& model_;
  const ScheduleOptions& options_;
  std::vector<Made> made_;  // in the order of the report's groups
};

// Collects what is used on the way up.
class UnusedBuffers : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    if (s.Is(ir::StmtKind::kStore)) used_.insert(s.buffer());
    const ir::Stmt result = Mutator::Mutate(s);
    const bool is_unused = result.Is(ir::StmtKind::kAllocate) && !used_.contains(result.buffer());
    return is_unused ? result.body() : result;
  }
  ir::Expr Mutate(ir::Expr e) override {
    if (e.Is(ir::ExprKind::kLoad) || e.Is(ir::ExprKind::kAddress))
      used_.insert(ir::Buffer(e.buffer()));
    return Mutator::Mutate(e);
  }

 private:
  absl::flat_hash_set<ir::Buffer> used_;
};

}  // namespace

ir::Stmt WithoutUnusedBuffers(ir::Stmt s) { return UnusedBuffers().Mutate(s); }

std::string NamesOf(const Stage& stage) {
  std::string text;
  for (ir::Buffer buffer : stage.buffers) StrAppend(&text, text.empty() ? "" : "+", buffer->name);
  return text;
}

std::string Fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string SizesText(const Group& group) {
  std::string text;
  for (const int64_t size : group.sizes) {
    StrAppend(&text, text.empty() ? "" : " x ", size == 0 ? "all" : StrCat(size));
  }
  return text;
}

std::string ProducersText(const std::vector<Stage>& stages, const Group& group) {
  std::string with;
  for (const int p : group.producers) {
    StrAppend(&with, with.empty() ? ", with " : ", ", NamesOf(stages[static_cast<size_t>(p)]));
  }
  return with;
}

std::string RedundancyText(double redundancy) {
  return StrCat(Fixed(redundancy, 2), " times the instances");
}

std::string TitleOf(const GroupReport& group) {
  return StrCat(group.name, ", ", group.stages, group.stages == 1 ? " stage" : " stages",
                group.is_tiled ? " in tiles" : ", scheduled as by auto");
}

absl::StatusOr<ir::Stmt> FuseStages(const Grouping& grouping, StageCode& code, PartReport* report) {
  const Scop& scop = grouping.scop;
  const std::vector<Stage>& stages = grouping.stages;
  const std::vector<PlannedGroup>& groups = grouping.groups;
  const bool fuses = std::any_of(groups.begin(), groups.end(), [](const PlannedGroup& planned) {
    return !planned.group.producers.empty();
  });
  for (const PlannedGroup& planned : groups) {
    report->lines.insert(report->lines.end(), planned.refusals.begin(), planned.refusals.end());
  }
  if (!fuses) return code.Alone(scop, /*is_all=*/true, report);
  std::vector<ir::Stmt> parts;
  absl::flat_hash_set<ir::Buffer> made_locals;
  for (const PlannedGroup& planned : groups) {
    std::vector<const Stage*> members;
    for (const int p : planned.group.producers) members.push_back(&stages[static_cast<size_t>(p)]);
    const Stage& root = stages[static_cast<size_t>(planned.group.root)];
    members.push_back(&root);
    const Scop part = PartOf(scop, members);
    for (ir::Buffer buffer : part.locals) made_locals.insert(buffer);
    const bool has_tiles = std::any_of(planned.group.sizes.begin(), planned.group.sizes.end(),
                                       [](int64_t s) { return s > 0; });
    if (!planned.group.producers.empty() || (has_tiles && code.TilesSingles())) {
      absl::StatusOr<ir::Stmt> one = code.Group(part, stages, planned, report);
      if (one.ok()) {
        parts.push_back(*one);
        continue;
      }
      if (!absl::IsFailedPrecondition(one.status())) return one;
      report->lines.emplace_back(one.status().message());
    }
    const size_t first = report->lines.size();
    ASSIGN_OR_RETURN(const ir::Stmt one, code.Alone(part, /*is_all=*/false, report));
    for (size_t i = first; i < report->lines.size(); ++i)
      report->lines[i] = StrCat(NamesOf(root), ": ", report->lines[i]);
    parts.push_back(one);
  }
  ir::Context& c = scop.place.context();
  ir::Stmt body = c.Seq(parts);
  // Arrays that one group stores and another reads.
  for (size_t i = scop.locals.size(); i-- > 0;) {
    if (!made_locals.contains(scop.locals[i])) body = c.Allocate(scop.locals[i], body);
  }
  return ir::CloneWithFreshBindings(WithTest(scop, body));
}

// A loop whose iterations, and what they read, the data decide: the rows of a sparse matrix. The model of groups does
// not know what one instance of such a statement costs.
bool HasLoopsOfTheData(const Scop& scop) {
  return std::any_of(scop.statements.begin(), scop.statements.end(), [](const Statement& s) {
    return s.is_opaque &&
           ir::AnyStmt(s.code, [](ir::Stmt part) { return part.Is(ir::StmtKind::kFor); });
  });
}

absl::StatusOr<ir::Stmt> FusePart(const Scop& scop, const ScheduleOptions& options,
                                  PartReport* report) {
  ScheduleOptions own = options;
  if (!options.parallel) own.machine.cores = 1;
  const std::unique_ptr<Grouping> grouping =
      GroupStages(scop, own, [&](const Scop& part, const std::vector<Stage>& stages) {
        return std::make_unique<GroupModel>(part, stages, own.machine);
      });
  if (HasLoopsOfTheData(scop)) grouping->groups.clear();
  CpuCode code(scop, grouping->stages, *grouping->model, own);
  ASSIGN_OR_RETURN(const ir::Stmt body, FuseStages(*grouping, code, report));
  code.Finish(report);
  return body;
}

void ReportStagesAlone(const ir::Function& function, const ScheduleOptions& options,
                       ScheduleReport* report) {
  Stopwatch watch;
  const absl::StatusOr<Extraction> extraction =
      Extract(function, {.max_operations = static_cast<unsigned long>(options.max_operations)});
  if (!extraction.ok()) return;
  for (const Scop& scop : extraction->scops) {
    // A part of which that is not known has no figures.
    (void)Guarded(*scop.isl, [&]() -> absl::Status {
      scop.isl->Allow(static_cast<unsigned long>(options.max_operations));
      const std::vector<Stage> stages = StagesOf(scop, ComputeDependences(scop));
      const GroupModel model(scop, stages, options.machine);
      for (size_t i = 0; i < stages.size(); ++i)
        report->bytes_before += model.BytesAlone(static_cast<int>(i));
      report->stages_before += static_cast<int>(stages.size());
      return absl::OkStatus();
    });
  }
  report->count_ms += watch.Lap();
}

}  // namespace polynao::poly
