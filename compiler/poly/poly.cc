#include "compiler/poly/poly.h"

#include <ctime>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/promote.h"
#include "compiler/poly/auto.h"
#include "compiler/poly/dependences.h"
#include "compiler/poly/expand.h"
#include "compiler/poly/extract.h"
#include "compiler/poly/generate.h"
#include "compiler/poly/parts.h"
#include "compiler/poly/schedule.h"
#include "compiler/poly/split.h"
#include "compiler/poly/tile.h"
#include "compiler/poly/tree_text.h"

namespace polynao {
namespace poly {

namespace {

// Larger tiles than this are no tiles.
constexpr int64_t kMaxTileSize = int64_t{1} << 20;

// CPU time since the last call, in milliseconds.
class Stopwatch {
 public:
  double Lap() {
    const std::clock_t now = std::clock();
    const double ms = 1000.0 * static_cast<double>(now - last_) / CLOCKS_PER_SEC;
    last_ = now;
    return ms;
  }

 private:
  std::clock_t last_ = std::clock();
};

absl::Status CheckOptions(const ScheduleOptions& options) {
  const bool is_known =
      options.strategy == "auto" || options.strategy == "text" || ParseStrategy(options.strategy);
  if (!is_known) {
    return InvalidInput(
        "expected a strategy of none, original, min, smart, max, auto, text, found '",
        options.strategy, "'");
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

// The cheapest of the orders that the scheduler finds, arranged for the machine.
AutoSchedule Cheapest(const Scop& scop, const Dependences& dependences,
                      const ScheduleOptions& options) {
  Machine machine = options.machine;
  if (!options.parallel) machine.cores = 1;
  std::optional<AutoSchedule> best;
  const auto consider = [&](const isl::schedule& schedule) {
    AutoSchedule arranged = Arrange(scop, dependences, schedule, machine);
    if (!best || arranged.cycles < best->cycles) best = std::move(arranged);
  };
  consider(ComputeSchedule(scop, dependences, Strategy::kSmart));
  const isl::schedule original = ComputeSchedule(scop, dependences, Strategy::kOriginal);
  consider(original);
  int splits = 0;
  const isl::schedule split = SplitIntoParallel(dependences, original, &splits);
  if (splits > 0) {
    const double before = best->cycles;
    consider(split);
    if (best->cycles < before)
      best->report.lines.insert(best->report.lines.begin(), std::string(kSplitLine));
  }
  return *std::move(best);
}

class WithoutVectors : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    s = Mutator::Mutate(s);
    if (!s.Is(ir::StmtKind::kFor) || s.for_kind() != ir::ForKind::kVectorize) return s;
    return s.context().For(s.var(), s.min(), s.extent(), s.body(), ir::ForKind::kSerial);
  }
};

// The new code of one part.
absl::StatusOr<ir::Stmt> SchedulePart(const Scop& scop, const ScheduleOptions& options,
                                      PartReport* report) {
  scop.isl->Allow(static_cast<unsigned long>(options.max_operations));
  Stopwatch watch;
  const Dependences dependences =
      ComputeDependences(scop, {.reassociate_floats = options.reassociate});
  report->dependences_ms = watch.Lap();
  MarkedSchedule marked;
  TileReport tiles;
  if (options.strategy == "auto") {
    AutoSchedule arranged = Cheapest(scop, dependences, options);
    marked = std::move(arranged.marked);
    tiles = std::move(arranged.report);
    report->has_register_tiles = arranged.has_register_tiles;
    report->schedule_ms = watch.Lap();
  } else {
    isl::schedule schedule;
    if (options.strategy == "text") {
      ASSIGN_OR_RETURN(schedule, ParseSchedule(scop, dependences, options.text));
    } else {
      schedule = ComputeSchedule(scop, dependences, *ParseStrategy(options.strategy));
    }
    report->schedule_ms = watch.Lap();
    const TileOptions tile_options{
        .sizes = options.tile, .parallel = options.parallel, .vectorize = options.vectorize};
    marked = Tile(scop, dependences, schedule, tile_options, &tiles);
  }
  // In the order of the new tree, what is private must still reach the same uses.
  if (!dependences.private_order.empty() &&
      !FindViolation(scop, dependences, marked.schedule).empty()) {
    return absl::UnimplementedError(
        "tiles would mix the values of a buffer that the part has for itself");
  }
  report->tile_ms = watch.Lap();
  report->bands = tiles.bands;
  report->tiled_bands = tiles.tiled;
  report->parallel_loops = tiles.parallel_loops;
  report->vector_loops = tiles.vector_loops;
  report->wavefronts = tiles.wavefronts;
  report->lines = tiles.lines;
  report->tree = TreeText(marked.schedule);
  ir::Stmt code = Generate(scop, marked);
  // Tiles of registers end in a vector, as Generate writes them.
  if (!options.vectorize) code = WithoutVectors().Mutate(code);
  report->generate_ms = watch.Lap();
  return code;
}

}  // namespace

std::string ScheduleReport::ToString() const {
  std::string text;
  for (const PartReport& part : parts) {
    StrAppend(&text, "part '", part.name, "': ", part.statements,
              part.statements == 1 ? " statement" : " statements");
    if (!part.changed) StrAppend(&text, ", not scheduled: ", part.why_not);
    for (const std::string& line : part.lines) StrAppend(&text, "\n  ", line);
    StrAppend(&text, "\n");
  }
  for (const std::string& remark : remarks) StrAppend(&text, remark, "\n");
  return text;
}

absl::StatusOr<ScheduleReport> Schedule(ir::Function& function, const ScheduleOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  if (options.strategy == "none") return ScheduleReport();
  const ir::Stmt original = function.body;
  if (options.strategy == "auto") ExpandScalars(function);
  ASSIGN_OR_RETURN(ScheduleReport report,
                   ScheduleParts(function, options.strategy, options.max_operations,
                                 [&](const Extraction&, const Scop& scop, PartReport* part) {
                                   return SchedulePart(scop, options, part);
                                 }));
  if (!report.changed) {
    function.body = original;
    return report;
  }
  for (const PartReport& part : report.parts) {
    if (!part.has_register_tiles) continue;
    RETURN_IF_ERROR(Promote(function).status());
    break;
  }
  // Whole tiles stand apart already. What is left in the bounds of skewed tiles has so many thresholds that
  // loop_partition would take a minute for a stencil of twenty lines, and gain nothing.
  if (function.FindAttribute(kPartitionedAttribute) == nullptr) {
    function.attributes.push_back({.key = std::string(kPartitionedAttribute), .values = {}});
  }
  return report;
}

}  // namespace poly

namespace {

// The pass's options: numbers, as the command line has them.
struct PassOptions {
  int strategy = 2;  // in the order of kStrategies
  int tile = 32;
  bool parallel = true;
  bool vectorize = true;
  bool reassociate = false;
  int operations = 10'000;
};

constexpr const char* kStrategies[] = {"original", "min", "smart", "auto", "max"};

}  // namespace

PassInfo SchedulePass() {
  return WithOptions<PassOptions>(
      {.name = "schedule",
       .doc = "gives affine loop nests a new order: fusion, tiles, parallel and vector loops",
       .second_run_changes = "tiles are loops that can be tiled again"},
      {ChoiceOption("strategy", &PassOptions::strategy,
                    {std::begin(kStrategies), std::end(kStrategies)},
                    "which loops share statements; auto also chooses tiles, by a cost model"),
       IntOption("tile", &PassOptions::tile, 0, 1024,
                 "iterations of a tile along each loop; 0: none"),
       BoolOption("parallel", &PassOptions::parallel,
                  "makes the outermost loop that can be parallel"),
       BoolOption("vectorize", &PassOptions::vectorize, "makes innermost loops vectors"),
       IntOption("operations", &PassOptions::operations, 0, 1'000'000,
                 "what isl may do for one part, in thousands of its steps; 0: no limit"),
       BoolOption("reassociate", &PassOptions::reassociate,
                  "sums of floats may change their order")},
      FixedDefaults,
      [](ir::Function& function, const PassEnvironment& environment,
         PassOptions options) -> absl::StatusOr<bool> {
        poly::ScheduleOptions schedule;
        schedule.strategy = kStrategies[options.strategy];
        schedule.tile.clear();
        if (options.tile > 0) schedule.tile = {{options.tile}};
        schedule.parallel = options.parallel;
        schedule.vectorize = options.vectorize;
        schedule.max_operations = int64_t{1000} * options.operations;
        schedule.reassociate = options.reassociate;
        ASSIGN_OR_RETURN(const poly::ScheduleReport report, poly::Schedule(function, schedule));
        const std::string text = report.ToString();
        if (environment.stats != nullptr && !text.empty()) environment.stats->push_back(text);
        return report.changed;
      });
}

}  // namespace polynao
