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

// "c in tiles of 32 x 256 (first loop parallel), with a, b; 1.07 times the instances; 12.3 KiB in each tile"
std::string Line(const std::vector<Stage>& stages, const PlannedGroup& planned) {
  const Group& group = planned.group;
  std::string sizes, with;
  for (const int64_t size : group.sizes) {
    StrAppend(&sizes, sizes.empty() ? "" : " x ", size == 0 ? "all" : StrCat(size));
  }
  for (const int p : group.producers) {
    StrAppend(&with, with.empty() ? "" : ", ", NamesOf(stages[static_cast<size_t>(p)]));
  }
  return StrCat(
      NamesOf(stages[static_cast<size_t>(group.root)]), " in tiles of ", sizes,
      group.parallel >= 0 ? StrCat(", those along dimension ", group.parallel, " parallel") : "",
      ", with ", with, "; ", Fixed(planned.cost.redundancy, 2), " times the instances; ",
      Fixed(static_cast<double>(planned.cost.local_bytes) / 1024, 1), " KiB in each tile; ",
      Fixed(planned.cost.memory_bytes / 1048576, 1), " MiB to and from memory");
}

class PartFuser {
 public:
  PartFuser(const Scop& scop, const ScheduleOptions& options, PartReport* report)
      : scop_(scop), options_(options), report_(*report) {
    if (!options.parallel) options_.machine.cores = 1;
  }

  absl::StatusOr<ir::Stmt> Run() {
    const Dependences dependences =
        ComputeDependences(scop_, {.reassociate_floats = options_.reassociate});
    stages_ = StagesOf(scop_, dependences);
    const GroupModel model(scop_, stages_, options_.machine);
    const std::vector<PlannedGroup> groups = FindGroups(stages_, model, options_);
    const bool fuses = std::any_of(groups.begin(), groups.end(), [](const PlannedGroup& planned) {
      return !planned.group.producers.empty();
    });
    if (!fuses) return Alone(scop_);
    std::vector<ir::Stmt> code;
    for (const PlannedGroup& planned : groups) {
      ASSIGN_OR_RETURN(const ir::Stmt one, Code(planned));
      code.push_back(one);
    }
    ir::Context& c = scop_.place.context();
    ir::Stmt body = c.Seq(code);
    // Arrays that one group stores and another reads.
    for (size_t i = scop_.locals.size(); i-- > 0;) {
      if (!made_locals_.contains(scop_.locals[i])) body = c.Allocate(scop_.locals[i], body);
    }
    return ir::CloneWithFreshBindings(WithTest(scop_, body));
  }

 private:
  absl::StatusOr<ir::Stmt> Code(const PlannedGroup& planned) {
    std::vector<const Stage*> members;
    for (const int p : planned.group.producers) members.push_back(&stages_[static_cast<size_t>(p)]);
    members.push_back(&stages_[static_cast<size_t>(planned.group.root)]);
    const Scop part = PartOf(scop_, members);
    for (ir::Buffer buffer : part.locals) made_locals_.insert(buffer);
    if (!planned.group.producers.empty()) {
      absl::StatusOr<GroupTree> tree = MakeGroupTree(part, stages_, planned.group);
      if (tree.ok()) {
        ++report_.bands;
        ++report_.tiled_bands;
        if (planned.group.parallel >= 0) ++report_.parallel_loops;
        report_.lines.push_back(Line(stages_, planned));
        return WithInnerParts(GenerateGroup(part, *tree));
      }
      report_.lines.push_back(std::string(tree.status().message()));
    }
    const size_t first = report_.lines.size();
    ASSIGN_OR_RETURN(const ir::Stmt code, Alone(part));
    const std::string name = NamesOf(stages_[static_cast<size_t>(planned.group.root)]);
    for (size_t i = first; i < report_.lines.size(); ++i)
      report_.lines[i] = StrCat(name, ": ", report_.lines[i]);
    return code;
  }

  // Stages that share no tiles.
  absl::StatusOr<ir::Stmt> Alone(const Scop& part) {
    ScheduleOptions options = options_;
    options.strategy = "auto";
    PartReport one;
    ASSIGN_OR_RETURN(const ir::Stmt code, SchedulePart(part, options, &one));
    report_.bands += one.bands;
    report_.tiled_bands += one.tiled_bands;
    report_.parallel_loops += one.parallel_loops;
    report_.vector_loops += one.vector_loops;
    report_.has_register_tiles |= one.has_register_tiles;
    report_.lines.insert(report_.lines.end(), one.lines.begin(), one.lines.end());
    return code;
  }

  const Scop& scop_;
  ScheduleOptions options_;
  PartReport& report_;
  std::vector<Stage> stages_;
  absl::flat_hash_set<ir::Buffer> made_locals_;
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

absl::StatusOr<ir::Stmt> FusePart(const Scop& scop, const ScheduleOptions& options,
                                  PartReport* report) {
  return PartFuser(scop, options, report).Run();
}

}  // namespace polynao::poly
