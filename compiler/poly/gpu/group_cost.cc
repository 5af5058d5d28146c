#include "compiler/poly/gpu/group_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/ir/type.h"
#include "compiler/poly/arrange/slots.h"
#include "compiler/poly/fuse/stage_loops.h"
#include "compiler/poly/gpu/group.h"
#include "compiler/poly/gpu/storage.h"

namespace polynao::poly {

namespace {

// Operations besides its arithmetic: for the place of an instance in the box, and for the address of an access.
constexpr double kInstanceOperations = 8;
constexpr double kAccessOperations = 2;
constexpr double kWarp = 32;
// Of two that cost the same the first one is taken.
constexpr int64_t kThreadChoices[] = {256, 512, 128, 64};
// Larger tiles than so many elements have more rounds, and nothing to gain from them.
constexpr int64_t kMaxTileRow = 256, kMaxTileColumn = 64;

double CountOf(const arith::ConstRange& range) {
  return range.IsEmpty() ? 0 : static_cast<double>(range.Count().value_or(1));
}

}  // namespace

GpuGroupModel::GpuGroupModel(const Scop& scop, const std::vector<Stage>& stages,
                             const CpuMachine& sizes, const GpuMachine& gpu, int64_t shared_bytes,
                             int64_t threads)
    : GroupModel(scop, stages, sizes),
      stages_(stages),
      gpu_(gpu),
      shared_bytes_(shared_bytes),
      threads_(threads) {
  for (const Stage& stage : stages) {
    for (const Statement* s : stage.statements) {
      for (size_t i = 0; i < s->iterators.size(); ++i) {
        const auto loop = Coordinate(s->domain.to_union_set(), static_cast<int>(i)).at(0);
        if (IsParallel(stage, {s}, loop)) parallel_[s].push_back(s->iterators[i]);
      }
    }
  }
}

GpuGroupModel::Block GpuGroupModel::BlockOf(const Group& group) const {
  Block block{.tile = TileOf(group), .parallel = {}, .phase = {}};
  block.tiles = std::max(1.0, std::ceil(TilesOf(group)));
  const std::vector<int> phases = PhasesOf(stages_, group, /*at_end=*/false);
  const auto phase_of = [&](int stage) {
    const auto it = std::find(group.producers.begin(), group.producers.end(), stage);
    return phases[At(static_cast<int>(it - group.producers.begin()))];
  };
  block.phases = phases.back() + 1;
  for (const Work& work : block.tile.work) {
    double parallel = 1;
    const auto it = parallel_.find(work.statement->statement);
    if (it != parallel_.end()) {
      for (const ir::Var var : it->second) parallel *= CountOf(work.iterators.at(var));
    }
    block.parallel.push_back(std::max(1.0, std::min(parallel, work.instances)));
    block.phase.push_back(phase_of(work.stage));
  }
  // Arrays in the order of their phases.
  std::vector<int> producers = group.producers;
  std::sort(producers.begin(), producers.end(),
            [&](int a, int b) { return std::pair(phase_of(a), a) < std::pair(phase_of(b), b); });
  std::vector<LivingArray> arrays;
  for (const int p : producers) {
    const auto it = block.tile.locals.find(p);
    if (it == block.tile.locals.end()) continue;
    const ir::Type type = stages_[At(p)].buffers[0]->type;
    int last = phase_of(p);
    for (const int q : producers) {
      if (stages_[At(q)].reads.contains(p)) last = std::max(last, phase_of(q));
    }
    if (stages_[At(group.root)].reads.contains(p)) last = phases.back();
    arrays.push_back({.type = type,
                      .elements = it->second / ir::ByteSize(type),
                      .first = phase_of(p),
                      .last = last});
  }
  block.shared_bytes = AssignSlots(arrays).bytes();
  for (const auto& [buffer, box] : block.tile.read) {
    const auto size = static_cast<double>(ir::ByteSize(buffer->type));
    double rows = 1, whole = size;
    for (size_t d = 0; d + 1 < box.size(); ++d) rows *= CountOf(box[d]);
    for (const Range& range : WholeOf(buffer)) whole *= CountOf(range);
    const double row = (box.empty() ? 1 : CountOf(box.back())) * size;
    // A row begins anywhere in a sector. Where the data say which elements are read, the box is large, and few of it
    // are.
    double accesses = 0;
    for (const Work& work : block.tile.work) {
      for (const Use& use : work.statement->uses) {
        if (use.buffer == buffer) accesses += work.instances;
      }
    }
    const double sectors = std::min(rows * ((row - 1) / gpu_.sector_bytes + 1), accesses);
    const double bytes = sectors * gpu_.sector_bytes * block.tiles;
    block.cache_bytes += bytes;
    block.memory_bytes += whole > gpu_.cache_bytes / 2 ? bytes : std::min(bytes, whole);
  }
  return block;
}

double GpuGroupModel::ResidentBlocks(const Block& block, int64_t threads) const {
  const int64_t by_shared = gpu_.shared_bytes / (block.shared_bytes + gpu_.block_overhead_bytes);
  return static_cast<double>(
      std::clamp<int64_t>(std::min(gpu_.threads / threads, by_shared), 1, gpu_.blocks));
}

double GpuGroupModel::CyclesWith(const Block& block, int64_t threads) const {
  double operations = 0, accesses = 0;
  std::vector<double> waits(At(block.phases), 0);
  for (size_t i = 0; i < block.tile.work.size(); ++i) {
    const Work& work = block.tile.work[i];
    const double rounds = std::ceil(block.parallel[i] / static_cast<double>(threads));
    // Warps without an instance do nothing.
    const double lanes = std::ceil(block.parallel[i] / kWarp) * kWarp;
    const double slots = lanes * work.instances / block.parallel[i];
    const auto uses = static_cast<double>(work.statement->uses.size());
    operations += slots * (work.statement->arithmetic + kAccessOperations * uses) +
                  lanes * kInstanceOperations;
    accesses += slots * uses;
    bool is_far = false;
    for (const Use& use : work.statement->uses)
      is_far |= !use.is_write && block.tile.read.contains(use.buffer);
    waits[At(block.phase[i])] += rounds * (is_far ? gpu_.global_latency : gpu_.near_latency);
  }
  double latency = gpu_.barrier_cycles * block.phases;
  for (const double wait : waits) latency += wait;
  const double busy =
      std::max(operations / gpu_.operations_per_cycle, accesses / gpu_.accesses_per_cycle);
  const double resident = ResidentBlocks(block, threads);
  const double each = std::ceil(block.tiles / gpu_.multiprocessors);  // of a multiprocessor
  const double compute = each * std::max(busy, (busy + latency) / std::min(resident, each));
  const double memory = std::max(block.memory_bytes / gpu_.bytes_per_cycle,
                                 block.cache_bytes / gpu_.cache_bytes_per_cycle);
  return std::max(compute, memory) + gpu_.launch_cycles;
}

int64_t GpuGroupModel::BestThreads(const Block& block) const {
  if (threads_ > 0) return threads_;
  double most = 1;
  for (const double parallel : block.parallel) most = std::max(most, parallel);
  int64_t best = 0;
  double best_cycles = std::numeric_limits<double>::infinity();
  for (const int64_t threads : kThreadChoices) {
    // Threads that never have anything to do.
    if (threads > kThreadChoices[0] && static_cast<double>(threads) >= most + kWarp) continue;
    const double cycles = CyclesWith(block, threads);
    if (cycles >= best_cycles) continue;
    best = threads;
    best_cycles = cycles;
  }
  return best;
}

int64_t GpuGroupModel::ThreadsOf(const Group& group) const { return BestThreads(BlockOf(group)); }

GroupCost GpuGroupModel::CostOf(const Group& group) const {
  const Block block = BlockOf(group);
  GroupCost cost;
  cost.redundancy = RedundancyOf(group, block.tile);
  cost.local_bytes = block.shared_bytes;
  cost.memory_bytes = block.memory_bytes;
  std::vector<int64_t> counts;
  for (size_t d = 0; d < group.sizes.size(); ++d) {
    const int64_t size = group.sizes[d];
    if (size > 0) counts.push_back((Extents(group.root)[d] + size - 1) / size);
  }
  const bool is_possible = block.shared_bytes <= shared_bytes_ && GridObstacle(counts).empty();
  const int64_t threads = BestThreads(block);
  cost.cycles = is_possible ? CyclesWith(block, threads) : std::numeric_limits<double>::infinity();
  cost.is_idle = block.tiles < gpu_.multiprocessors * ResidentBlocks(block, threads);
  return cost;
}

std::vector<std::vector<int64_t>> GpuGroupModel::Candidates(int stage) const {
  const std::vector<int64_t>& extents = Extents(stage);
  const size_t n = extents.size();
  std::vector<std::vector<int64_t>> candidates(n);
  size_t axes = 0;
  for (size_t d = n; d-- > 0;) {
    const bool is_tileable = info_[At(stage)].tileable[d];
    if (!is_tileable || HasConstantExtent(stage, d)) candidates[d].push_back(0);
    // The axes of a grid go along the last dimensions.
    if (!is_tileable || axes == 3) continue;
    ++axes;
    const bool is_last = d + 1 == n;
    for (int64_t size = is_last ? 16 : 1;
         size <= (is_last ? kMaxTileRow : kMaxTileColumn) && size < extents[d]; size *= 2) {
      // Small dimensions, as of colours, are taken one by one or whole.
      if (extents[d] <= 8 && size > 1) break;
      candidates[d].push_back(size);
    }
  }
  for (std::vector<int64_t>& sizes : candidates) {
    if (sizes.empty()) sizes.push_back(0);
  }
  return candidates;
}

}  // namespace polynao::poly
