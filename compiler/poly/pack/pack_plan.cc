#include "compiler/poly/pack/pack_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace polynao::poly {

namespace {

// Loads of a step take so many times those of vectors, since single elements of many rows come slower: on a Sapphire
// Rapids, which starts two in a cycle, 28 x 1 vectors, 29 loads, take 17.5 cycles for 14 of arithmetic, 14 x 2 of them,
// 16 loads, 14.
constexpr double kElementLoads = 1.2;
// The part of what the second cache takes for a line, for each vector of a column panel that the nearest one does not
// keep: tiles of 2 x 4 vectors read four of them for 8 multiply-adds, of 14 x 2 two for 28. (14 x 14 x 1024 by 256 in
// tiles of 2 x 64: 883 us; of 14 x 32 from panels of rows: 653.)
constexpr double kNextCachePart = 0.75, kLineBytes = 64;
// Cycles for lines of the result side by side that a tile stores, if the second cache does not hold all of the result
// and other lines are between these and the next row's. (12544 x 96, 16 sums: 225 us by tiles of 96, 384 by 48, 431 by
// 32, 664 by 16; 50176 x 64, 27 sums: 1252 us by 64, 1801 by 32, 2582 by 16.)
constexpr double kFarRunCycles = 15;
// Cycles for an element that is copied to a panel: its load, its store, and its part of loops and shuffles.
constexpr double kPackCycles = 0.4;
// Cycles for starting a tile: addresses, the loop over the sums, its mispredicted end.
constexpr double kTileCycles = 40;
// Cycles for a line of a tile that is loaded, as far as they do not overlap: measured on a Sapphire Rapids, where a
// step of 2 x 2 tiles of bytes takes 64 cycles in registers and 110 to 130 with operands from the two nearest caches.
constexpr double kLineCycles = 0.75;
// Of tiles, the part of the shorter one of computing and reading memory that does not overlap with the other. (For
// vectors it would prefer wide panels of one row, which memory delivers at half the rate: 1 x 4096 by 4096 x 4096.
// There it only chooses among what takes as long.)
constexpr double kNotOverlapped = 0.125, kNotOverlappedByVectors = 0.01;
// Operands loaded for a product of tiles, over the fewest there can be: as many are as good.
constexpr double kNearlyFewest = 1.1;
// A way of the cache holds lines of each array that streams through.
constexpr int64_t kMostVectors = 6;
constexpr int64_t kLineVectors = 4;  // of a row of a tile without products

double Tiles(double count, int64_t size) { return std::ceil(count / static_cast<double>(size)); }

// The column panel is so many times what Low et al. have: its lines come from the second cache in time, and the sums
// go through memory half as often. (Once: 133 GFLOP/s for n = 1024 on one core of a Sapphire Rapids, twice: 144.)
constexpr int64_t kDeeper = 2;
// The part of the second cache that a block of row panels may fill. (Three quarters: 144 GFLOP/s, a half: 149, a
// quarter: 158.)
constexpr int64_t kBlockPart = 4;
// And the part of it for one panel of rows, if the nearest cache does not keep it.
constexpr int64_t kPanelPart = 8;
// The panels that all cores read may be so many times what the second caches hold: they come from the third one.
constexpr int64_t kCommonCaches = 8;
// Cycles for a byte of these panels each time that a block of a core's own meets them: what is left of its way from the
// third cache while the core computes.
constexpr double kStreamCycles = 0.02;
// Of an image. Panels are made anew for each block, and need no memory to speak of.
constexpr double kMostImageBytes = 1 << 28;

// Iterations of sums of a block. The column panel leaves room for what streams through the nearest cache: of its ways,
// one is for the sums, and row panels get as many as their share (Low et al., equation 4).
int64_t Depth(const PackPlan& plan, int64_t bytes, const CpuMachine& machine) {
  if (plan.unit_rows > 1) {
    // A panel of rows may also be in the second cache, where columns come from: that costs less than sums that go
    // through memory. One of columns has two thirds of the nearest cache; what streams through it, and the sums, have
    // the rest.
    const int64_t most = plan.keeps_rows ? machine.cache_bytes / kPanelPart / plan.rows
                                         : machine.near_bytes * 2 / 3 / plan.width();
    return std::max<int64_t>(most / bytes, plan.step);
  }
  const int64_t ways = machine.near_ways;
  const double share = 1 + static_cast<double>(plan.rows) / static_cast<double>(plan.width());
  const int64_t own =
      std::max<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(ways - 1) / share)), 1);
  return std::max<int64_t>(kDeeper * own * (machine.near_bytes / ways) / (plan.width() * bytes),
                           std::max<int64_t>(plan.step, 8));
}

// Blocks of as equal a size as can be.
int64_t Balanced(double count, int64_t most) {
  if (count <= static_cast<double>(most)) return std::max<int64_t>(static_cast<int64_t>(count), 1);
  const double blocks = std::ceil(count / static_cast<double>(most));
  return static_cast<int64_t>(std::ceil(count / blocks));
}

// The second cache does not keep the columns that stream by for each block of rows.
bool AreColumnsFar(const PackPlan& plan, const PackShape& shape, const CpuMachine& machine) {
  const double columns = shape.outer_columns * shape.columns * shape.outer_sums * shape.sums;
  return plan.keeps_rows && columns * static_cast<double>(shape.operand_bytes) >
                                static_cast<double>(machine.cache_bytes) / 2;
}

void SetBlocks(PackPlan& plan, const PackShape& shape, const CpuMachine& machine) {
  const int64_t depth = Depth(plan, shape.operand_bytes, machine);
  plan.run = Balanced(shape.sums, depth);
  // Whole steps, so that those of the next block are whole, too.
  if (static_cast<double>(plan.run) < shape.sums) {
    plan.run = (plan.run + plan.step - 1) / plan.step * plan.step;
  }
  plan.runs = 1;
  if (shape.sums <= static_cast<double>(depth)) {
    plan.runs = Balanced(shape.outer_sums, std::max<int64_t>(depth / plan.run, 1));
  }
  const int64_t row_sum = plan.rows * shape.operand_bytes;
  const int64_t column_sum = plan.width() * shape.operand_bytes;
  const int64_t own_sum = plan.shares_columns ? row_sum : column_sum;
  const int64_t common_sum = plan.shares_columns ? column_sum : row_sum;
  const bool is_near = plan.keeps_rows && !AreColumnsFar(plan, shape, machine);
  const int64_t own_bytes = is_near ? machine.near_bytes * 2 / 3 : machine.cache_bytes / kBlockPart;
  plan.most_own = std::max<int64_t>(own_bytes / (own_sum * plan.padded_depth()), 1);
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

// Tiles of all rows.
double RowTiles(const PackPlan& plan, const PackShape& shape) {
  if (plan.row_place == RowPlace::kPanels) return Tiles(shape.rows, plan.rows);
  const auto last = static_cast<double>(shape.last_rows);
  return shape.rows / last * Tiles(last, plan.rows);
}

// How much faster than one core `cores` of them read memory. Those that have no part do not read either.
double MemoryScaling(double cores, const CpuMachine& machine) {
  const double others = machine.cores > 1 ? (cores - 1) / (machine.cores - 1) : 0;
  return 1 + (machine.memory_scaling - 1) * others;
}

double Cycles(const PackPlan& plan, const PackShape& shape, const CpuMachine& machine) {
  const double tiles = RowTiles(plan, shape);
  const double panels = shape.outer_columns * Tiles(shape.columns, plan.width());
  const double sums = shape.outer_sums * shape.sums;
  const double blocks = Tiles(shape.outer_sums, plan.runs) * Tiles(shape.sums, plan.run);
  const auto rows = static_cast<double>(plan.rows), vectors = static_cast<double>(plan.vectors);
  const bool has_tiles = shape.registers > 0;
  const double units = rows * vectors / static_cast<double>(plan.unit_rows);
  // Instructions on tiles wait for the lines of their operands, which come from the two nearest caches; those of
  // columns that stream from farther away, for the first tile of a block.
  const double column_lines = vectors * static_cast<double>(plan.step / plan.group);
  const double far_cycles =
      AreColumnsFar(plan, shape, machine)
          ? machine.cycles_per_byte * machine.vector_bytes / static_cast<double>(plan.most_own)
          : 0;
  const bool is_column_near =
      plan.padded_depth() * plan.width() * shape.operand_bytes <= machine.near_bytes;
  const CoreRates& rates = machine.rates;
  const double column_loads =
      is_column_near ? 0 : vectors * kNextCachePart * kLineBytes / rates.next_bytes;
  const double unit_cycles = shape.unit_cycles > 0 ? shape.unit_cycles : rates.operation;
  const double step =
      has_tiles
          ? units * unit_cycles + (rows + column_lines) * kLineCycles + column_lines * far_cycles
          : std::max({units * unit_cycles, (rows + vectors) * kElementLoads * rates.load,
                      column_loads, rates.latency});
  // Sums are loaded and stored once for each block, and those of tiles once more. Tiles one below the other are on many
  // pages of memory, which take as long to find again.
  const double page_factor = has_tiles && !plan.keeps_rows ? 2 : 1;
  const double elements = (has_tiles ? 2 : 1) * page_factor * 2 * rows * vectors;
  const double columns = shape.outer_columns * shape.columns;
  const bool is_far = shape.rows * columns * static_cast<double>(shape.bytes) >
                      static_cast<double>(machine.cache_bytes);
  const double far_runs =
      is_far && !has_tiles && columns > static_cast<double>(plan.width()) ? rows : 0;
  const double tile = elements + far_runs * kFarRunCycles + kTileCycles;
  const double own = plan.shares_columns ? tiles : panels;
  const double common = plan.shares_columns ? panels : tiles;
  const double cores = std::max(std::min<double>(machine.cores, own), 1.0);
  const double balance = std::ceil(own / cores) * cores / std::max(own, 1.0);
  const double steps = has_tiles ? Tiles(sums, plan.step) : sums / static_cast<double>(plan.step);
  const double work = tiles * panels * (steps * step + blocks * tile) * balance;
  const double row_elements = tiles * rows * sums;
  const bool has_row_panels = plan.row_place == RowPlace::kPanels && !shape.rows_in_place;
  const double column_elements = panels * static_cast<double>(plan.width()) * sums;
  const double common_elements = plan.shares_columns ? column_elements : row_elements;
  const double common_blocks = Tiles(common, plan.most_common);
  const bool is_own_packed = plan.shares_columns ? !has_row_panels : shape.columns_before;
  const bool is_common_packed = plan.shares_columns ? shape.columns_before : !has_row_panels;
  // Bytes of a row lie side by side and are copied together.
  const double row_copies = row_elements * (has_tiles ? shape.operand_bytes / 4.0 : 1);
  const double own_copies = plan.shares_columns ? row_copies : column_elements;
  const double common_copies = plan.shares_columns ? column_elements : row_copies;
  const double packed =
      ((is_own_packed ? 0 : own_copies * common_blocks) + (is_common_packed ? 0 : common_copies)) *
      kPackCycles;
  // An image that the second cache does not hold goes to memory and comes back.
  const bool has_image = plan.row_place == RowPlace::kImage;
  const double image_bytes = shape.image_elements * static_cast<double>(shape.operand_bytes);
  const bool is_image_far = image_bytes > static_cast<double>(machine.cache_bytes);
  const double image = !has_image
                           ? 0
                           : shape.image_elements * kPackCycles +
                                 (is_image_far ? 2 * image_bytes * machine.cycles_per_byte : 0);
  const double own_blocks = std::max(Tiles(own, plan.most_own), cores);
  // Of rows that stay in the nearest cache the steps have it.
  const double stream =
      plan.keeps_rows
          ? 0
          : own_blocks * common_elements * static_cast<double>(shape.operand_bytes) * kStreamCycles;
  // One panel for all is packed without a loop.
  const double loops = (is_common_packed || common == 1 ? 0 : 1) + (cores > 1 ? 1 : 0);
  const double starts =
      machine.cores > 1 ? (loops * common_blocks + (has_image ? 1 : 0)) * machine.parallel_cycles
                        : 0;
  const double operand = shape.last_rows > 0 ? shape.image_elements : shape.rows * sums;
  const double row_bytes = static_cast<double>(shape.operand_bytes) * operand;
  const double column_bytes = static_cast<double>(shape.operand_bytes) * columns * sums;
  // Each block loads the result and stores it where it was.
  const double result =
      static_cast<double>(shape.bytes) * page_factor * blocks * shape.rows * columns;
  // What one core touches: all that the cores share, and its part of the rest.
  const double touched = plan.shares_columns ? column_bytes + (row_bytes + result) / cores
                                             : row_bytes + (column_bytes + result) / cores;
  const double memory = touched > static_cast<double>(machine.cache_bytes)
                            ? (row_bytes + column_bytes + 2 * result) * machine.cycles_per_byte /
                                  MemoryScaling(cores, machine)
                            : 0;
  const double busy = (work + packed + image + stream) / cores;
  const double overlapped =
      std::max(busy, memory) +
      (has_tiles ? kNotOverlapped : kNotOverlappedByVectors) * std::min(busy, memory);
  return shape.batch * (overlapped + starts);
}

}  // namespace

PackPlan MakeLanewisePlan(const PackShape& shape, const CpuMachine& machine) {
  PackPlan plan;
  plan.lanes = std::max<int64_t>(machine.vector_bytes / shape.bytes, 1);
  const double vectors_of_row = std::ceil(shape.columns / static_cast<double>(plan.lanes));
  // A half of the registers is enough for the sums. The others have a row of the window's elements of the filter, and
  // what they are multiplied by. Without a filter, lines side by side come faster (2 x 2 windows of 224 x 224 x 64: 222
  // us by rows of 4 vectors, 706 by single ones).
  const int64_t filter = shape.has_columns ? static_cast<int64_t>(shape.sums) + 1 : 0;
  const int64_t most = std::max(machine.vector_registers / 2 - 2, 1);
  const int64_t room = machine.vector_registers - 2;
  if (!shape.has_columns) plan.vectors = Balanced(vectors_of_row, kLineVectors);
  plan.rows = Balanced(
      shape.rows, std::max<int64_t>(std::clamp<int64_t>(room - filter, 1, most) / plan.vectors, 1));
  const bool is_short =
      static_cast<double>(plan.rows) * machine.rates.operation < machine.rates.latency;
  const bool has_room = shape.has_columns && 2 * (plan.rows + filter) <= room;
  if (is_short && vectors_of_row > 1 && has_room) plan.vectors = 2;
  plan.run = static_cast<int64_t>(shape.sums);
  plan.runs = static_cast<int64_t>(shape.outer_sums);
  const double vectors = std::ceil(shape.columns / static_cast<double>(plan.lanes));
  const double lanes = shape.batch * Tiles(shape.rows, plan.rows) * static_cast<double>(plan.rows) *
                       vectors * shape.outer_sums * shape.sums;
  plan.cycles = lanes * machine.rates.operation / machine.cores;
  plan.least_cycles = plan.cycles / vectors * shape.columns / static_cast<double>(plan.lanes);
  return plan;
}

namespace {

struct TileSize {
  int64_t rows, vectors;
};

std::vector<TileSize> TileSizes(const PackShape& shape, const CpuMachine& machine) {
  std::vector<TileSize> sizes;
  if (shape.registers == 0) {
    for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors) {
      // One register is for an element of the row operand, and one is left for the scheduler of instructions.
      const int64_t rows = (machine.vector_registers - vectors - 2) / vectors;
      if (rows >= 1) sizes.push_back({rows, vectors});
    }
    return sizes;
  }
  // Operands of the shorter side stay, those of the other one come and go. Of what has a use, those are taken that load
  // the fewest operands for a product, or nearly so: 2 x 2 tiles, 6 x 1 of a narrow result.
  const auto lanes = static_cast<double>(machine.vector_bytes) / static_cast<double>(shape.bytes);
  const double most_rows = std::ceil(shape.rows / static_cast<double>(shape.unit_rows));
  const double most_vectors = std::ceil(shape.columns / lanes);
  const auto loads = [](int64_t rows, int64_t vectors) {
    return static_cast<double>(rows + vectors) / static_cast<double>(rows * vectors);
  };
  double fewest = std::numeric_limits<double>::infinity();
  for (const bool counts : {true, false}) {
    for (int64_t rows = 1; rows < shape.registers && (rows == 1 || rows <= most_rows); ++rows) {
      for (int64_t vectors = 1; rows * vectors + std::min(rows, vectors) + 1 <= shape.registers &&
                                (vectors == 1 || vectors <= most_vectors);
           ++vectors) {
        if (counts) fewest = std::min(fewest, loads(rows, vectors));
        if (!counts && loads(rows, vectors) <= kNearlyFewest * fewest)
          sizes.push_back({rows * shape.unit_rows, vectors});
      }
    }
  }
  return sizes;
}

// `plan` with rows in each place that they may have: the numbers of rows of a tile differ.
std::vector<PackPlan> WithRowPlaces(const PackPlan& plan, const PackShape& shape,
                                    const CpuMachine& machine) {
  std::vector<PackPlan> plans = {plan};
  // As equal as can be: 4 tiles of 13 rows for 49, not 3 of 14 and one of 7.
  if (shape.registers == 0) plans.back().rows = Balanced(shape.rows, plan.rows);
  if (shape.last_rows == 0) return plans;
  PackPlan image = plan;
  image.row_place = RowPlace::kImage;
  image.rows = Balanced(static_cast<double>(shape.last_rows), plan.rows);
  if (machine.Collide(shape.image_step * shape.operand_bytes, image.rows))
    image.image_pad = plan.lanes;
  if (shape.image_elements * static_cast<double>(shape.operand_bytes) <= kMostImageBytes)
    plans.push_back(image);
  PackPlan memory = plan;
  memory.row_place = RowPlace::kMemory;
  // In memory nothing is behind the last row: tiles are whole ones.
  memory.rows = std::min(plan.rows, shape.last_rows);
  while (shape.last_rows % memory.rows != 0) --memory.rows;
  if (shape.memory_step > 0 &&
      !machine.Collide(shape.memory_step * shape.operand_bytes, memory.rows))
    plans.push_back(memory);
  return plans;
}

// The fastest plan of those whose cores share each iteration of the batch.
PackPlan PlanOfEach(const PackShape& shape, const CpuMachine& machine) {
  const double lanes = std::max<double>(
      static_cast<double>(machine.vector_bytes) / static_cast<double>(shape.bytes), 1);
  const double least = shape.batch * shape.rows * shape.outer_columns * shape.columns *
                       shape.outer_sums * shape.sums / lanes * machine.rates.operation /
                       machine.cores;
  PackPlan best;
  for (const auto& [rows, vectors] : TileSizes(shape, machine)) {
    for (const auto& [shares_columns, keeps_rows] :
         {std::pair(true, false), std::pair(false, false), std::pair(true, true)}) {
      if ((!shares_columns && !shape.is_known) || (keeps_rows && shape.registers == 0)) continue;
      PackPlan plan;
      plan.keeps_rows = keeps_rows;
      plan.lanes = std::max<int64_t>(machine.vector_bytes / shape.bytes, 1);
      plan.vectors = vectors;
      plan.group = shape.group;
      plan.step = shape.step;
      plan.unit_rows = shape.unit_rows;
      plan.shares_columns = shares_columns;
      plan.rows = rows;
      plan.least_cycles = least;
      for (PackPlan& placed : WithRowPlaces(plan, shape, machine)) {
        SetBlocks(placed, shape, machine);
        placed.cycles = Cycles(placed, shape, machine);
        if (best.cycles == 0 || placed.cycles < best.cycles) best = placed;
      }
    }
  }
  return best;
}

}  // namespace

PackPlan MakePackPlan(const PackShape& shape, const CpuMachine& machine) {
  const PackPlan each = PlanOfEach(shape, machine);
  if (shape.batch <= 1 || machine.cores <= 1) return each;
  const double cores = std::min<double>(machine.cores, shape.batch);
  CpuMachine core = machine;
  core.cores = 1;
  core.cycles_per_byte *= cores / MemoryScaling(cores, machine);
  PackShape iteration = shape;
  iteration.batch = 1;
  PackPlan own = PlanOfEach(iteration, core);
  own.shares_batch = true;
  own.cycles = own.cycles * std::ceil(shape.batch / cores) + machine.parallel_cycles;
  own.least_cycles = each.least_cycles;
  return own.cycles < each.cycles ? own : each;
}

}  // namespace polynao::poly
