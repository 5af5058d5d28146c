#include "compiler/poly/pack/pack_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
// The panels that all cores read may be so many times what the second caches hold: they come from the third one.
constexpr int64_t kCommonCaches = 8;
// Cycles for a byte of these panels each time that a block of a core's own meets them: what is left of its way from the
// third cache while the core computes.
constexpr double kStreamCycles = 0.02;

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
  const int64_t row_sum = plan.rows * shape.operand_bytes;
  const int64_t column_sum = plan.width() * shape.operand_bytes;
  const int64_t own_sum = plan.shares_columns ? row_sum : column_sum;
  const int64_t common_sum = plan.shares_columns ? column_sum : row_sum;
  plan.most_own =
      std::max<int64_t>(machine.cache_bytes / kBlockPart / (own_sum * plan.padded_depth()), 1);
  const double all = static_cast<double>(common_sum) * shape.outer_sums * shape.sums;
  plan.most_common =
      std::max<int64_t>(static_cast<int64_t>(static_cast<double>(kCommonCaches * machine.cores *
                                                                 machine.cache_bytes) /
                                             std::max(all, 1.0)),
                        1);
  // Nothing is packed in the run.
  if (shape.columns_before && plan.shares_columns) {
    plan.most_common = std::numeric_limits<int32_t>::max();
  }
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
  const double own = plan.shares_columns ? tiles : panels;
  const double common = plan.shares_columns ? panels : tiles;
  const double cores = std::max(std::min<double>(machine.cores, own), 1.0);
  const double balance = std::ceil(own / cores) * cores / std::max(own, 1.0);
  const double steps = sums / static_cast<double>(plan.group);
  const double work = tiles * panels * (steps * step + blocks * (elements + kTileCycles)) * balance;
  const double row_elements = tiles * rows * sums;
  const double column_elements = panels * static_cast<double>(plan.width()) * sums;
  const double own_elements = plan.shares_columns ? row_elements : column_elements;
  const double common_elements = plan.shares_columns ? column_elements : row_elements;
  const double common_blocks = Tiles(common, plan.most_common);
  const bool is_own_packed = shape.columns_before && !plan.shares_columns;
  const bool is_common_packed = shape.columns_before && plan.shares_columns;
  const double packed = ((is_own_packed ? 0 : own_elements * common_blocks) +
                         (is_common_packed ? 0 : common_elements)) *
                        kPackCycles;
  const double own_blocks = std::max(Tiles(own, plan.most_own), cores);
  const double stream =
      own_blocks * common_elements * static_cast<double>(shape.operand_bytes) * kStreamCycles;
  const double starts =
      machine.cores > 1 ? (is_common_packed ? 1 : 2) * common_blocks * machine.parallel_cycles : 0;
  const double columns = shape.outer_columns * shape.columns;
  const double bytes =
      static_cast<double>(shape.operand_bytes) * (shape.rows * sums + columns * sums) +
      static_cast<double>(shape.bytes) * 2 * blocks * shape.rows * columns;
  const double fits = machine.cores > 1 ? static_cast<double>(machine.cores) : 1.0;
  const double memory = bytes > static_cast<double>(machine.cache_bytes) * fits
                            ? bytes * machine.cycles_per_byte / machine.memory_scaling
                            : 0;
  return shape.batch * (std::max((work + packed + stream) / cores, memory) + starts);
}

}  // namespace

PackPlan MakeLanewisePlan(const PackShape& shape, const CpuMachine& machine) {
  PackPlan plan;
  plan.lanes = std::max<int64_t>(machine.vector_bytes / shape.bytes, 1);
  // Loads of the row operand are operands of the multiply-adds; a half of the registers is enough for the sums.
  const int64_t most = std::max(machine.vector_registers / 2 - 2, 1);
  plan.rows = Balanced(shape.rows, most);
  const bool is_short = static_cast<double>(plan.rows) < kPerCycle * kLatency;
  if (is_short && shape.columns > static_cast<double>(plan.lanes)) plan.vectors = 2;
  plan.run = static_cast<int64_t>(shape.sums);
  plan.runs = static_cast<int64_t>(shape.outer_sums);
  const double vectors = std::ceil(shape.columns / static_cast<double>(plan.lanes));
  const double lanes = shape.batch * Tiles(shape.rows, plan.rows) * static_cast<double>(plan.rows) *
                       vectors * shape.outer_sums * shape.sums;
  plan.cycles = lanes / kPerCycle / machine.cores;
  plan.least_cycles = plan.cycles / vectors * shape.columns / static_cast<double>(plan.lanes);
  return plan;
}

PackPlan MakePackPlan(const PackShape& shape, const CpuMachine& machine) {
  const double lanes = std::max<double>(
      static_cast<double>(machine.vector_bytes) / static_cast<double>(shape.bytes), 1);
  const double least = shape.batch * shape.rows * shape.outer_columns * shape.columns *
                       shape.outer_sums * shape.sums / lanes / kPerCycle / machine.cores;
  PackPlan best;
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors) {
    // One register is for an element of the row operand, and one is left for the scheduler of instructions.
    const int64_t rows = (machine.vector_registers - vectors - 2) / vectors;
    if (rows < 1) break;
    for (const bool shares_columns : {true, false}) {
      if (!shares_columns && !shape.is_known) break;
      PackPlan plan;
      plan.lanes = std::max<int64_t>(machine.vector_bytes / shape.bytes, 1);
      plan.vectors = vectors;
      plan.group = shape.group;
      plan.shares_columns = shares_columns;
      // As equal as can be: 4 tiles of 13 rows for 49, not 3 of 14 and one of 7.
      plan.rows = Balanced(shape.rows, rows);
      SetBlocks(plan, shape, machine);
      plan.cycles = Cycles(plan, shape, machine);
      plan.least_cycles = least;
      if (best.cycles == 0 || plan.cycles < best.cycles) best = plan;
    }
  }
  return best;
}

}  // namespace polynao::poly
