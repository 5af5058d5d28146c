#include "compiler/poly/gpu/gpu.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/arrange/split.h"
#include "compiler/poly/fuse/fuse.h"
#include "compiler/poly/fuse/inline.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/gpu/emit.h"
#include "compiler/poly/gpu/fuse.h"
#include "compiler/poly/gpu/map.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/expand.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/order/schedule.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/poly/parts.h"

namespace polynao::poly {

namespace {

constexpr int64_t kMaxBlockThreads = 1024;

absl::Status CheckOptions(const GpuOptions& options) {
  const NamedStrategy* strategy = FindStrategy(options.strategy);
  if (strategy == nullptr || !strategy->is_for_gpu) {
    return InvalidInput("expected a strategy of ", StrategyNames(&NamedStrategy::is_for_gpu),
                        ", found '", options.strategy, "'");
  }
  for (size_t n = 0; n < options.block.size(); ++n) {
    int64_t threads = 1;
    bool is_valid = options.block[n].size() == n + 1;
    for (const int64_t size : options.block[n]) {
      is_valid &= size > 0 && size <= kMaxBlockThreads;
      threads = is_valid ? threads * size : 0;
    }
    if (!is_valid || threads > kMaxBlockThreads) {
      return InvalidInput("expected sizes of a block of at most ", kMaxBlockThreads,
                          " threads along ", n + 1, n == 0 ? " axis" : " axes");
    }
  }
  if (options.group_threads < 0 || options.group_threads > kMaxBlockThreads) {
    return InvalidInput("expected blocks of at most ", kMaxBlockThreads, " threads, found ",
                        options.group_threads);
  }
  for (const int64_t size : options.group_tile) {
    if (size < 0) return InvalidInput("expected tile sizes from 0 on, found ", size);
  }
  if (options.serial_tile < 1 || options.serial_tiles < 1) {
    return InvalidInput("expected tiles of 1 iteration or more, found ",
                        std::min(options.serial_tile, options.serial_tiles));
  }
  return absl::OkStatus();
}

// Why a kernel cannot start at a part: something around it that the host does not compute. "" if it can.
class Surroundings {
 public:
  explicit Surroundings(const ir::Function& function) {
    for (const ir::Param& param : function.params) {
      if (param.var && ir::IsInt(param.var.type())) known_.insert(param.var);
    }
  }

  // The walk from the body of a function to the places of parts.
  void Walk(ir::Stmt s, const std::string& obstacle) {
    std::string here = obstacle;
    const auto blocks = [&](bool is_obstacle) {
      if (is_obstacle && here.empty()) here = StrCat("it stands in '", ir::PrintFirstLine(s), "'");
    };
    switch (s.kind()) {
      case ir::StmtKind::kFor:
        blocks(s.for_kind() == ir::ForKind::kThread || !IsOfHost(s.min()) || !IsOfHost(s.extent()));
        break;
      case ir::StmtKind::kIf:
        blocks(!IsOfHost(s.cond()));
        break;
      case ir::StmtKind::kLet:
        // Kernels evaluate what the host does not, if they see the same memory. Bounds need integers.
        blocks(ReadsMemory(s.value()));
        break;
      case ir::StmtKind::kAllocate:
        // Kernels have one memory for all iterations of the host's loops.
        for (ir::Expr extent : s.buffer()->extents) blocks(!IsFixed(extent));
        break;
      default:
        break;
    }
    obstacles_.emplace(s, here);
    for (ir::Stmt child : s.children()) Walk(child, here);
  }

  std::string Obstacle(const Scop& scop) const {
    const auto it = obstacles_.find(scop.place);
    if (it != obstacles_.end() && !it->second.empty()) return it->second;
    for (ir::Buffer local : scop.locals) {
      for (ir::Expr extent : local->extents) {
        if (!IsFixed(extent)) return StrCat("the size of '", local->name, "' varies");
      }
    }
    return "";
  }

 private:
  static bool ReadsMemory(ir::Expr e) {
    bool reads = false;
    ir::ForEachExpr(e, [&](ir::Expr x) { reads |= x.Is(ir::ExprKind::kLoad); });
    return reads;
  }
  // Scalars, loops and lets, without memory; integers that do not wrap.
  static bool IsOfHost(ir::Expr e) {
    bool is = true;
    ir::ForEachExpr(e, [&](ir::Expr x) {
      const bool is_leaf = x.Is(ir::ExprKind::kVar) || x.Is(ir::ExprKind::kIntImm);
      is &= ir::IsInt(x.type()) &&
            (is_leaf || ir::IsIndexable(x.type()) || x.type() == ir::Type::kI1) &&
            !x.Is(ir::ExprKind::kLoad) && !x.Is(ir::ExprKind::kCall) &&
            !x.Is(ir::ExprKind::kAddress) && !x.Is(ir::ExprKind::kLet);
    });
    return is;
  }
  bool IsFixed(ir::Expr e) const {
    bool is = IsOfHost(e);
    ir::ForEachExpr(e, [&](ir::Expr x) {
      if (x.Is(ir::ExprKind::kVar)) is &= known_.contains(x);
    });
    return is;
  }

  absl::flat_hash_set<ir::Var> known_;
  absl::flat_hash_map<ir::Stmt, std::string> obstacles_;
};

absl::StatusOr<ir::Stmt> MapPart(const Scop& scop, const GpuOptions& options, const Given& given,
                                 PartReport* report) {
  scop.isl->Allow(static_cast<unsigned long>(options.max_operations));
  const Dependences dependences =
      ComputeDependences(scop, {.reassociate_floats = options.reassociate});
  isl::schedule schedule;
  int splits = 0;
  if (options.strategy == "text") {
    ASSIGN_OR_RETURN(schedule, ParseSchedule(scop, dependences, options.text));
  } else {
    // No cost model of a GPU compares orders: auto is smart.
    const Strategy strategy = FindStrategy(options.strategy)->isl.value_or(Strategy::kSmart);
    schedule = ComputeSchedule(scop, dependences, strategy, /*outer_coincidence=*/true);
    if (strategy != Strategy::kOriginal)
      schedule = SplitIntoParallel(dependences, schedule, &splits);
  }
  const GpuMapping mapping = MapToGpu(scop, dependences, schedule, options, given);
  if (mapping.kernels == 0) return absl::UnimplementedError("no loop is parallel");
  if (!dependences.private_order.empty() &&
      !FindViolation(scop, dependences, mapping.schedule).empty()) {
    return absl::UnimplementedError(
        "tiles would mix the values of a buffer that the part has for itself");
  }
  bool keeps_registers = true;
  const ir::Stmt code = GenerateForGpu(scop, mapping, &keeps_registers);
  if (!keeps_registers) {
    GpuOptions without = options;
    without.registers = false;
    return MapPart(scop, without, given, report);
  }
  report->parallel_loops = mapping.kernels;
  report->wavefronts = mapping.wavefronts;
  report->lines = mapping.lines;
  if (splits > 0) {
    report->lines.insert(report->lines.begin(), std::string(kSplitLine));
  }
  return code;
}

// Stages outside of groups.
class MappedCode : public StageCode {
 public:
  MappedCode(const GpuOptions& options, const Given& given) : options_(options), given_(given) {}

  absl::StatusOr<ir::Stmt> Group(const Scop&, const std::vector<Stage>&, const PlannedGroup&,
                                 PartReport*) override {
    return absl::FailedPreconditionError("no groups");
  }
  absl::StatusOr<ir::Stmt> Alone(const Scop& part, bool, PartReport* report) override {
    GpuOptions options = options_;
    options.strategy = "auto";
    PartReport one;
    absl::StatusOr<ir::Stmt> code = MapPart(part, options, given_, &one);
    if (absl::IsUnimplemented(code.status())) {
      report->lines.emplace_back(code.status().message());
      return Generate(part, {.schedule = part.schedule, .marks = {}});
    }
    report->parallel_loops += one.parallel_loops;
    report->wavefronts += one.wavefronts;
    report->lines.insert(report->lines.end(), one.lines.begin(), one.lines.end());
    return code;
  }

 private:
  const GpuOptions& options_;
  const Given& given_;
};

}  // namespace

absl::StatusOr<ScheduleReport> ScheduleForGpu(ir::Function& function, const GpuOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  if (options.strategy == "none") return ScheduleReport();
  const bool fuses = IsFusion(options.strategy);
  const ir::Stmt original = function.body;
  std::vector<std::string> inlined;
  if (fuses && options.inline_stages) inlined = InlineStages(function, CpuMachine().assumed_extent);
  if (fuses) ExpandScalars(function);
  std::optional<Surroundings> surroundings;
  Given given;
  for (const ir::Param& param : function.params) {
    if (param.buffer && param.access != ir::Access::kOut) given.insert(param.buffer);
  }
  ASSIGN_OR_RETURN(
      ScheduleReport report,
      ScheduleParts(function, options.strategy, options.max_operations,
                    [&](const Extraction& extraction, const Scop& scop,
                        PartReport* part) -> absl::StatusOr<ir::Stmt> {
                      if (!surroundings) {
                        surroundings.emplace(function).Walk(extraction.skeleton, "");
                      }
                      const std::string obstacle = surroundings->Obstacle(scop);
                      if (!obstacle.empty()) return absl::UnimplementedError(obstacle);
                      if (!fuses) return MapPart(scop, options, given, part);
                      scop.isl->Allow(static_cast<unsigned long>(options.max_operations));
                      MappedCode alone(options, given);
                      return FuseForGpu(scop, options, alone, part);
                    }));
  if (!inlined.empty()) {
    report.remarks.push_back(
        StrCat("computed where they are read: ", absl::StrJoin(inlined, ", ")));
  }
  if (!report.changed) function.body = original;
  if (report.changed && fuses) function.body = WithoutUnusedBuffers(function.body);
  return report;
}

}  // namespace polynao::poly
