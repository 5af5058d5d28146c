#include "compiler/poly/fuse/fuse.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/fuse/groups.h"
#include "compiler/poly/fuse/inner_parts.h"
#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/schedule_part.h"

namespace polynao::poly {

namespace {

// "c in tiles of 32 x 256 (first loop parallel), with a, b; 1.07 times the instances; 12.3 KiB in each tile"
std::string Line(const std::vector<Stage>& stages, const PlannedGroup& planned) {
  const Group& group = planned.group;
  return StrCat(
      NamesOf(stages[static_cast<size_t>(group.root)]), " in tiles of ", SizesText(group),
      group.parallel >= 0 ? StrCat(", those along dimension ", group.parallel, " parallel") : "",
      GroupText(stages, planned), "; ",
      Fixed(static_cast<double>(planned.cost.local_bytes) / 1024, 1), " KiB in each tile; ",
      Fixed(planned.cost.memory_bytes / 1048576, 1), " MiB to and from memory");
}

class CpuCode : public StageCode {
 public:
  explicit CpuCode(const ScheduleOptions& options) : options_(options) {}

  absl::StatusOr<ir::Stmt> Group(const Scop& part, const std::vector<Stage>& stages,
                                 const PlannedGroup& planned, PartReport* report) override {
    ASSIGN_OR_RETURN(const GroupTree tree, MakeGroupTree(part, stages, planned.group));
    ++report->bands;
    ++report->tiled_bands;
    if (planned.group.parallel >= 0) ++report->parallel_loops;
    report->lines.push_back(Line(stages, planned));
    return WithInnerParts(GenerateGroup(part, tree));
  }

  absl::StatusOr<ir::Stmt> Alone(const Scop& part, bool is_all, PartReport* report) override {
    ScheduleOptions options = options_;
    options.strategy = "auto";
    PartReport one;
    ASSIGN_OR_RETURN(const ir::Stmt code, SchedulePart(part, options, &one));
    report->bands += one.bands;
    report->tiled_bands += one.tiled_bands;
    report->parallel_loops += one.parallel_loops;
    report->vector_loops += one.vector_loops;
    report->has_register_tiles |= one.has_register_tiles;
    report->lines.insert(report->lines.end(), one.lines.begin(), one.lines.end());
    // Tiles of registers tell whole tiles apart by themselves.
    return is_all || one.has_register_tiles ? code : WithInnerParts(code);
  }

 private:
  const ScheduleOptions& options_;
};

// Collects what is used on the way up.
class UnusedBuffers : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    if (s.Is(ir::StmtKind::kStore)) used_.insert(s.buffer());
    const ir::Stmt result = Mutator::Mutate(s);
    if (!result.Is(ir::StmtKind::kAllocate) || used_.contains(result.buffer())) return result;
    const auto extents = result.buffer()->extents;
    const bool is_constant = std::all_of(extents.begin(), extents.end(),
                                         [](ir::Expr e) { return e.Is(ir::ExprKind::kIntImm); });
    return is_constant ? result.body() : result;
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

bool IsFusion(std::string_view strategy) { return strategy == "fuse" || strategy == "overlap"; }

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

std::string GroupText(const std::vector<Stage>& stages, const PlannedGroup& planned) {
  std::string with;
  for (const int p : planned.group.producers) {
    StrAppend(&with, with.empty() ? "" : ", ", NamesOf(stages[static_cast<size_t>(p)]));
  }
  return StrCat(with.empty() ? "" : ", with ", with, "; ", Fixed(planned.cost.redundancy, 2),
                " times the instances");
}

absl::StatusOr<ir::Stmt> FuseStages(const Scop& scop, const std::vector<Stage>& stages,
                                    const std::vector<PlannedGroup>& groups, StageCode& code,
                                    PartReport* report) {
  const bool fuses = std::any_of(groups.begin(), groups.end(), [](const PlannedGroup& planned) {
    return !planned.group.producers.empty();
  });
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

absl::StatusOr<ir::Stmt> FusePart(const Scop& scop, const ScheduleOptions& options,
                                  PartReport* report) {
  ScheduleOptions own = options;
  if (!options.parallel) own.machine.cores = 1;
  const Dependences dependences =
      ComputeDependences(scop, {.reassociate_floats = options.reassociate});
  const std::vector<Stage> stages = StagesOf(scop, dependences);
  const GroupModel model(scop, stages, own.machine);
  CpuCode code(own);
  return FuseStages(scop, stages, FindGroups(stages, model, own), code, report);
}

}  // namespace polynao::poly
