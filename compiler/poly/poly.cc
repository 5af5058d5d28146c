#include "compiler/poly/poly.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compiler/ir/replace.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/promote.h"
#include "compiler/poly/fuse/fuse.h"
#include "compiler/poly/fuse/inline.h"
#include "compiler/poly/model/expand.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/order/schedule.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/poly/pack/pack_part.h"
#include "compiler/poly/parts.h"

namespace polynao {
namespace poly {

namespace {

// Larger tiles than this are no tiles.
constexpr int64_t kMaxTileSize = int64_t{1} << 20;

absl::Status CheckOptions(const ScheduleOptions& options) {
  if (FindStrategy(options.strategy) == nullptr) {
    return InvalidInput("expected a strategy of ", StrategyNames(), ", found '", options.strategy,
                        "'");
  }
  for (const std::vector<int64_t>& level : options.tile) {
    for (const int64_t size : level) {
      if (size < 0 || size > kMaxTileSize) {
        return InvalidInput("expected tile sizes from 0 to ", kMaxTileSize, ", found ", size);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

// Panels of constants become parameters, in place of the constants that only their code reads: `function` is the run,
// and what is returned fills the panels. Nothing if there are none.
std::optional<ir::Function> TakeApart(ir::Function& function, const ScheduleReport& report,
                                      const std::vector<std::string>& constants) {
  std::vector<ir::Param> panels;
  std::vector<ir::Stmt> code;
  for (const PartReport& part : report.parts) {
    for (const PackedBefore& one : part.before) {
      for (const ir::Buffer buffer : one.panels) panels.emplace_back().buffer = buffer;
      code.push_back(one.code);
    }
  }
  if (panels.empty()) return std::nullopt;
  ir::Function before = function;
  before.name += "_before";
  before.body = function.context->Seq(code);
  before.params.clear();
  std::vector<ir::Param> params;
  bool has_panels = false;
  for (const ir::Param& param : function.params) {
    const bool is_constant =
        param.buffer && std::count(constants.begin(), constants.end(), param.buffer->name) > 0;
    if (is_constant && ir::UsesBuffer(before.body, param.buffer)) {
      before.params.push_back(param);
      if (!has_panels) params.insert(params.end(), panels.begin(), panels.end());
      has_panels = true;
      if (!ir::UsesBuffer(function.body, param.buffer)) continue;
    }
    params.push_back(param);
  }
  function.params = std::move(params);
  for (ir::Param& panel : panels) {
    panel.access = ir::Access::kOut;
    before.params.push_back(panel);
  }
  return before;
}

}  // namespace

absl::StatusOr<ScheduleReport> Schedule(ir::Function& function, const ScheduleOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  if (options.strategy == "none") return ScheduleReport();
  const ir::Function original = function;
  std::vector<std::string> inlined;
  if (IsFusion(options.strategy) && options.inline_stages)
    inlined = InlineStages(function, options.machine.assumed_extent);
  if (FindStrategy(options.strategy)->expands_scalars) ExpandScalars(function);
  ASSIGN_OR_RETURN(
      ScheduleReport report,
      ScheduleParts(function, options.strategy, options.max_operations,
                    [&](const Extraction&, const Scop& scop, PartReport* part) {
                      scop.isl->Allow(static_cast<unsigned long>(options.max_operations));
                      return IsFusion(options.strategy) ? FusePart(scop, options, part)
                                                        : SchedulePacked(scop, options, part);
                    }));
  if (!inlined.empty()) {
    report.remarks.push_back(
        StrCat("computed where they are read: ", absl::StrJoin(inlined, ", ")));
  }
  for (const PartReport& part : report.parts) report.count_ms += part.count_ms;
  if (options.count && IsFusion(options.strategy)) ReportStagesAlone(original, options, &report);
  if (!report.changed) {
    function.body = original.body;
    return report;
  }
  // What stages, or packed sums, no longer need.
  if (IsFusion(options.strategy) || options.strategy == "auto")
    function.body = WithoutUnusedBuffers(function.body);
  for (const PartReport& part : report.parts) {
    if (!part.has_register_tiles) continue;
    RETURN_IF_ERROR(Promote(function).status());
    break;
  }
  // Whole tiles stand apart already. What is left in the bounds of skewed tiles has so many thresholds that
  // loop_partition would take a minute for a stencil of twenty lines, and gain nothing. In loops without tiles the
  // guards are those of the program.
  const bool has_tiles = IsFusion(options.strategy) ||
                         std::any_of(report.parts.begin(), report.parts.end(),
                                     [](const PartReport& part) { return part.tiled_bands > 0; });
  if (has_tiles && function.FindAttribute(kPartitionedAttribute) == nullptr) {
    function.attributes.push_back({.key = std::string(kPartitionedAttribute), .values = {}});
  }
  report.before = TakeApart(function, report, options.constants);
  return report;
}

}  // namespace poly

namespace {

// The pass's options: numbers, as the command line has them.
struct PassOptions {
  int strategy = 2;  // smart, in the order of Searches()
  int tile = 32;
  bool parallel = true;
  bool vectorize = true;
  bool reassociate = false;
  int operations = 10'000;
  int windows = 0;  // in the order of kWindows
};

constexpr const char* kWindows[] = {"model", "none", "all"};

// The strategies that the pass has.
std::vector<std::string_view> Searches() {
  std::vector<std::string_view> names;
  for (const poly::NamedStrategy& strategy : poly::Strategies()) {
    if (strategy.is_search) names.push_back(strategy.name);
  }
  return names;
}

}  // namespace

PassInfo SchedulePass() {
  return WithOptions<PassOptions>(
      {.name = "schedule",
       .doc = "gives affine loop nests a new order: fusion, tiles, parallel and vector loops",
       .second_run_changes = "tiles are loops that can be tiled again"},
      {ChoiceOption("strategy", &PassOptions::strategy, Searches(),
                    "which loops share statements; auto also chooses tiles, by a cost model"),
       IntOption("tile", &PassOptions::tile, 0, 1024,
                 "iterations of a tile along each loop; 0: none"),
       BoolOption("parallel", &PassOptions::parallel,
                  "makes the outermost loop that can be parallel"),
       BoolOption("vectorize", &PassOptions::vectorize, "makes innermost loops vectors"),
       IntOption("operations", &PassOptions::operations, 0, 1'000'000,
                 "what isl may do for one part, in thousands of its steps; 0: no limit"),
       BoolOption("reassociate", &PassOptions::reassociate,
                  "sums of floats may change their order"),
       ChoiceOption("windows", &PassOptions::windows, {std::begin(kWindows), std::end(kWindows)},
                    "which tiles of fuse run row by row and keep windows that slide")},
      FixedDefaults,
      [](ir::Function& function, const PassEnvironment& environment,
         PassOptions options) -> absl::StatusOr<bool> {
        poly::ScheduleOptions schedule;
        schedule.strategy = Searches()[static_cast<size_t>(options.strategy)];
        schedule.tile.clear();
        if (options.tile > 0) schedule.tile = {{options.tile}};
        schedule.parallel = options.parallel;
        schedule.vectorize = options.vectorize;
        schedule.max_operations = int64_t{1000} * options.operations;
        schedule.reassociate = options.reassociate;
        schedule.windows = static_cast<poly::Windows>(options.windows);
        schedule.count = environment.stats != nullptr;
        ASSIGN_OR_RETURN(const poly::ScheduleReport report, poly::Schedule(function, schedule));
        const std::string text = report.ToString();
        if (environment.stats != nullptr && !text.empty()) environment.stats->push_back(text);
        return report.changed;
      });
}

}  // namespace polynao
