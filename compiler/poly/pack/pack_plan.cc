#include "compiler/poly/pack/pack_plan.h"

#include <algorithm>
#include <cmath>

namespace polynao::poly {

namespace {

// Two multiply-adds and two loads start in a cycle, and a result is there after four (cost_model.h).
constexpr double kPerCycle = 2;
constexpr double kLatency = 4;
// Cycles for an element that is copied to a panel: its load, its store, and its part of loops and shuffles.
constexpr double kPackCycles = 0.4;
// Cycles for starting a tile: addresses, the loop over the sums, its mispredicted end.
constexpr double kTileCycles = 40;
// A way of the cache holds lines of each array that streams through.
constexpr int64_t kMostVectors = 6;

double Tiles(double count, int64_t size) { return std::ceil(count / static_cast<double>(size)); }

// The column panel is so many times what Low et al. have: its lines come from the second cache in time, and the sums
// go through memory half as often. (Once: 133 GFLOP/s for n = 1024 on one core of a Sapphire Rapids, twice: 144.)
constexpr int64_t kDeeper = 2;
// The part of the second cache that a block of row panels may fill. (Three quarters: 144 GFLOP/s, a half: 149, a
// quarter: 158.)
constexpr int64_t kBlockPart = 4;

// Iterations of sums of a block. The column panel leaves room for what streams through the nearest cache: of its ways,
// one is for the sums, and row panels get as many as their share (Low et al., equation 4).
int64_t Depth(const PackPlan& plan, int64_t bytes, const CpuMachine& machine) {
  const int64_t ways = machine.near_ways;
  const double share = 1 + static_cast<double>(plan.rows) / static_cast<double>(plan.width());
  const int64_t own =
      std::max<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(ways - 1) / share)), 1);
  return std::max<int64_t>(kDeeper * own * (machine.near_bytes / ways) / (plan.width() * bytes), 8);
}

// Blocks of as equal a size as can be.
int64_t Balanced(double count, int64_t most) {
  if (count <= static_cast<double>(most)) return std::max<int64_t>(static_cast<int64_t>(count), 1);
  const double blocks = std::ceil(count / static_cast<double>(most));
  return static_cast<int64_t>(std::ceil(count / blocks));
}

void SetBlocks(PackPlan& plan, const PackShape& shape, const CpuMachine& machine) {
  const int64_t depth = Depth(plan, shape.operand_bytes, machine);
  plan.run = Balanced(shape.sums, depth);
  // Whole groups, so that those of the next block are whole, too.
  if (static_cast<double>(plan.run) < shape.sums) {
    plan.run = (plan.run + plan.group - 1) / plan.group * plan.group;
  }
  plan.runs = 1;
  if (shape.sums <= static_cast<double>(depth)) {
    plan.runs = Balanced(shape.outer_sums, std::max<int64_t>(depth / plan.run, 1));
  }
  const int64_t row_panel = plan.rows * plan.padded_depth() * shape.operand_bytes;
  const int64_t column_panel = plan.width() * plan.padded_depth() * shape.operand_bytes;
  plan.block_tiles = std::max<int64_t>(machine.cache_bytes / kBlockPart / row_panel, 1);
  plan.most_panels = std::max<int64_t>(2 * machine.cores * machine.cache_bytes / column_panel, 1);
}

double Cycles(const PackPlan& plan, const PackShape& shape, const CpuMachine& machine) {
  const double tiles = Tiles(shape.rows, plan.rows);
  const double panels = shape.outer_columns * Tiles(shape.columns, plan.width());
  const double sums = shape.outer_sums * shape.sums;
  const double blocks = Tiles(shape.outer_sums, plan.runs) * Tiles(shape.sums, plan.run);
  const auto rows = static_cast<double>(plan.rows), vectors = static_cast<double>(plan.vectors);
  const double step =
      std::max({rows * vectors / kPerCycle, (rows + vectors) / kPerCycle, kLatency});
  // Sums are loaded and stored once for each block.
  const double elements = 2 * rows * vectors;
  const double cores = std::min<double>(machine.cores, std::max(tiles, panels));
  const double balance = cores > 1 ? std::ceil(tiles / cores) * cores / tiles : 1;
  const double steps = sums / static_cast<double>(plan.group);
  const double work = tiles * panels * (steps * step + blocks * (elements + kTileCycles)) * balance;
  const double packed = (tiles * rows * std::ceil(panels / static_cast<double>(plan.most_panels)) +
                         panels * static_cast<double>(plan.width())) *
                        sums * kPackCycles;
  const double starts =
      machine.cores > 1 ? 2 * blocks * std::ceil(panels / static_cast<double>(plan.most_panels)) *
                              machine.parallel_cycles
                        : 0;
  const double columns = shape.outer_columns * shape.columns;
  const double bytes =
      static_cast<double>(shape.operand_bytes) * (shape.rows * sums + columns * sums) +
      static_cast<double>(shape.bytes) * 2 * blocks * shape.rows * columns;
  const double fits = machine.cores > 1 ? static_cast<double>(machine.cores) : 1.0;
  const double memory = bytes > static_cast<double>(machine.cache_bytes) * fits
                            ? bytes * machine.cycles_per_byte / machine.memory_scaling
                            : 0;
  return shape.batch * (std::max((work + packed) / std::max(cores, 1.0), memory) + starts);
}

}  // namespace

PackPlan MakePackPlan(const PackShape& shape, const CpuMachine& machine) {
  const double lanes = std::max<double>(
      static_cast<double>(machine.vector_bytes) / static_cast<double>(shape.bytes), 1);
  const double least = shape.batch * shape.rows * shape.outer_columns * shape.columns *
                       shape.outer_sums * shape.sums / lanes / kPerCycle / machine.cores;
  PackPlan best;
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors) {
    PackPlan plan;
    plan.lanes = std::max<int64_t>(machine.vector_bytes / shape.bytes, 1);
    plan.vectors = vectors;
    plan.group = shape.group;
    // One register is for an element of the row operand, and one is left for the scheduler of instructions.
    plan.rows = (machine.vector_registers - vectors - 2) / vectors;
    if (plan.rows < 1) break;
    // As equal as can be: 4 tiles of 13 rows for 49, not 3 of 14 and one of 7.
    plan.rows = Balanced(shape.rows, plan.rows);
    SetBlocks(plan, shape, machine);
    plan.cycles = Cycles(plan, shape, machine);
    plan.least_cycles = least;
    if (best.cycles == 0 || plan.cycles < best.cycles) best = plan;
  }
  return best;
}

}  // namespace polynao::poly
