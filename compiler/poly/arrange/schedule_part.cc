#include "compiler/poly/arrange/schedule_part.h"

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/auto.h"
#include "compiler/poly/arrange/join.h"
#include "compiler/poly/arrange/split.h"
#include "compiler/poly/arrange/stopwatch.h"
#include "compiler/poly/arrange/tile.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/order/schedule.h"
#include "compiler/poly/order/strategies.h"

namespace polynao::poly {

namespace {

constexpr std::string_view kNoOrderLine = "isl's scheduler found no order: the original one";

// The cheapest of the orders that the scheduler finds, arranged for the machine.
AutoSchedule Cheapest(const Scop& scop, const Dependences& dependences,
                      const ScheduleOptions& options) {
  CpuMachine machine = options.machine;
  if (!options.parallel) machine.cores = 1;
  std::optional<AutoSchedule> best;
  const auto consider = [&](const isl::schedule& schedule) {
    AutoSchedule arranged = Arrange(scop, dependences, schedule, machine);
    if (!best || arranged.cycles < best->cycles) best = std::move(arranged);
  };
  const isl::schedule smart = ComputeSchedule(scop, dependences, Strategy::kSmart);
  consider(smart);
  const isl::schedule original = ComputeSchedule(scop, dependences, Strategy::kOriginal);
  consider(original);
  // The same with fewer outermost loops.
  for (const isl::schedule* schedule : {&smart, &original}) {
    int joined = 0;
    const isl::schedule together = JoinNests(scop, dependences, *schedule, &joined);
    if (joined == 0) continue;
    const double before = best->cycles;
    consider(together);
    if (best->cycles < before)
      best->report.lines.insert(best->report.lines.begin(), std::string(kJoinLine));
  }
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

}  // namespace

absl::StatusOr<ir::Stmt> SchedulePart(const Scop& scop, const ScheduleOptions& options,
                                      PartReport* report) {
  Stopwatch watch;
  const Dependences dependences =
      ComputeDependences(scop, {.reassociate_floats = options.reassociate});
  report->dependences_ms = watch.Lap();
  MarkedSchedule marked;
  TileReport tiles;
  bool is_original = false;
  if (options.strategy == "auto") {
    AutoSchedule arranged = Cheapest(scop, dependences, options);
    marked = std::move(arranged.marked);
    tiles = std::move(arranged.report);
    report->has_register_tiles = arranged.has_register_tiles;
    report->cycles = arranged.cycles;
    report->schedule_ms = watch.Lap();
  } else {
    isl::schedule schedule;
    if (options.strategy == "text") {
      ASSIGN_OR_RETURN(schedule, ParseSchedule(scop, dependences, options.text));
    } else {
      schedule = ComputeSchedule(scop, dependences, *FindStrategy(options.strategy)->isl,
                                 /*outer_coincidence=*/false, &is_original);
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
  if (is_original) report->lines.insert(report->lines.begin(), std::string(kNoOrderLine));
  report->tree = TreeText(marked.schedule);
  ir::Stmt code = Generate(scop, marked);
  // Tiles of registers end in a vector, as Generate writes them.
  if (!options.vectorize) code = WithoutVectors().Mutate(code);
  report->generate_ms = watch.Lap();
  return code;
}

}  // namespace polynao::poly
